//! `cargo xtask bench`: the benchmarks, and the page that shows them.

use std::fs;
use std::process::Command;

use anyhow::Result;

use crate::toolchain::Choice;
use crate::{debian, guests, process, workspace};

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Only {
    /// Events/s beside the floor of Redis; a chain; several hosts; the embedded broker.
    Throughput,
    /// From publishing to settled, under load, and beside busy keys.
    Latency,
    /// What idle keys cost, and how soon many go on whose host was killed.
    Standing,
    /// A call of a guest beside the same call on wasmtime alone, fresh instances, their memory.
    Dispatch,
    /// Step and wire, by themselves.
    Parts,
    /// How long keys pause when owners change. No rates, so the ordinary build will do.
    Ownership,
    /// How late events are while handlers are replaced.
    Reload,
    /// The itinerary in five languages, side by side.
    Languages,
    /// Publishing over HTTP beside the handler's work.
    Http,
}

/// Those that need a release build.
const RELEASED: [(Only, &str); 4] = [
    (Only::Throughput, "throughput"),
    (Only::Latency, "latency"),
    (Only::Standing, "standing"),
    (Only::Dispatch, "dispatch"),
];
/// Those that compare within themselves.
const ORDINARY: [(Only, &str); 4] =
    [(Only::Ownership, "ownership"), (Only::Reload, "reload"), (Only::Languages, "languages"), (Only::Http, "http")];

/// With `write` the tables of `docs/benchmarks.md` are made from what was found; `rest` goes to the one that is named.
pub(crate) fn run(only: Option<Only>, write: bool, rest: &[String]) -> Result<()> {
    debian::REDIS.ensure("bench")?;
    let guests = guests::build(Choice::default())?;
    let found = workspace::target_dir()?.join("bench");
    // What an earlier run found.
    let _ = fs::remove_dir_all(&found);
    let is_wanted = |which: Only| only.is_none_or(|only| only == which);
    for (which, binary) in RELEASED {
        if is_wanted(which) {
            process::step("bench", &format!("building {binary} in release mode (several minutes the first time)"));
            // The whole workspace, so that dependencies are those of every other build.
            let mut cargo = workspace::cargo();
            cargo.args(["build", "--quiet", "--release", "--locked", "--workspace", "--bin", binary]);
            process::run(&mut cargo)?;
            let mut bench = Command::new(workspace::target_dir()?.join("release").join(binary));
            process::run(bench.args(rest).env("KEYRAIL_GUESTS", &guests).env("KEYRAIL_BENCH_OUT", &found))?;
        }
    }
    if is_wanted(Only::Parts) {
        let mut cargo = workspace::cargo();
        cargo.args(["bench", "--quiet", "--locked", "--package", "keyrail-benches", "--bench", "parts"]);
        process::run(cargo.env("KEYRAIL_GUESTS", &guests))?;
    }
    for (which, binary) in ORDINARY {
        if is_wanted(which) {
            process::step("bench", &format!("building {binary}, and the hosts that it runs"));
            workspace::build_programs()?;
            process::run(&mut workspace::built(binary)?)?;
        }
    }
    if write && found.is_dir() {
        workspace::build_programs()?;
        process::run(workspace::built("bench-page")?.arg(&found).arg(workspace::root().join("docs")))?;
    }
    Ok(())
}
