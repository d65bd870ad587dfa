//! Where the parts come from: what a release says of them (a list in CycloneDX, and their licences), and what they may be.
//!
//! All of it comes from cargo's own graph, by tools that are made for it and built on the first use.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::{process, workspace};

/// A tool, its version, and the features that it needs besides its own choice.
type Tool = (&'static str, &'static str, &'static str);
const CYCLONEDX: Tool = ("cargo-cyclonedx", "0.5.9", "");
const ABOUT: Tool = ("cargo-about", "0.9.3", "cli");
const DENY: Tool = ("cargo-deny", "0.20.2", "");

/// Whether every part has a licence and a source that `deny.toml` allows.
pub(crate) fn check() -> Result<()> {
    process::run(tool(DENY)?.args(["--workspace", "--locked", "check", "licenses", "bans", "sources"]))
}

/// Puts `keyrail.cdx.json` and `THIRD-PARTY.txt` into the folder.
pub(crate) fn write(folder: &Path, target: &str) -> Result<()> {
    process::step("dist", "listing parts and licences");
    sbom(folder, target)?;
    let mut about = tool(ABOUT)?;
    about.args(["generate", "--locked", "--fail", "--target", target]);
    about.args(["--manifest-path", "host/Cargo.toml", "--config", "deploy/licences/about.toml"]);
    about.arg("--output-file").arg(folder.join("THIRD-PARTY.txt")).arg("deploy/licences/third-party.hbs");
    process::run(&mut about)
}

/// The tool writes beside each manifest of the workspace; only the host's is wanted.
fn sbom(folder: &Path, target: &str) -> Result<()> {
    const NAME: &str = "keyrail-sbom";
    let mut cyclonedx = tool(CYCLONEDX)?;
    cyclonedx.args(["cyclonedx", "--manifest-path", "host/Cargo.toml", "--target", target]);
    cyclonedx.args(["--format", "json", "--spec-version", "1.5", "--override-filename", NAME]);
    // No random serial number and no time of today: the same parts are the same file.
    process::run(cyclonedx.env("SOURCE_DATE_EPOCH", workspace::commit_time_s()?))?;
    let made = workspace::root().join("host").join(format!("{NAME}.json"));
    let text = fs::read_to_string(&made).with_context(|| format!("cannot read {}", made.display()))?;
    // Where it was built is nobody's business, and not the same twice.
    let text = text.replace(&*workspace::root().to_string_lossy(), "/keyrail");
    fs::write(folder.join("keyrail.cdx.json"), text)?;
    let members = process::output(Command::new("git").current_dir(workspace::root()).args([
        "ls-files",
        "--others",
        "--exclude-standard",
        "--",
        &format!("*{NAME}.json"),
    ]))?;
    for file in members.lines() {
        fs::remove_file(workspace::root().join(file))?;
    }
    Ok(())
}

/// The program of a tool, for the workspace.
fn tool((name, version, features): Tool) -> Result<Command> {
    let folder = workspace::cache()?.join("tools").join(format!("{name}-{version}"));
    let program = folder.join("bin").join(name);
    if !program.exists() {
        process::step("licences", &format!("building {name} {version} (minutes)"));
        let mut install = workspace::cargo();
        // Not in the workspace, whose settings are not theirs; and not among what is built there.
        install.current_dir(std::env::temp_dir()).env_remove("CARGO_TARGET_DIR");
        install
            .args(["install", "--quiet", "--locked", "--version", version, "--features", features, name, "--root"])
            .arg(&folder);
        process::run(&mut install).with_context(|| format!("cannot get {name}"))?;
    }
    let mut command = Command::new(program);
    command.current_dir(workspace::root());
    Ok(command)
}
