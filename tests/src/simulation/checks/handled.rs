//! Only what was handled is settled: every entry of a commit had a call of its own under the same ownership, and it ended well.

use std::collections::{BTreeMap, BTreeSet};

use keyrail_ordering::{EntryId, Generation, PartitionId, StreamId};

use super::Check;
use crate::simulation::fact::{CallEnd, CallNumber, Fact, On};
use crate::simulation::ledger::Ledger;

type Done = (PartitionId, Generation, StreamId, EntryId);

#[derive(Default)]
pub(super) struct Handled {
    running: BTreeMap<CallNumber, Done>,
    /// A commit can arrive late, when its events are being handled again: so once done is done.
    done: BTreeSet<Done>,
}

impl Check for Handled {
    fn name(&self) -> &'static str {
        "handled"
    }

    fn see(&mut self, _at_ms: u64, fact: &Fact, _ledger: &Ledger, found: &mut Vec<String>) {
        match fact {
            Fact::CallBegan { call, on: On::Lease(holder), entry, .. } => {
                let place = (holder.partition.clone(), holder.generation, entry.stream.clone(), entry.id);
                self.running.insert(*call, place);
            }
            Fact::CallEnded { call, how } => {
                self.done.extend(self.running.remove(call).filter(|_| *how == CallEnd::Done));
            }
            Fact::Committed { holder, entries, .. } => {
                let place = |(stream, id)| (holder.partition.clone(), holder.generation, stream, id);
                let is_done = |at: &keyrail_ordering::EntryRef| self.done.contains(&place((at.stream.clone(), at.id)));
                let missing = entries.iter().filter(|at| !is_done(at));
                found.extend(missing.map(|at| format!("{holder} committed {at}, which it had not handled")));
            }
            _ => {}
        }
    }
}
