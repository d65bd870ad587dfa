//! `cargo xtask reference`: the pages that the program makes of itself, put where the documentation has them.

use std::fs;

use anyhow::{Context as _, Result};

use crate::{process, workspace};

/// File, and the command that prints it. `tests/tests/reference.rs` has the same list, and compares.
const PAGES: [(&str, &[&str]); 3] = [
    ("configuration.md", &["config", "reference"]),
    ("keyrail.schema.json", &["config", "schema"]),
    ("cli.md", &["man", "--markdown"]),
];

pub(crate) fn run() -> Result<()> {
    process::step("reference", "building the host");
    workspace::build_programs()?;
    let folder = workspace::root().join("docs/reference");
    fs::create_dir_all(&folder)?;
    for (file, arguments) in PAGES {
        let page = process::output(workspace::built("keyrail")?.args(arguments))?;
        let path = folder.join(file);
        fs::write(&path, page + "\n").with_context(|| format!("cannot write {}", path.display()))?;
        process::step("reference", &format!("made {}", path.display()));
    }
    Ok(())
}
