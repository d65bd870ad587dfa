//! What was published, and the history that every aircraft must have: worked out by the same handler, in memory, in the
//! order of publishing. That the handler itself is right is checked against figures worked out elsewhere
//! (`tests/flights.rs`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

use anyhow::{Context as _, Result};
use itinerary::{Aircraft, Itinerary};
use keyrail_guest::testing::{Harness, Submission};
use serde_json::Value;

use super::{Plan, canary};
use crate::{flights, states};

/// See the module.
#[derive(Default)]
pub(super) struct History {
    expected: BTreeMap<String, Aircraft>,
}

impl History {
    /// The lines to publish, of all laps; what they lead to is worked out on the way.
    pub(super) fn lines(&mut self, plan: &Plan) -> Result<Vec<String>> {
        let file = plan.file.clone().unwrap_or_else(flights::january);
        let open = File::open(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let mut harness = Harness::new(Itinerary);
        let mut lines = vec![];
        for line in BufReader::new(flate2::read::GzDecoder::new(open)).lines() {
            lines.push(line?);
        }
        let mut all = Vec::with_capacity(lines.len() * plan.laps as usize);
        for lap in 0..plan.laps {
            for line in &lines {
                let mut event: Value = serde_json::from_str(line)?;
                let id = event["id"].as_str().context("an event without an id")?;
                let id = if lap == 0 { id.to_string() } else { format!("{id}-{lap}") };
                event["id"] = Value::String(id);
                self.apply(&mut harness, &event)?;
                all.push(event.to_string());
            }
        }
        Ok(all)
    }

    fn apply(&mut self, harness: &mut Harness<Itinerary>, event: &Value) -> Result<()> {
        let key = event["data"]["tail_number"].as_str().context("an event without its key")?.to_string();
        harness.deliver(Submission::from_line(&event.to_string())?).assert_done();
        let aircraft = harness.state(&key, "itinerary").context("an aircraft without state")?;
        self.expected.insert(key, aircraft);
        Ok(())
    }

    pub(super) fn keys(&self) -> usize {
        self.expected.len()
    }

    /// The aircraft whose history differs, in words.
    pub(super) fn compare(&self, broker: &str) -> Vec<String> {
        let mut found = states(broker, "itinerary");
        found.remove(canary::KEY);
        let mut wrong = vec![];
        for (key, expected) in &self.expected {
            let state = found.remove(key).map(|state| state["itinerary"].clone());
            let same = state.clone().and_then(|state| serde_json::from_value::<Aircraft>(state).ok());
            if same.as_ref() != Some(expected) {
                wrong.push(format!("{key}: expected {expected:?}, found {state:?}"));
            }
        }
        wrong.extend(found.keys().map(|key| format!("{key} was never published")));
        wrong
    }
}
