//! The budget of tries is kept: tries are recorded one by one, no call skips one, and an owner knows of every try that
//! was on record when it came.

use std::collections::BTreeMap;

use keyrail_ordering::{EntryRef, PartitionId};

use super::Check;
use crate::simulation::fact::{Fact, Holder, On};
use crate::simulation::ledger::Ledger;

#[derive(Default)]
pub(super) struct Tries {
    /// Failed tries on record, of the head.
    recorded: BTreeMap<PartitionId, (EntryRef, u32)>,
    /// What was on record when the present owner came.
    inherited: BTreeMap<PartitionId, (Holder, EntryRef, u32)>,
}

impl Tries {
    fn of(&self, partition: &PartitionId, entry: &EntryRef) -> u32 {
        self.recorded.get(partition).filter(|(head, _)| head == entry).map_or(0, |(_, tries)| *tries)
    }
}

impl Check for Tries {
    fn name(&self) -> &'static str {
        "tries"
    }

    fn see(&mut self, at_ms: u64, fact: &Fact, ledger: &Ledger, found: &mut Vec<String>) {
        match fact {
            Fact::Acquired { holder, .. } => match self.recorded.get(&holder.partition) {
                Some((head, tries)) => {
                    self.inherited.insert(holder.partition.clone(), (holder.clone(), head.clone(), *tries));
                }
                None => {
                    self.inherited.remove(&holder.partition);
                }
            },
            Fact::Failed { holder, head, attempt } => {
                let before = self.of(&holder.partition, head);
                if *attempt > before + 1 {
                    found.push(format!("try {attempt} of {head} was recorded after {before}"));
                }
                self.recorded.insert(holder.partition.clone(), (head.clone(), before.max(*attempt)));
            }
            Fact::Committed { holder, .. } => {
                self.recorded.remove(&holder.partition);
                self.inherited.remove(&holder.partition);
            }
            Fact::Acted { partition, .. } => {
                self.recorded.remove(partition);
                self.inherited.remove(partition);
            }
            Fact::CallBegan { call, on: On::Lease(holder), entry, attempt, .. } if ledger.holds(holder, at_ms) => {
                let most = self.of(&holder.partition, entry) + 1;
                let inherited = self.inherited.get(&holder.partition);
                let least =
                    inherited.filter(|(of, head, _)| of == holder && head == entry).map_or(1, |(.., tries)| tries + 1);
                // A commit that its sender had given up may have settled it meanwhile.
                let group = &holder.partition.group;
                let settled =
                    ledger.event_at(entry).is_some_and(|event| ledger.has_settled(group, &entry.stream, event));
                if !settled && !(least..=most).contains(attempt) {
                    found.push(format!("call {call} of {entry} is try {attempt}; should be {least} to {most}"));
                }
            }
            _ => {}
        }
    }
}
