//! `cargo xtask simulate`: seeds of the simulation. Dependencies are optimised in every profile, so the ordinary build will do.

use anyhow::Result;

use crate::{process, workspace};

pub(crate) fn run(rest: &[String]) -> Result<()> {
    let mut simulate = workspace::cargo();
    simulate.args(["run", "--quiet", "--locked", "--package", "keyrail-tests", "--bin", "simulate", "--"]);
    process::run(simulate.args(rest))
}
