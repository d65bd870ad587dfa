//! The log of an owned partition. Every operation begins with the fence.

use async_trait::async_trait;
use bytes::Bytes;
use keyrail_ordering::{EntryId, EntryRef, HaltRecord, Lease};
use redb::ReadableDatabase;

use super::EmbeddedBroker;
use super::leases::{end, remember_turn};
use super::live::Serving;
use super::publish::trim;
use super::reading::{self, Pinned, Read};
use super::records::attempts::StoredAttempts;
use super::records::halts::HaltOrder;
use super::records::leases::LeaseRecord;
use super::records::{attempts, cursors, halts, leases, outbox, source_of, state, storage, versions};
use super::writer::Batch;
use crate::{Bell, Commit, Committed, Error, FencedError, Log, Taken, VersionSince};

/// Settled entries that one commit drops, at most; the next ones drop the rest.
pub(super) const TRIM_MAX: u64 = 256;

#[async_trait]
impl Log for EmbeddedBroker {
    async fn take(&self, lease: &Lease, max: usize, recover: bool) -> Result<Taken, FencedError> {
        let lease = lease.clone();
        self.writer.call(move |batch| take(batch, &lease, max, recover)).await
    }

    async fn state(&self, lease: &Lease, name: &str) -> Result<Option<Bytes>, FencedError> {
        // The owner is the only writer, so what it reads after the fence cannot be torn.
        if !self.shared.live.holds(lease, self.shared.now_ms()) {
            return Err(FencedError::Fenced);
        }
        let txn = self.shared.database.begin_read().map_err(storage)?;
        let values = txn.open_table(state::TABLE).map_err(storage)?;
        Ok(state::get(&values, &lease.partition.id, name)?)
    }

    async fn commit(&self, lease: &Lease, commit: Commit) -> Result<Committed, FencedError> {
        let lease = lease.clone();
        self.writer.call(move |batch| settle(batch, &lease, commit)).await
    }

    async fn fail(
        &self,
        lease: &Lease,
        head: &EntryRef,
        attempt: u32,
        error: &str,
        after_ms: u64,
    ) -> Result<(), FencedError> {
        let (lease, head, error) = (lease.clone(), head.clone(), attempts::cut(error).to_owned());
        self.writer.call(move |batch| fail(batch, &lease, head, attempt, error, after_ms)).await
    }

    async fn halt(&self, lease: &Lease, record: &HaltRecord) -> Result<(), FencedError> {
        let (lease, record) = (lease.clone(), record.clone());
        self.writer
            .call(move |batch| {
                let serving = fence(batch, &lease)?;
                check_head(batch, &lease, serving.as_ref(), &record.head)?;
                batch.writes();
                let id = &lease.partition.id;
                let (tables, counters) = (&mut *batch.tables, &mut batch.memory.counters);
                halts::put(&mut tables.halts, &mut HaltOrder::open(tables.txn)?, counters, id, &record)?;
                batch.tables.ready.remove(&mut batch.memory.counters, &source_of(id), id.key())?;
                Ok(end(batch, &lease)?)
            })
            .await
    }
}

/// What was delivered under the lease, if it still holds.
fn fence(batch: &Batch<'_, '_>, lease: &Lease) -> Result<Option<Serving>, FencedError> {
    batch.shared.live.fence(lease, batch.shared.now_ms())
}

fn check_head(
    batch: &Batch<'_, '_>,
    lease: &Lease,
    serving: Option<&Serving>,
    named: &EntryRef,
) -> Result<(), FencedError> {
    let head = reading::head(batch.tables, &lease.partition.id.group, serving)?;
    let same_stream = serving.is_some_and(|serving| serving.stream == named.stream);
    if same_stream && head == Some(named.id) {
        return Ok(());
    }
    Err(FencedError::NotHead { named: named.clone(), head })
}

/// Puts on record what is delivered now: in memory, and on the disk the stream, if it is another than before.
fn serve(batch: &mut Batch<'_, '_>, lease: &Lease, before: Option<&Serving>, read: &Read) -> Result<(), Error> {
    let (id, now) = (&lease.partition.id, read.serving.as_ref().map(|serving| &serving.stream));
    if now != before.map(|serving| &serving.stream) {
        batch.writes();
        let (owner, generation) = (lease.owner.clone(), lease.generation);
        let record = LeaseRecord { owner, generation, serving: now.cloned() };
        leases::put(&mut batch.tables.leases, id, &record)?;
        remember_turn(batch, &lease.partition, now)?;
    }
    if read.nothing_left() && batch.tables.ready.contains(&source_of(id), id.key())? {
        batch.writes();
        batch.tables.ready.remove(&mut batch.memory.counters, &source_of(id), id.key())?;
    }
    batch.shared.live.set_serving(lease, read.serving.clone());
    Ok(())
}

