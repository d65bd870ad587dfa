//! `cargo xtask test`: gets what the tests need, builds everything, runs everything.

use anyhow::Result;

use crate::toolchain::Choice;
use crate::{debian, guests, process, workspace};

pub(crate) fn run(rest: &[String]) -> Result<()> {
    debian::REDIS.ensure("test")?;
    debian::PROMTOOL.ensure("test")?;
    if std::env::var_os("KEYRAIL_CHROMIUM").is_none() {
        debian::CHROMIUM.ensure("test")?;
    }
    guests::build(Choice::default())?;
    process::step("test", "building the host");
    workspace::build_programs()?;
    process::step("test", "running all tests");
    process::run(workspace::cargo().args(["test", "--locked", "--workspace", "--no-fail-fast"]).args(rest))
}
