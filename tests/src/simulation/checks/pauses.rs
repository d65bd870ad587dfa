//! A pause holds: from when it is there until it ends nobody acquires, commits or is given anything of what is paused.

use super::Check;
use crate::simulation::fact::Fact;
use crate::simulation::ledger::Ledger;
use keyrail_ordering::{Lane, StreamId};

#[derive(Default)]
pub(super) struct Pauses;

impl Check for Pauses {
    fn name(&self) -> &'static str {
        "pauses"
    }

    fn see(&mut self, _at_ms: u64, fact: &Fact, ledger: &Ledger, found: &mut Vec<String>) {
        let paused = match fact {
            Fact::Acquired { streams, .. } => ledger.is_paused(streams),
            Fact::Committed { entries, .. } => ledger.is_paused(entries.iter().map(|entry| &entry.stream)),
            Fact::Delivered { source, .. } => {
                let stream = StreamId { category: source.category.clone(), key: None, lane: Lane::Primary };
                ledger.is_paused([&stream])
            }
            _ => false,
        };
        if paused {
            found.push(format!("though it is paused: {fact}"));
        }
    }
}
