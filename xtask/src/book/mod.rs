//! `cargo xtask book`: the pages of `docs/` as a book, in the target folder's `book/`, every link checked.
//!
//! mdBook is a program and not a library of ours: it is fetched and built once, pinned, into the folder of tools. Everybody
//! who builds a task would wait for it otherwise.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{process, workspace};

mod links;

const VERSION: &str = "0.5.4";

pub(crate) fn run() -> Result<()> {
    let mdbook = mdbook()?;
    let folder = workspace::target_dir()?.join("book");
    process::step("book", "building");
    let mut build = Command::new(mdbook);
    build.arg("build").arg(workspace::root()).arg("--dest-dir").arg(&folder).env("MDBOOK_LOG", "warn");
    process::run(&mut build)?;
    let checked = links::check(&folder)?;
    if !checked.broken.is_empty() {
        bail!("{} links lead nowhere:\n  {}", checked.broken.len(), checked.broken.join("\n  "));
    }
    let index = folder.join("index.html");
    process::step("book", &format!("{} pages, {} links, all good: {}", checked.pages, checked.links, index.display()));
    Ok(())
}

/// The program, built if it is not there yet: a minute or two, once for each version.
fn mdbook() -> Result<PathBuf> {
    let tools = match std::env::var_os("KEYRAIL_TOOLS") {
        Some(folder) => PathBuf::from(folder),
        None => {
            std::env::home_dir().context("there is no home folder; set KEYRAIL_TOOLS")?.join(".cache/keyrail/tools")
        }
    };
    let folder = tools.join(format!("mdbook-{VERSION}"));
    let program = folder.join("bin/mdbook");
    if program.exists() {
        return Ok(program);
    }
    process::step("book", &format!("building mdbook {VERSION} into {}", folder.display()));
    let mut install = workspace::cargo();
    install.args(["install", "--quiet", "--locked", "mdbook", "--version", VERSION]);
    install.args(["--no-default-features", "--features", "search", "--root"]).arg(&folder);
    // In a folder that is thrown away, not among what the workspace builds.
    install.env_remove("CARGO_TARGET_DIR");
    process::run(&mut install)?;
    Ok(program)
}
