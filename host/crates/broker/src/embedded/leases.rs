//! Owning partitions, and finding those that need an owner.

use std::sync::Arc;

use async_trait::async_trait;
use keyrail_ordering::{EntryId, EntryRef, Generation, Lease, OwnerId, PartitionSpec, StreamId};
use redb::ReadableDatabase;

use super::EmbeddedBroker;
use super::live::{LiveLease, LocalHeartbeat};
use super::reading::{self, Pinned};
use super::records::attempts::StoredAttempts;
use super::records::leases::{self, LeaseRecord};
use super::records::{attempts, halts, parse_key, partition_key, partition_of, ready, source_of, state, storage};
use super::writer::Batch;
use crate::{AcquireError, Acquired, Bell, Bells, Error, Heartbeat, Leases, ReadySet, ReadySource};

/// A state that is not larger comes with acquire.
const STATE_PREFETCH_MAX_BYTES: usize = 16 << 10;
/// Keys of a ready set that one call looks at, at least, if many of them have owners.
const READY_LOOK_MIN: usize = 64;

#[async_trait]
impl Leases for EmbeddedBroker {
    async fn acquire(
        &self,
        partition: Arc<PartitionSpec>,
        owner: &OwnerId,
        ttl_ms: u64,
        take_max: usize,
    ) -> Result<Acquired, AcquireError> {
        let owner = owner.clone();
        self.writer.call(move |batch| acquire(batch, partition, owner, ttl_ms, take_max)).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), Error> {
        let lease = lease.clone();
        self.writer
            .call(move |batch| {
                if !batch.shared.live.holds(&lease, batch.shared.now_ms()) {
                    return Ok(());
                }
                batch.writes();
                end(batch, &lease)?;
                let (source, key) = (source_of(&lease.partition.id), lease.partition.id.key());
                if batch.tables.ready.contains(&source, key)? {
                    batch.bells.push(Bell::Ready { source, key: key.clone() });
                }
                Ok(())
            })
            .await
    }

    fn heartbeat(&self) -> Box<dyn Heartbeat> {
        Box::new(LocalHeartbeat { live: self.shared.live.clone(), clock: self.shared.settings.lease_clock.clone() })
    }

    async fn ready(&self, source: &ReadySource, cursor: u64, limit: usize) -> Result<ReadySet, Error> {
        let txn = self.shared.database.begin_read().map_err(storage)?;
        let order = txn.open_table(ready::ORDER).map_err(storage)?;
        let tries = txn.open_table(attempts::TABLE).map_err(storage)?;
        let (now_ms, wall_ms) = (self.shared.now_ms(), self.shared.wall_ms());
        let look_max = limit.max(READY_LOOK_MIN);
        let looked_at = ready::list(&order, source, cursor, look_max)?;
        let full = looked_at.len() == look_max;
        let (mut keys, mut last) = (vec![], None);
        for (number, key) in looked_at {
            if keys.len() == limit {
                return Ok(ReadySet { keys, next: last.map(|last: u64| last + 1).or(Some(cursor)) });
            }
            last = Some(number);
            let partition = partition_of(source, parse_key(&key)?);
            if self.shared.live.holder(&partition, now_ms).is_some() {
                continue;
            }
            let waits = attempts::get(&tries, &partition)?.is_some_and(|record| record.wait_ms(wall_ms) > 0);
            if !waits {
                keys.push(partition.key().clone());
            }
        }
        Ok(ReadySet { keys, next: last.filter(|_| full).map(|last| last + 1) })
    }

    async fn bells(&self, sources: Vec<ReadySource>) -> Result<Bells, Error> {
        Ok(self.listen(sources))
    }
}

