//! Where things are: the workspace, cargo, cargo's target folder.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process;

/// The folder of the workspace's `Cargo.toml`. As cargo says when it runs this, not when it was built: two checkouts with one
/// target folder may share the binary.
pub(crate) fn root() -> PathBuf {
    let built = || PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(built, PathBuf::from);
    xtask.parent().unwrap_or(&xtask).to_path_buf()
}

/// The cargo that runs this task.
pub(crate) fn cargo() -> Command {
    program("CARGO", "cargo")
}

/// Its rustc.
pub(crate) fn rustc() -> Command {
    program("RUSTC", "rustc")
}

fn program(variable: &str, name: &str) -> Command {
    let mut command = Command::new(std::env::var_os(variable).unwrap_or_else(|| OsString::from(name)));
    command.current_dir(root());
    command
}

/// Builds every program of the workspace, as the tests use them: with the same features, so that nothing is built twice.
pub(crate) fn build_programs() -> Result<()> {
    process::run(cargo().args(["build", "--quiet", "--locked", "--workspace", "--bins"]))
}

/// One of them.
pub(crate) fn built(name: &str) -> Result<Command> {
    let mut command = Command::new(target_dir()?.join("debug").join(name));
    command.current_dir(root());
    Ok(command)
}

/// Cargo's target folder, whether by environment, configuration or default: cargo knows.
pub(crate) fn target_dir() -> Result<PathBuf> {
    let metadata = process::output(cargo().args(["metadata", "--no-deps", "--offline", "--format-version", "1"]))?;
    let folder = json_text(&metadata, "target_directory").context("cargo metadata names no target_directory")?;
    Ok(PathBuf::from(folder))
}

/// The folder of what is got or made once and kept, outside of every checkout.
pub(crate) fn cache() -> Result<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).context("HOME is not set")?;
    Ok(PathBuf::from(home).join(".cache/keyrail"))
}

/// A number for this text, to name a folder by.
pub(crate) fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// When the commit that is checked out was made, in seconds since 1970.
pub(crate) fn commit_time_s() -> Result<String> {
    process::output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()))
}

/// The text of a member of a JSON object. Not worth a JSON library: paths escape nothing but quotes and backslashes.
fn json_text(json: &str, member: &str) -> Option<String> {
    let start = json.find(&format!("\"{member}\":\""))? + member.len() + 4;
    let mut text = String::new();
    let mut characters = json[start..].chars();
    loop {
        match characters.next()? {
            '"' => return Some(text),
            '\\' => text.push(characters.next()?),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::json_text;

    #[test]
    fn text_is_found_and_unescaped() {
        let json = r#"{"packages":[],"target_directory":"C:\\work\\\"a\" target","version":1}"#;
        assert_eq!(json_text(json, "target_directory").as_deref(), Some(r#"C:\work\"a" target"#));
        assert_eq!(json_text(json, "workspace_root"), None);
    }
}
