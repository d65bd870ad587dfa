//! `cargo xtask chaos`: three hosts on a real Redis, random faults, and the history of every aircraft compared.

use anyhow::Result;

use crate::toolchain::Choice;
use crate::{guests, process, redis, workspace};

pub(crate) fn run(rest: &[String]) -> Result<()> {
    redis::ensure("chaos")?;
    guests::build(Choice::default())?;
    process::step("chaos", "building the host");
    process::run(workspace::cargo().args(["build", "--quiet", "--locked", "--package", "keyrail"]))?;
    let mut chaos = workspace::cargo();
    chaos.args(["run", "--quiet", "--locked", "--package", "keyrail-tests", "--bin", "chaos", "--"]);
    process::run(chaos.args(rest))
}
