//! Real flights through the handler: every aircraft must end in the expected state, digest included.
#![allow(missing_docs)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use itinerary::Itinerary;
use keyrail_guest::testing::{Harness, Submission};
use serde_json::{Map, Value};

#[test]
fn the_shipped_sample_ends_as_expected() {
    let flights = here().join("../flights");
    let aircraft = check(&flights.join("sample.jsonl.gz"), &flights.join("sample.itinerary.jsonl"));
    assert!(aircraft > 250, "a sample of {aircraft} aircraft shows little");
}

/// The whole month is not part of the repository: it is compared where `KEYRAIL_FLIGHTS`, or `shared/data/flights` beside
/// the checkout, has it.
#[test]
fn the_whole_january_ends_as_expected_where_it_is_at_hand() {
    let beside = || here().join("../../../shared/data/flights");
    let flights = std::env::var_os("KEYRAIL_FLIGHTS").map_or_else(beside, PathBuf::from);
    if !flights.is_dir() {
        eprintln!("no {}: only the sample was compared", flights.display());
        return;
    }
    let aircraft = check(&flights.join("january.jsonl.gz"), &flights.join("january.itinerary.jsonl"));
    assert_eq!(aircraft, 3140);
}

/// This package's folder, as cargo says when it runs this: two checkouts with one target folder may share the binary.
fn here() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}

/// Delivers all events and compares each aircraft's state; answers with their number.
fn check(events: &Path, expected: &Path) -> usize {
    let mut flights = Harness::new(Itinerary);
    let lines = BufReader::new(GzDecoder::new(File::open(events).expect("the events are there")));
    for line in lines.lines() {
        let line = line.expect("the events are gzip");
        let submission = Submission::from_line(&line).expect("a line is an event");
        flights.deliver(submission).assert_done();
    }

    let expected = expected_states(expected);
    assert_eq!(flights.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (tail_number, expected) in &expected {
        let state: Map<String, Value> = flights.state(tail_number, "itinerary").expect("every aircraft has a state");
        // The state has a member more, which `propagated` is computed from.
        for (member, value) in expected {
            assert_eq!(state.get(member), Some(value), "{member} of {tail_number}");
        }
    }
    expected.len()
}

/// The expected members by tail number.
fn expected_states(file: &Path) -> BTreeMap<String, Map<String, Value>> {
    let text = fs::read_to_string(file).expect("the expected states are there");
    let states = text.lines().map(|line| {
        let mut state: Map<String, Value> = serde_json::from_str(line).expect("a line is a state");
        let tail_number = state.remove("tail_number").expect("a state has a tail number");
        (tail_number.as_str().expect("text").to_owned(), state)
    });
    states.collect()
}
