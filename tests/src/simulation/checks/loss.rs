//! Nothing is lost: at the end every event is settled, skipped, set aside, or stands behind a halted head.

use keyrail_ordering::{GroupName, PartitionId, StreamId};

use super::{Check, End};
use crate::simulation::fact::Fact;
use crate::simulation::handlers::{self, Reader};
use crate::simulation::ledger::Ledger;

#[derive(Default)]
pub(super) struct Loss;

impl Check for Loss {
    fn name(&self) -> &'static str {
        "loss"
    }

    fn see(&mut self, _at_ms: u64, _fact: &Fact, _ledger: &Ledger, _found: &mut Vec<String>) {}

    fn end(&mut self, end: &End, ledger: &Ledger, found: &mut Vec<String>) {
        for (stream, events) in &ledger.streams {
            for reader in handlers::readers(&stream.category) {
                if let Some(partition) = partition_of(&reader, stream) {
                    settled(&partition, stream, events.len(), end, ledger, found);
                    continue;
                }
                let done = ledger.shared_settled.iter().filter(|(group, of, _)| *group == reader.group && of == stream);
                let (done, all) = (done.count(), events.len());
                if done != all {
                    found.push(format!("{} of {stream} has settled {done} of {all} events", reader.group));
                }
            }
        }
        if end.halted != ledger.halted {
            found.push(format!("halted are {:?}; should be {:?}", end.halted, ledger.halted));
        }
    }
}

fn partition_of(reader: &Reader, stream: &StreamId) -> Option<PartitionId> {
    let key = stream.key.clone()?;
    let group: GroupName = reader.group.clone();
    Some(if reader.correlates {
        PartitionId { group, scope: keyrail_ordering::Scope::Correlation { value: key } }
    } else {
        PartitionId::of_key(group, stream.category.clone(), key)
    })
}

fn settled(
    partition: &PartitionId,
    stream: &StreamId,
    all: usize,
    end: &End,
    ledger: &Ledger,
    found: &mut Vec<String>,
) {
    let settled = ledger.progress(&partition.group, stream).settled;
    if settled < all && !end.halted.contains_key(partition) {
        let next = ledger.next(&partition.group, stream);
        found.push(format!(
            "{partition} is not halted and has settled {settled} of {all} of {stream}; next is {next:?}"
        ));
    }
    if settled > all {
        found.push(format!("{partition} has settled {settled} of {all} of {stream}"));
    }
}
