//! No start past a halt: until an operator acts nobody acquires a halted partition, and no later event of it is called.
//! And no partition halts without cause: only on an event that was meant to fail, or that hosts died on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use keyrail_ordering::{EntryRef, GroupName, HaltCause, HaltRecord, PartitionId};

use super::Check;
use crate::simulation::fact::{CallEnd, CallNumber, Fact, Holder, On};
use crate::simulation::ledger::Ledger;

#[derive(Default)]
pub(super) struct Halts {
    running: BTreeMap<CallNumber, (GroupName, Arc<str>)>,
    /// Events that a handler of the group has failed.
    failed: BTreeSet<(GroupName, Arc<str>)>,
    /// Leases over an event that ended without a release.
    lapses: BTreeMap<PartitionId, u32>,
}

impl Check for Halts {
    fn name(&self) -> &'static str {
        "halts"
    }

    fn see(&mut self, _at_ms: u64, fact: &Fact, ledger: &Ledger, found: &mut Vec<String>) {
        match fact {
            Fact::Acquired { holder, .. } => {
                if let Some(record) = ledger.halted.get(&holder.partition) {
                    found.push(format!("{holder} was acquired though it is halted at {}", record.head));
                }
                if ledger.lease(&holder.partition).is_some() {
                    *self.lapses.entry(holder.partition.clone()).or_default() += 1;
                }
            }
            Fact::CallBegan { call, on: On::Lease(holder), entry, event_id, .. } => {
                self.running.insert(*call, (holder.partition.group.clone(), event_id.clone()));
                past_a_halt(*call, holder, entry, ledger, found);
            }
            Fact::CallEnded { call, how } => {
                if let Some(what) = self.running.remove(call).filter(|_| *how == CallEnd::Failed) {
                    self.failed.insert(what);
                }
            }
            Fact::Halted { holder, record } => self.halted(holder, record, ledger, found),
            _ => {}
        }
    }
}

/// The halted head itself may still be called by whoever lost the lease and does not know yet.
fn past_a_halt(call: CallNumber, holder: &Holder, entry: &EntryRef, ledger: &Ledger, found: &mut Vec<String>) {
    if let Some(record) = ledger.halted.get(&holder.partition).filter(|record| record.head != *entry) {
        found.push(format!("call {call} of {entry} began though {} is halted at {}", holder.partition, record.head));
    }
}

impl Halts {
    fn halted(&self, holder: &Holder, record: &HaltRecord, ledger: &Ledger, found: &mut Vec<String>) {
        let partition = &holder.partition;
        let meant = match record.cause {
            HaltCause::Poison | HaltCause::Rejected => ledger
                .event_at(&record.head)
                .is_some_and(|event_id| self.failed.contains(&(partition.group.clone(), event_id.clone()))),
            HaltCause::Crashed => self.lapses.get(partition).is_some_and(|lapses| *lapses > 0),
            HaltCause::Missing | HaltCause::Undecodable => false,
        };
        if !meant {
            found.push(format!(
                "{partition} halted without cause at {}: {} ({})",
                record.head, record.cause, record.error
            ));
        }
    }
}
