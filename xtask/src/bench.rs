//! `cargo xtask bench`: the benchmarks, in release builds.

use anyhow::Result;

use crate::toolchain::Choice;
use crate::{debian, guests, process, workspace};

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Only {
    /// Events/s beside the floor of Redis.
    EndToEnd,
    /// How long keys pause when owners change. No rates, so the ordinary build will do.
    Ownership,
    /// How late events are while handlers are replaced.
    Reload,
    /// The itinerary in five languages, side by side.
    Languages,
    /// Publishing over HTTP beside the handler's work.
    Http,
}

pub(crate) fn run(only: Option<Only>) -> Result<()> {
    debian::REDIS.ensure("bench")?;
    let guests = guests::build(Choice::default())?;
    let ordinaries = [
        (Only::Ownership, "ownership"),
        (Only::Reload, "reload"),
        (Only::Languages, "languages"),
        (Only::Http, "http"),
    ];
    for (which, binary) in ordinaries {
        if only.is_none_or(|only| only == which) {
            ordinary(binary)?;
        }
    }
    if only.is_some_and(|only| only != Only::EndToEnd) {
        return Ok(());
    }
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

/// Runs one that needs no release build, since it compares within itself.
fn ordinary(binary: &str) -> Result<()> {
    process::step("bench", &format!("building {binary}, and the hosts that it runs"));
    workspace::build_programs()?;
    process::run(&mut workspace::built(binary)?)
}