fn take(batch: &mut Batch<'_, '_>, lease: &Lease, max: usize, recover: bool) -> Result<Taken, FencedError> {
    let before = fence(batch, lease)?;
    let partition = &lease.partition;
    let read = if recover {
        let pinned = match (&before, reading::head(batch.tables, &partition.id.group, before.as_ref())?) {
            (Some(serving), Some(head)) if head < serving.end => Some(Pinned {
                stream: serving.stream.clone(),
                at_most: (serving.end.sequence - head.sequence) as usize,
            }),
            _ => None,
        };
        reading::read(batch.tables, partition, None, pinned, max)?
    } else {
        reading::read(batch.tables, partition, before.clone(), None, max)?
    };
    let attempts = match read.entries.first() {
        Some(first) if recover => attempts::get(&batch.tables.attempts, &partition.id)?
            .filter(|record| record.head == first.at)
            .map(|record| record.into_record(batch.shared.wall_ms())),
        _ => None,
    };
    serve(batch, lease, before.as_ref(), &read)?;
    Ok(Taken { entries: read.entries, attempts, more: read.more })
}

fn settle(batch: &mut Batch<'_, '_>, lease: &Lease, commit: Commit) -> Result<Committed, FencedError> {
    let before = fence(batch, lease)?;
    let id = &lease.partition.id;
    let settled = check_lowest(batch, lease, before.as_ref(), &commit.entries)?;
    let clears_attempts = attempts::get(&batch.tables.attempts, id)?.is_some();

    batch.writes();
    let stream = &settled.stream;
    cursors::put(&mut batch.tables.cursors, &id.group, stream, settled.id)?;
    if !commit.effects.state.is_empty() {
        batch.tables.state.apply(&mut batch.memory.counters, id, &commit.effects.state)?;
    }
    for outgoing in &commit.effects.emits {
        outbox::put(&mut batch.tables.outbox, batch.memory.counters.next_outbox(), outgoing)?;
    }
    if !commit.effects.emits.is_empty() {
        batch.bells.push(Bell::Outbox);
    }
    if clears_attempts {
        attempts::remove(&mut batch.tables.attempts, id)?;
    }
    if let (Some(version), Some(from)) = (&commit.version, commit.entries.first()) {
        let since = VersionSince { from: from.clone(), version: version.to_string() };
        versions::add(&mut batch.tables.txn.open_table(versions::TABLE).map_err(storage)?, id, since)?;
    }
    trim(batch, stream, TRIM_MAX)?;
    let read = reading::read(batch.tables, &lease.partition, before.clone(), None, commit.take_max)?;
    let released = commit.release && read.nothing_left();
    if released {
        batch.tables.ready.remove(&mut batch.memory.counters, &source_of(id), id.key())?;
        end(batch, lease)?;
    } else {
        serve(batch, lease, before.as_ref(), &read)?;
    }
    Ok(Committed { entries: read.entries, more: read.more, released })
}

/// Whether these are exactly the lowest delivered entries; answers with the last one.
fn check_lowest(
    batch: &Batch<'_, '_>,
    lease: &Lease,
    serving: Option<&Serving>,
    entries: &[EntryRef],
) -> Result<EntryRef, FencedError> {
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
        return Err(Error::Refused("a commit settles at least one entry".into()).into());
    };
    check_head(batch, lease, serving, first)?;
    let end = serving.map(|serving| serving.end);
    for (entry, sequence) in entries.iter().zip(first.id.sequence..) {
        let id = EntryId::new(first.id.epoch, sequence);
        if entry.id != id || entry.stream != first.stream || end.is_none_or(|end| end <= id) {
            return Err(FencedError::NotHead { named: entry.clone(), head: Some(first.id) });
        }
    }
    Ok(last.clone())
}

fn fail(
    batch: &mut Batch<'_, '_>,
    lease: &Lease,
    head: EntryRef,
    attempt: u32,
    error: String,
    after_ms: u64,
) -> Result<(), FencedError> {
    let serving = fence(batch, lease)?;
    check_head(batch, lease, serving.as_ref(), &head)?;
    let id = &lease.partition.id;
    let known = attempts::get(&batch.tables.attempts, id)?.filter(|record| record.head == head);
    let known = known.unwrap_or_else(|| StoredAttempts::none(head.clone()));
    if attempt == known.attempts {
        return Ok(());
    }
    if attempt != known.attempts + 1 {
        let recorded = known.attempts;
        return Err(Error::Refused(format!("attempt {attempt} of {head}: {recorded} are on record")).into());
    }
    batch.writes();
    let due_at_ms = batch.shared.wall_ms().saturating_add(after_ms);
    let record = StoredAttempts { attempts: attempt, due_at_ms, wait_ms: after_ms, last_error: error, ..known };
    Ok(attempts::put(&mut batch.tables.attempts, id, &record)?)
}
