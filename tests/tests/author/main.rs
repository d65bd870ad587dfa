//! The tools of a handler's author: a project that builds, events run in memory, a head tried with a candidate, a bundle replayed.
#![allow(clippy::unwrap_used, missing_docs)]

#[allow(dead_code, unreachable_pub)]
#[path = "../../../host/crates/runtime/tests/common/fetcher.rs"]
mod fetcher;
#[allow(dead_code, unreachable_pub)]
#[path = "../../../host/crates/runtime/tests/common/small.rs"]
mod small;

mod calls;
mod projects;
mod replays;
mod trials;

use std::fs;
use std::path::PathBuf;

use keyrail_tests::{Ran, guest, run, run_in, run_with_input};
use serde_json::{Value, json};
use tempfile::TempDir;

/// An event for the conformance handler.
fn step(key: &str, action: &str, more: Value) -> String {
    let mut data = json!({ "key": key, "action": action });
    data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "category": "conformance", "type": "Step", "data": data }).to_string() + "\n"
}

/// An event for the probe.
fn probe(mode: &str, n: u64) -> String {
    json!({ "category": "probe", "type": "Probe", "data": { "key": "k", "mode": mode, "n": n } }).to_string() + "\n"
}

struct Author {
    folder: TempDir,
}

impl Author {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs `keyrail` in the folder; no broker is there.
    fn keyrail(&self, args: &[&str]) -> Ran {
        run_in(self.folder.path(), args, "")
    }

    /// `keyrail test` of the conformance handler.
    fn test(&self, args: &[&str]) -> Ran {
        let component = guest("conformance-rust");
        let args: Vec<_> = ["test", component.to_str().unwrap()].into_iter().chain(args.iter().copied()).collect();
        self.keyrail(&args)
    }
}

fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Two events: one that counts, and one that a host with a low limit rejects.
fn halted(broker: &str) {
    let component = guest("probe");
    let component = component.to_str().unwrap();
    run(broker, &["register", component]).ok();
    run_with_input(broker, &["publish", "-"], &(probe("count", 0) + &probe("state-big", 20) + &probe("count", 0))).ok();
    let ran = run(
        broker,
        &[
            "run",
            "--handler",
            component,
            "--until-idle",
            "--set",
            "runtime.state_value_max_bytes=10",
            "--set",
            "retention.entries=100",
        ],
    );
    assert_eq!(ran.code, 3, "{ran:#?}");
}
