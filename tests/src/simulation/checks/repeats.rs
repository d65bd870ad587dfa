//! Nothing is applied twice: an event is settled once a group, is once in its stream, and every emit is there once.

use std::collections::BTreeSet;
use std::sync::Arc;

use keyrail_ordering::{GroupName, Outgoing, StreamId};

use super::Check;
use crate::simulation::fact::Fact;
use crate::simulation::ledger::Ledger;

#[derive(Default)]
pub(super) struct Repeats {
    settled: BTreeSet<(GroupName, Arc<str>)>,
    published: BTreeSet<(StreamId, Arc<str>)>,
    emitted: BTreeSet<Arc<str>>,
}

impl Check for Repeats {
    fn name(&self) -> &'static str {
        "repeats"
    }

    fn see(&mut self, _at_ms: u64, fact: &Fact, ledger: &Ledger, found: &mut Vec<String>) {
        match fact {
            Fact::Published { stream, event_id } => {
                let is_new = self.published.insert((stream.clone(), event_id.clone()));
                found.extend((!is_new).then(|| format!("{event_id} was published twice in {stream}")));
            }
            Fact::Committed { holder, entries, emits, .. } => {
                for event_id in entries.iter().filter_map(|entry| ledger.event_at(entry)) {
                    self.settles(&holder.partition.group, event_id, found);
                }
                self.emits(emits, found);
            }
            Fact::SharedCommitted { emits, .. } => self.emits(emits, found),
            _ => {}
        }
    }
}

impl Repeats {
    fn settles(&mut self, group: &GroupName, event_id: &Arc<str>, found: &mut Vec<String>) {
        if !self.settled.insert((group.clone(), event_id.clone())) {
            found.push(format!("{group} settled {event_id} twice"));
        }
    }

    fn emits(&mut self, emits: &[Outgoing], found: &mut Vec<String>) {
        for emit in emits {
            if !self.emitted.insert(emit.event.id.clone()) {
                found.push(format!("{} was emitted twice", emit.event.id));
            }
        }
    }
}
