//! `cargo xtask chaos`: three hosts on a real Redis, random faults, and the history of every aircraft compared.

use anyhow::Result;

use crate::toolchain::Choice;
use crate::{debian, guests, process, workspace};

pub(crate) fn run(rest: &[String]) -> Result<()> {
    debian::REDIS.ensure("chaos")?;
    guests::build_rust(Choice::default())?;
    process::step("chaos", "building the host");
    workspace::build_programs()?;
    process::run(workspace::built("chaos")?.args(rest))
}
