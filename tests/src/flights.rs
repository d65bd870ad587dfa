//! The January flights: the events, and the state that every aircraft must end with.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::{repository, states};

/// How many events there are.
pub const EVENTS: u64 = 52_796;
/// How many aircraft.
pub const KEYS: usize = 3_140;

/// The events' file.
pub fn january() -> PathBuf {
    repository("tests/data/flights/january.jsonl.gz")
}

/// Its lines.
pub fn january_lines() -> Vec<String> {
    let file = fs::File::open(january()).expect("shipped");
    let lines = BufReader::new(flate2::read::GzDecoder::new(file)).lines();
    lines.map(|line| line.expect("text")).collect()
}

/// Asserts that the itinerary of every aircraft is the expected one: the digest tells of any loss, repeat or swap.
pub fn assert_january(broker: &str) {
    assert_itineraries(broker, "itinerary", &repository("tests/data/flights/january.itinerary.jsonl"));
}

/// The same of a handler of this name, in whatever language, and of these aircraft.
pub fn assert_itineraries(broker: &str, group: &str, expected_file: &Path) {
    let found = states(broker, group);
    let expected = expected(expected_file);
    assert_eq!(found.len(), expected.len(), "aircraft of {group}");
    let wrong: Vec<_> = expected.iter().filter(|(key, itinerary)| !agrees(found.get(*key), itinerary)).collect();
    let first = wrong.first().map(|(key, itinerary)| (key, itinerary, found.get(*key)));
    assert!(wrong.is_empty(), "{} aircraft of {group} differ, the first: {first:#?}", wrong.len());
}

fn expected(file: &Path) -> BTreeMap<String, Map<String, Value>> {
    let text = fs::read_to_string(file).expect("shipped");
    let parse = |line: &str| {
        let mut itinerary: Map<String, Value> = serde_json::from_str(line).expect("shipped as JSON lines");
        let key = itinerary.remove("tail_number").expect("each has its key");
        (key.as_str().expect("as text").to_string(), itinerary)
    };
    text.lines().map(parse).collect()
}

/// Whether all expected members are there and equal. The handler may keep more for itself.
fn agrees(found: Option<&Value>, expected: &Map<String, Value>) -> bool {
    let Some(found) = found.and_then(|state| state.get("itinerary")) else { return false };
    expected.iter().all(|(name, value)| found.get(name) == Some(value))
}
