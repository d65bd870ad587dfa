//! `cargo xtask bench`: the benchmarks, in release builds.

use anyhow::Result;

use crate::toolchain::Choice;
use crate::{guests, process, redis, workspace};

pub(crate) fn run(end_to_end_only: bool) -> Result<()> {
    redis::ensure("bench")?;
    let guests = guests::build(Choice::default())?;
    process::step("bench", "building in release mode (several minutes the first time)");
    let mut end_to_end = workspace::cargo();
    end_to_end.args(["run", "--quiet", "--release", "--locked", "--package", "keyrail-benches", "--bin", "end-to-end"]);
    process::run(end_to_end.env("KEYRAIL_GUESTS", &guests))?;
    if end_to_end_only {
        return Ok(());
    }
    let mut parts = workspace::cargo();
    parts.args(["bench", "--quiet", "--locked", "--package", "keyrail-benches", "--bench", "parts"]);
    process::run(parts.env("KEYRAIL_GUESTS", &guests))
}
