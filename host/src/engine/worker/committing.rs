//! Committing what was handled.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use keyrail_broker::{Commit, Committed};
use keyrail_ordering::{Effects, Entry, Input};

use super::Worker;
use crate::telemetry::traces::Handling;

/// Of the events that are handled and not committed.
#[derive(Default)]
pub(super) struct Uncommitted {
    effects: Effects,
    handlings: Vec<Handling>,
}

impl Uncommitted {
    pub(super) fn is_empty(&self) -> bool {
        self.handlings.is_empty()
    }

    /// Those of one more event.
    pub(super) fn add(&mut self, effects: Effects, handling: Handling) {
        if self.is_empty() {
            self.effects = effects;
        } else {
            self.effects.append(effects);
        }
        self.handlings.push(handling);
    }
}

impl Worker {
    /// Settles these, the head first, with everything that their calls changed.
    pub(super) async fn commit(&mut self, batch: &[Arc<Entry>], take_max: usize, release: bool) -> Input {
        let Uncommitted { effects, handlings } = std::mem::take(&mut self.uncommitted);
        let emits = effects.emits.len();
        let label = &self.version.label;
        let version = (self.noted.as_ref() != Some(label)).then(|| label.clone());
        let entries = batch.iter().map(|entry| entry.at.clone()).collect();
        let commit = Commit { entries, effects, take_max, release, version: version.clone() };
        let mut spans: Vec<_> = handlings.iter().map(Handling::commit).collect();
        self.holding.busy.begin(self.shared.machine.now_ns());
        let committed = self.shared.broker.commit(&self.session.lease, commit).await;
        let seconds = self.holding.busy.end(self.shared.machine.now_ns());
        let Committed { entries, more, released } = match committed {
            Ok(committed) => committed,
            Err(error) => {
                for span in &mut spans {
                    span.failed(&error);
                }
                return self.refused("commit", &error);
            }
        };
        self.session.committed();
        if version.is_some() {
            self.noted = version;
        }
        let events = batch.len() as u64;
        self.settled += events;
        let metrics = self.metrics.of(&batch[0].at);
        metrics.settled.inc_by(events);
        metrics.commit.observe(seconds.unwrap_or_default());
        if emits > 0 {
            metrics.emitted.inc_by(emits as u64);
            self.shared.outbox_bell.notify_one();
        }
        if self.settled >= self.shared.config.quantum_events && self.shared.crowded.load(Relaxed) {
            self.holding.drain();
        }
        self.gave_up |= released;
        Input::Committed { entries, more, released }
    }
}
