//! `cargo xtask simulate`: seeds of the simulation. Dependencies are optimised in every profile, so the ordinary build will do.

use anyhow::Result;

use crate::{process, workspace};

pub(crate) fn run(rest: &[String]) -> Result<()> {
    workspace::build_programs()?;
    process::run(workspace::built("simulate")?.args(rest))
}
