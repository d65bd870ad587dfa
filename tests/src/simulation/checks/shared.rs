//! Categories without partitions: an event is settled once, and only by whoever was given it last.

use std::collections::BTreeMap;

use keyrail_broker::{DeliveryRef, SharedSource};
use keyrail_ordering::{EntryId, Lane, OwnerId, StreamId};

use super::Check;
use crate::simulation::fact::Fact;
use crate::simulation::ledger::Ledger;

#[derive(Default)]
pub(super) struct Shared {
    given: BTreeMap<(SharedSource, EntryId), (OwnerId, u64)>,
}

impl Check for Shared {
    fn name(&self) -> &'static str {
        "shared"
    }

    fn see(&mut self, _at_ms: u64, fact: &Fact, ledger: &Ledger, found: &mut Vec<String>) {
        match fact {
            Fact::Delivered { source, owner, deliveries } => {
                for delivery in deliveries {
                    let place = (source.clone(), delivery.entry.at.id);
                    let before = self.given.insert(place, (owner.clone(), delivery.count));
                    if before.is_some_and(|(_, count)| count >= delivery.count) {
                        found.push(format!(
                            "{} was delivered with the count {} again",
                            delivery.entry.at, delivery.count
                        ));
                    }
                }
            }
            Fact::SharedCommitted { source, owner, delivery, .. }
            | Fact::SharedSetAside { source, owner, delivery } => {
                self.settles(source, owner, *delivery, ledger, found);
            }
            _ => {}
        }
    }
}

impl Shared {
    fn settles(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        ledger: &Ledger,
        found: &mut Vec<String>,
    ) {
        let given = self.given.get(&(source.clone(), delivery.id));
        if given != Some(&(owner.clone(), delivery.count)) {
            found.push(format!("{owner} settled {} x{}; it was given to {given:?}", delivery.id, delivery.count));
        }
        let stream = StreamId { category: source.category.clone(), key: None, lane: Lane::Primary };
        if ledger.shared_settled.contains(&(source.group.clone(), stream, delivery.id)) {
            found.push(format!("{} settled {} twice", source.group, delivery.id));
        }
    }
}
