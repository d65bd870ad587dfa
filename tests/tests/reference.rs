//! The reference pages are what the program says of itself, and that is what is in force.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;

use keyrail_tests::{repository, run_in};
use serde_json::Value;
use tempfile::TempDir;

/// As `xtask/src/reference.rs` has them.
const PAGES: [(&str, &[&str]); 3] = [
    ("configuration.md", &["config", "reference"]),
    ("keyrail.schema.json", &["config", "schema"]),
    ("cli.md", &["man", "--markdown"]),
];

#[test]
fn the_pages_are_what_the_program_prints() {
    let folder = TempDir::new().unwrap();
    for (file, command) in PAGES {
        let printed = run_in(folder.path(), command, "").ok().out;
        let page = std::fs::read_to_string(repository("docs/reference").join(file)).unwrap();
        assert!(page.trim_end() == printed.trim_end(), "docs/reference/{file} is old; run cargo xtask reference");
    }
}

#[test]
fn a_configuration_that_does_not_load_is_not_in_the_way_of_its_reference() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("keyrail.toml"), "[engine\n").unwrap();
    for (_, command) in PAGES {
        run_in(folder.path(), command, "").ok();
    }
    run_in(folder.path(), &["completions", "bash"], "").ok();
    run_in(folder.path(), &["config", "show"], "").refused(2, "keyrail.toml line 1");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = TempDir::new().unwrap();
    run_in(folder.path(), &["man", "pages"], "").ok();
    for page in ["keyrail.1", "keyrail-run.1", "keyrail-head-show.1", "keyrail-config-show.1"] {
        let text = std::fs::read_to_string(folder.path().join("pages").join(page)).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{page}");
    }
    // What is not for people has none.
    assert!(!folder.path().join("pages/keyrail-compile-component.1").exists());
    run_in(folder.path(), &["man", "/dev/null/x"], "").refused(1, "cannot write /dev/null/x");
    run_in(folder.path(), &["man"], "").refused(2, "DIR");
}

fn shown(folder: &Path, args: &[&str], name: &str) -> Value {
    let args: Vec<_> = args.iter().chain(&["config", "show", "--json"]).copied().collect();
    let out = run_in(folder, &args, "").ok().out;
    let mut rows = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.find(|row| row["name"] == name).unwrap()
}

#[test]
fn what_is_in_force_is_shown_with_who_set_it_and_without_passwords() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("keyrail.toml"), "[engine]\nlinger_ms = 7\n").unwrap();
    let linger = shown(folder.path(), &[], "engine.linger_ms");
    assert_eq!((&linger["value"], &linger["origin"]["file"]), (&7.into(), &"keyrail.toml".into()));
    let linger = shown(folder.path(), &["--set", "engine.linger_ms=9"], "engine.linger_ms");
    assert_eq!((&linger["value"], &linger["origin"]["flag"]), (&9.into(), &"--set engine.linger_ms".into()));
    assert_eq!(shown(folder.path(), &[], "engine.pause_ms")["origin"], "default");
    let broker = ["--broker", "redis://user:s3cret@127.0.0.1:1"];
    let changed = run_in(folder.path(), &[&broker[..], &["config", "show", "--changed"]].concat(), "").ok().out;
    assert_eq!(changed.lines().count(), 2, "{changed}");
    assert!(changed.contains("redis://user:***@127.0.0.1:1") && !changed.contains("s3cret"), "{changed}");
}

/// Real documents against the schema: what the program takes passes, what it refuses does not.
#[test]
fn the_schema_agrees_with_what_is_read() {
    let schema: Value =
        serde_json::from_str(&std::fs::read_to_string(repository("docs/reference/keyrail.schema.json")).unwrap())
            .unwrap();
    let engine = &schema["properties"]["engine"];
    assert_eq!(engine["properties"]["lease_ttl_ms"]["type"], "integer");
    assert_eq!(engine["properties"]["retry"]["properties"]["attempts_max"]["default"], 5);
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["required"], Value::Null, "every setting has a default");
}
