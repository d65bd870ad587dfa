//! The shape of the repository: which way dependencies point, and what no file may do.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use keyrail_tests::repository;
use serde_json::Value;

/// What each of our crates may depend on, of ours. Anything else is a mistake in the design, not in this list.
const ALLOWED: [(&str, &[&str]); 6] = [
    ("keyrail-ordering", &[]),
    ("keyrail-broker", &["keyrail-ordering"]),
    ("keyrail-runtime", &["keyrail-ordering"]),
    ("keyrail", &["keyrail-broker", "keyrail-ordering", "keyrail-runtime"]),
    ("keyrail-guest-derive", &[]),
    ("keyrail-guest", &["keyrail-guest-derive"]),
];

/// Crates with which the core could do IO, tell the time or throw dice.
const IMPURE: [&str; 8] = ["tokio", "redis", "redb", "wasmtime", "rand", "rustix", "async-trait", "tracing"];

fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(repository(""));
    let metadata: Value = serde_json::from_slice(&cargo.output().unwrap().stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let normal = package["dependencies"].as_array().unwrap().iter().filter(|d| d["kind"].is_null());
            (text(&package["name"]), normal.map(|dependency| text(&dependency["name"])).collect())
        })
        .collect()
}

#[test]
fn dependencies_point_one_way() {
    let all = dependencies();
    for (package, allowed) in ALLOWED {
        let ours: Vec<_> = all[package].iter().filter(|name| name.starts_with("keyrail")).collect();
        assert!(ours.iter().all(|name| allowed.contains(&name.as_str())), "{package} depends on {ours:?}");
    }
}

#[test]
fn the_core_is_pure() {
    let found: Vec<_> =
        dependencies()["keyrail-ordering"].iter().filter(|d| IMPURE.contains(&d.as_str())).cloned().collect();
    assert!(found.is_empty(), "{found:?}");
    for file in sources("host/crates/ordering/src") {
        let text = std::fs::read_to_string(&file).unwrap();
        for word in ["HashMap", "HashSet", "async fn", "SystemTime", "Instant::", "std::fs", "std::net", "std::thread"]
        {
            assert!(!text.contains(word), "{} uses {word}", file.display());
        }
    }
}

#[test]
fn bincode_and_anyhow_stay_in_their_rooms() {
    for file in sources("host") {
        let text = std::fs::read_to_string(&file).unwrap();
        let path = file.to_string_lossy().into_owned();
        let uses = |word: &str| text.lines().any(|line| !line.trim_start().starts_with("//") && line.contains(word));
        assert!(!uses("bincode::") || path.ends_with("broker/src/wire.rs"), "{path} uses bincode");
        let command_line = path.contains("host/src/cli/") || path.ends_with("host/src/main.rs");
        assert!(!uses("anyhow::") || command_line, "{path} uses anyhow");
        // A build script talks to cargo so.
        let build_script = path.ends_with("/build.rs");
        // The runtime's tests start it.
        let test_program = path.ends_with("/bin/runtime-tool.rs");
        assert!(
            !uses("println!(")
                || command_line
                || build_script
                || test_program
                || path.contains("/tests")
                || path.contains("/examples/"),
            "{path} prints"
        );
        assert!(!uses("unbounded_channel"), "{path} has a channel without a limit");
    }
}

fn sources(folder: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = vec![];
    walk(&repository(folder), &mut found);
    assert!(!found.is_empty());
    found
}
