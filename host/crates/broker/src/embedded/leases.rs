//! Owning partitions, and finding those that need an owner.

use std::sync::Arc;

use async_trait::async_trait;
use keyrail_ordering::{CategoryName, EntryId, EntryRef, Generation, Lease, OwnerId, PartitionSpec, Scope, StreamId};
use redb::{ReadTransaction, ReadableDatabase};

use super::live::{LiveLease, LocalHeartbeat};
use super::reading::{self, Pinned};
use super::records::attempts::StoredAttempts;
use super::records::catalog::Topology;
use super::records::leases::{self, LeaseRecord};
use super::records::paused::PausedSet;
use super::records::{
    attempts, catalog, halts, parse_key, partition_key, partition_of, paused, ready, source_of, state, storage, turns,
};
use super::writer::Batch;
use super::{EmbeddedBroker, Shared};
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
        Box::new(LocalHeartbeat {
            live: self.shared.live.clone(),
            members: self.shared.members.clone(),
            bells: self.shared.bells.clone(),
            clock: self.shared.settings.lease_clock.clone(),
        })
    }

    async fn ready(&self, source: &ReadySource, cursor: u64, limit: usize) -> Result<ReadySet, Error> {
        ready_set(&self.shared, source, cursor, limit)
    }

    async fn bells(&self, sources: Vec<ReadySource>) -> Result<Bells, Error> {
        Ok(self.listen(sources))
    }
}

fn ready_set(shared: &Shared, source: &ReadySource, cursor: u64, limit: usize) -> Result<ReadySet, Error> {
    if matches!(source, ReadySource::Shared { .. }) {
        return Ok(ReadySet { keys: vec![], next: None, due_ms: None });
    }
    let txn = shared.database.begin_read().map_err(storage)?;
    let order = txn.open_table(ready::ORDER).map_err(storage)?;
    let tries = txn.open_table(attempts::TABLE).map_err(storage)?;
    let paused = PausedSet::load(&txn.open_table(paused::TABLE).map_err(storage)?)?;
    let categories = if paused.is_empty() { vec![] } else { categories_of(&txn, source)? };
    let (now_ms, wall_ms) = (shared.now_ms(), shared.wall_ms());
    let look_max = limit.max(READY_LOOK_MIN);
    let looked_at = ready::list(&order, source, cursor, look_max)?;
    let full = looked_at.len() == look_max;
    let (mut keys, mut due_ms, mut next) = (vec![], None, None);
    for (number, key) in looked_at {
        if keys.len() == limit {
            return Ok(ReadySet { keys, next: Some(number), due_ms });
        }
        next = full.then_some(number + 1);
        let partition = partition_of(source, parse_key(&key)?);
        if categories.iter().any(|category| paused.covers(category, Some(partition.key()))) {
            continue;
        }
        let lapses_in_ms = shared.live.lapses_in_ms(&partition, now_ms).unwrap_or(0);
        let wait_ms = attempts::get(&tries, &partition)?.map_or(0, |record| record.wait_ms(wall_ms));
        match lapses_in_ms.max(wait_ms) {
            0 => keys.push(partition.key().clone()),
            wait_ms => due_ms = Some(due_ms.map_or(wait_ms, |due_ms: u64| due_ms.min(wait_ms))),
        }
    }
    Ok(ReadySet { keys, next, due_ms })
}

/// The categories that partitions of this source read.
fn categories_of(txn: &ReadTransaction, source: &ReadySource) -> Result<Vec<CategoryName>, Error> {
    match source {
        ReadySource::Category { category, .. } | ReadySource::Shared { category, .. } => Ok(vec![category.clone()]),
        ReadySource::ProcessManager { group } => {
            let (catalog, _) = catalog::get(&txn.open_table(catalog::TABLE).map_err(storage)?)?;
            Ok(Topology::of(&catalog).managers.remove(group).unwrap_or_default())
        }
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
    if batch.memory.paused.covers_any(&partition.streams) {
        return Err(AcquireError::Paused);
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
    remember_turn(batch, &partition, record.serving.as_ref())?;
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

/// Puts on record which of a process manager's streams is read now.
pub(super) fn remember_turn(
    batch: &mut Batch<'_, '_>,
    partition: &PartitionSpec,
    serving: Option<&StreamId>,
) -> Result<(), Error> {
    match serving {
        Some(stream) if matches!(partition.id.scope, Scope::Correlation { .. }) => {
            turns::put(&mut batch.tables.turns, &partition.id, &stream.category)
        }
        _ => Ok(()),
    }
}

/// Ends a lease that holds: its entries go back, and its owner is remembered.
pub(super) fn end(batch: &mut Batch<'_, '_>, lease: &Lease) -> Result<(), Error> {
    let record = LeaseRecord { owner: lease.owner.clone(), generation: lease.generation, serving: None };
    leases::put(&mut batch.tables.leases, &lease.partition.id, &record)?;
    batch.shared.live.remove(&lease.partition.id);
    Ok(())
}
