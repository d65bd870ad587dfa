//! Components of WIT 0.1.0 run on this host: the bytes of then, and what their source builds to now.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};

use keyrail_tests::host::Host;
use keyrail_tests::{guest, repository, run, run_in, run_with_input, states};
use serde_json::json;
use tempfile::TempDir;

const HALTED: i32 = 3;

fn event(key: &str, id: &str, action: &str) -> String {
    format!(r#"{{"id":"{id}","category":"frozen","type":"Moved","data":{{"key":"{key}","action":"{action}"}}}}"#) + "\n"
}

fn runs_on_this_host(component: &Path) {
    let folder = TempDir::new().unwrap();
    let broker = format!("embedded:{}", folder.path().join("k.redb").display());
    let file = component.to_str().unwrap();
    let check = run_in(folder.path(), &["check", file], "").ok();
    assert!(check.out.contains("keyrail:handler/state@0.1.0"), "{check:#?}");
    run(&broker, &["deploy", file]).ok();
    let lines =
        [event("a", "1", "count"), event("a", "2", "retry"), event("b", "3", "emit"), event("c", "4", "reject")];
    run_with_input(&broker, &["publish", "-"], &lines.concat()).ok();
    let host = Host::start(&broker, &[], &["--until-idle"]);
    assert_eq!(host.wait(), HALTED);
    let states = states(&broker, "frozen");
    // Bytes that are no JSON are shown in base64.
    assert_eq!(states["a"], json!({ "handled": { "base64": "MUAxCjJAMgo=" } }), "1@1, 2@2");
    assert_eq!(states["b"]["handled"]["base64"].as_str().unwrap().len() % 4, 0);
    let halted = run(&broker, &["halted", "--json"]).ok().out;
    assert!(halted.contains("\"asked to\"") && halted.lines().count() == 1, "{halted}");
}

fn stored() -> PathBuf {
    repository("tests/fixtures/wit-0.1.0/handler.wasm")
}

#[test]
fn the_bytes_of_0_1_0_run_on_this_host() {
    runs_on_this_host(&stored());
}

#[test]
fn what_the_source_of_0_1_0_builds_to_now_runs_on_this_host() {
    runs_on_this_host(&guest("wit-0.1.0"));
}

#[test]
fn the_wit_of_0_1_0_is_still_what_this_host_offers() {
    let frozen = std::fs::read_to_string(repository("tests/fixtures/wit-0.1.0/wit/keyrail.wit")).unwrap();
    let present = std::fs::read_to_string(repository("wit/keyrail.wit")).unwrap();
    let code = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
        lines.filter(|line| !line.starts_with("package ")).map(String::from).collect()
    };
    let present = code(&present);
    // A later 0.1 adds functions and takes nothing away.
    for line in code(&frozen) {
        assert!(present.contains(&line), "the WIT of 0.1.0 has {line:?}, and that of this host has not");
    }
}