fn acquire(
    batch: &mut Batch<'_, '_>,
    partition: Arc<PartitionSpec>,
    owner: OwnerId,
    ttl_ms: u64,
    take_max: usize,
) -> Result<Acquired, AcquireError> {
    let (id, tables, shared) = (&partition.id, &*batch.tables, batch.shared);
    if let Some(record) = halts::get(&tables.halts, id)? {
        return Err(AcquireError::Halted(Box::new(record)));
    }
    let now_ms = shared.now_ms();
    if let Some((owner, generation)) = shared.live.holder(id, now_ms) {
        return Err(AcquireError::Held { holder: format!("{owner}:{generation}") });
    }
    let known = attempts::get(&tables.attempts, id)?;
    let (known, crashed) = match crashed_head(batch, &partition)? {
        Some(head) => {
            let record = known.filter(|record| record.head == head).unwrap_or_else(|| StoredAttempts::none(head));
            (Some(StoredAttempts { crashes: record.crashes + 1, ..record }), true)
        }
        None => (known, false),
    };
    // A head that has failed before stays the head, even if a preferred stream has got entries meanwhile.
    let pinned = match &known {
        Some(record) => {
            let head = reading::span(tables, &id.group, &record.head.stream)?.and_then(|span| span.head());
            (head == Some(record.head.id)).then(|| Pinned { stream: record.head.stream.clone(), at_most: 1 })
        }
        None => None,
    };
    let read = reading::read(tables, &partition, None, pinned, take_max)?;
    let positions = positions(batch, &partition)?;
    let state = state::all(&tables.state.values, partition_key(id), STATE_PREFETCH_MAX_BYTES)?;

    batch.writes();
    if crashed && let Some(record) = &known {
        attempts::put(&mut batch.tables.attempts, id, record)?;
    }
    let generation = Generation(batch.memory.counters.next_generation());
    let serving = read.serving.as_ref().map(|serving| serving.stream.clone());
    let record = LeaseRecord { owner: owner.clone(), generation, serving };
    leases::put(&mut batch.tables.leases, id, &record)?;
    if read.nothing_left() {
        batch.tables.ready.remove(&mut batch.memory.counters, &source_of(id), id.key())?;
    }
    let expires_at_ms = now_ms.saturating_add(ttl_ms);
    let live = LiveLease { owner: owner.clone(), generation, expires_at_ms, serving: read.serving };
    shared.live.insert(id.clone(), live);
    let first = read.entries.first().map(|entry| &entry.at);
    let attempts =
        known.filter(|record| Some(&record.head) == first).map(|record| record.into_record(shared.wall_ms()));
    let lease = Lease { partition: partition.clone(), owner, generation };
    Ok(Acquired { lease, entries: read.entries, attempts, positions, more: read.more, state })
}

/// The head on which the last owner died: its lease lapsed, it was not released, and it had entries in hand.
fn crashed_head(batch: &Batch<'_, '_>, partition: &PartitionSpec) -> Result<Option<EntryRef>, Error> {
    let last = leases::get(&batch.tables.leases, &partition.id)?;
    let Some(stream) = last.and_then(|last| last.serving) else { return Ok(None) };
    let head = reading::span(batch.tables, &partition.id.group, &stream)?.and_then(|span| span.head());
    Ok(head.map(|id| EntryRef { stream, id }))
}

/// Per stream the id before the first entry that is not settled. For a group that starts late that is where the others
/// have got to: what they have dropped is no gap.
fn positions(batch: &Batch<'_, '_>, partition: &PartitionSpec) -> Result<Vec<(StreamId, EntryId)>, Error> {
    let mut positions = vec![];
    for stream in &partition.streams {
        let span = reading::span(batch.tables, &partition.id.group, stream)?;
        if let Some(before) = span.and_then(|span| Some(EntryId::new(span.epoch, span.from.checked_sub(1)?))) {
            positions.push((stream.clone(), before));
        }
    }
    Ok(positions)
}

/// Ends a lease that holds: its entries go back, and its owner is remembered.
pub(super) fn end(batch: &mut Batch<'_, '_>, lease: &Lease) -> Result<(), Error> {
    let record = LeaseRecord { owner: lease.owner.clone(), generation: lease.generation, serving: None };
    leases::put(&mut batch.tables.leases, &lease.partition.id, &record)?;
    batch.shared.live.remove(&lease.partition.id);
    Ok(())
}
