//! `cargo xtask bench`: the benchmarks, in release builds.

use anyhow::Result;

use crate::toolchain::Choice;
use crate::{guests, process, redis, workspace};

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Only {
    /// Events/s beside the floor of Redis.
    EndToEnd,
    /// How long keys pause when owners change. No rates, so the ordinary build will do.
    Ownership,
}

pub(crate) fn run(only: Option<Only>) -> Result<()> {
    redis::ensure("bench")?;
    if only != Some(Only::EndToEnd) {
        ownership()?;
    }
    if only == Some(Only::Ownership) {
        return Ok(());
    }
    let guests = guests::build(Choice::default())?;
    process::step("bench", "building in release mode (several minutes the first time)");
    let mut end_to_end = workspace::cargo();
    end_to_end.args(["run", "--quiet", "--release", "--locked", "--package", "keyrail-benches", "--bin", "end-to-end"]);
    process::run(end_to_end.env("KEYRAIL_GUESTS", &guests))?;
    if only.is_some() {
        return Ok(());
    }
    let mut parts = workspace::cargo();
    parts.args(["bench", "--quiet", "--locked", "--package", "keyrail-benches", "--bench", "parts"]);
    process::run(parts.env("KEYRAIL_GUESTS", &guests))
}

fn ownership() -> Result<()> {
    process::step("bench", "building the hosts whose keys change hands");
    process::run(workspace::cargo().args([
        "build",
        "--quiet",
        "--locked",
        "--package",
        "keyrail",
        "--package",
        "keyrail-tests",
    ]))?;
    let mut ownership = workspace::cargo();
    ownership.args(["run", "--quiet", "--locked", "--package", "keyrail-benches", "--bin", "ownership"]);
    process::run(&mut ownership)
}
