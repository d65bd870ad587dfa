//! The log of categories that are not partitioned.
//!
//! A group's place in the one stream is three things: where new entries begin, which are given out or wait, and from these
//! the cursor, up to which everything is settled. Invariant: an entry is settled, pending or new, and never two of these.

use async_trait::async_trait;
use keyrail_ordering::{Effects, EntryId, EntryRef, Lane, OwnerId, StreamId};

use super::EmbeddedBroker;
use super::letters::dead_letter;
use super::log::TRIM_MAX;
use super::publish::{look, trim};
use super::records::dead::DeadTables;
use super::records::deliveries::DeliveryRecord;
use super::records::streams::StreamRecord;
use super::records::{attempts, cursors, entries, outbox, streams};
use super::writer::Batch;
use crate::{Bell, By, Delivery, DeliveryRef, Error, FencedError, ReadySource, SharedLog, SharedSource, SharedTaken};

#[async_trait]
impl SharedLog for EmbeddedBroker {
    async fn take_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        max: usize,
        idle_min_ms: u64,
    ) -> Result<SharedTaken, Error> {
        let (source, owner) = (source.clone(), owner.clone());
        self.writer.call(move |batch| take(batch, &source, &owner, max, idle_min_ms)).await
    }

    async fn keep_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        deliveries: &[DeliveryRef],
    ) -> Result<(), Error> {
        self.shared.deliveries.keep(source, owner, deliveries, self.shared.now_ms());
        Ok(())
    }

    async fn commit_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        effects: Effects,
    ) -> Result<(), FencedError> {
        let (source, owner) = (source.clone(), owner.clone());
        self.writer
            .call(move |batch| {
                fence(batch, &source, &owner, delivery)?;
                if !effects.state.is_empty() {
                    let why = format!("{} is not partitioned, so its handlers have no state", source.category);
                    return Err(Error::Refused(why).into());
                }
                batch.writes();
                for outgoing in &effects.emits {
                    outbox::put(&mut batch.tables.outbox, batch.memory.counters.next_outbox(), outgoing)?;
                }
                if !effects.emits.is_empty() {
                    batch.bells.push(Bell::Outbox);
                }
                Ok(settle(batch, &source, delivery.id)?)
            })
            .await
    }

    async fn fail_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        error: &str,
        after_ms: u64,
    ) -> Result<(), FencedError> {
        let (source, owner, error) = (source.clone(), owner.clone(), attempts::cut(error).to_owned());
        self.writer
            .call(move |batch| {
                let record = fence(batch, &source, &owner, delivery)?;
                batch.writes();
                let due_at_ms = batch.shared.wall_ms().saturating_add(after_ms);
                let attempts = record.attempts.saturating_add(1);
                let record = DeliveryRecord { attempts, due_at_ms, wait_ms: after_ms, last_error: error, ..record };
                Ok(put_back(batch, &source, delivery.id, record)?)
            })
            .await
    }

    async fn return_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        deliveries: &[DeliveryRef],
    ) -> Result<(), Error> {
        let (source, owner, deliveries) = (source.clone(), owner.clone(), deliveries.to_vec());
        self.writer
            .call(move |batch| {
                for delivery in deliveries {
                    match fence(batch, &source, &owner, delivery) {
                        Ok(record) => {
                            batch.writes();
                            put_back(batch, &source, delivery.id, DeliveryRecord { wait_ms: 0, ..record })?;
                        }
                        Err(FencedError::Broker(error)) => return Err(error),
                        Err(_) => {}
                    }
                }
                Ok(())
            })
            .await
    }

    async fn set_aside_shared(
        &self,
        source: &SharedSource,
        owner: &OwnerId,
        delivery: DeliveryRef,
        error: &str,
    ) -> Result<(), FencedError> {
        let (source, owner, error) = (source.clone(), owner.clone(), attempts::cut(error).to_owned());
        self.writer
            .call(move |batch| {
                let record = fence(batch, &source, &owner, delivery)?;
                let at = EntryRef { stream: stream_of(&source), id: delivery.id };
                let entry = entries::one(&batch.tables.entries, &at)?;
                batch.writes();
                let tries = (record.attempts.saturating_add(1), error);
                let by = By { who: owner.to_string(), reason: "no try of it is left".into() };
                let letter = dead_letter(batch, &source.group, &entry, tries, by)?;
                DeadTables::open(batch.tables.txn)?.put(&letter)?;
                Ok(settle(batch, &source, delivery.id)?)
            })
            .await
    }
}

pub(super) fn stream_of(source: &SharedSource) -> StreamId {
    StreamId { category: source.category.clone(), key: None, lane: Lane::Primary }
}

fn ready_source(source: &SharedSource) -> ReadySource {
    ReadySource::Shared { group: source.group.clone(), category: source.category.clone() }
}

fn take(
    batch: &mut Batch<'_, '_>,
    source: &SharedSource,
    owner: &OwnerId,
    max: usize,
    idle_min_ms: u64,
) -> Result<SharedTaken, Error> {
    if batch.memory.paused.covers(&source.category, None) {
        return Ok(SharedTaken::default());
    }
    let (shared, stream, now_ms) = (batch.shared, stream_of(source), batch.shared.now_ms());
    let mut chosen = vec![];
    shared.deliveries.with(source, |pending| {
        chosen.extend(pending.due(now_ms, max).into_iter().map(|id| (id, 0)));
        let room = max - chosen.len();
        chosen.extend(pending.abandoned(now_ms, idle_min_ms, room).into_iter().map(|id| (id, 1)));
    });
    let mut deliveries = vec![];
    for (id, crashes) in chosen {
        let record = batch.tables.deliveries.get(source, id)?.unwrap_or_default();
        let record = DeliveryRecord { crashes: record.crashes.saturating_add(crashes), ..record };
        let entry = entries::one(&batch.tables.entries, &EntryRef { stream: stream.clone(), id })?;
        deliveries.push((entry, record));
    }
    let (mut has_new, mut next) = (false, None);
    if let Some(record) = streams::get(&batch.tables.streams, &stream)? {
        let from = first_new(batch, source, record)?;
        let end = record.next.min(from.saturating_add((max - deliveries.len()) as u64));
        for entry in entries::read(&batch.tables.entries, &stream, record.epoch, from..end)? {
            deliveries.push((entry, DeliveryRecord::default()));
        }
        has_new = end < record.next;
        next = (from < end).then_some(EntryId::new(record.epoch, end));
    }

    if !deliveries.is_empty() {
        batch.writes();
    }
    let mut taken = SharedTaken::default();
    for (entry, record) in deliveries {
        let (id, count) = (entry.at.id, record.count + 1);
        let record = DeliveryRecord { count, is_out: true, ..record };
        batch.tables.deliveries.put(source, id, &record)?;
        shared.deliveries.with(source, |pending| pending.give(id, owner, count, now_ms));
        taken.deliveries.push(Delivery { entry, count, attempts: record.attempts, crashes: record.crashes });
    }
    if let Some(next) = next {
        batch.tables.deliveries.put_next(source, next)?;
    }
    let due_ms = shared.deliveries.with(source, |pending| pending.due_in_ms(now_ms, idle_min_ms));
    taken.more = has_new || due_ms == Some(0);
    taken.due_ms = due_ms.filter(|due_ms| *due_ms > 0);
    Ok(taken)
}

/// The sequence of the first entry that was never given to this group. What others have settled and dropped meanwhile is
/// no gap.
fn first_new(batch: &Batch<'_, '_>, source: &SharedSource, record: StreamRecord) -> Result<u64, Error> {
    Ok(batch.tables.deliveries.next(source, record.epoch)?.clamp(record.first, record.next))
}

/// What is known of the delivery, if it is still this owner's.
fn fence(
    batch: &Batch<'_, '_>,
    source: &SharedSource,
    owner: &OwnerId,
    delivery: DeliveryRef,
) -> Result<DeliveryRecord, FencedError> {
    if !batch.shared.deliveries.with(source, |pending| pending.has(owner, delivery)) {
        return Err(FencedError::Fenced);
    }
    batch.tables.deliveries.get(source, delivery.id)?.ok_or(FencedError::Fenced)
}

/// Settles an entry, moves the cursor up to the lowest that is not, and drops what all groups have settled.
fn settle(batch: &mut Batch<'_, '_>, source: &SharedSource, id: EntryId) -> Result<(), Error> {
    let stream = stream_of(source);
    batch.tables.deliveries.remove(source, id)?;
    batch.shared.deliveries.with(source, |pending| pending.forget(id));
    let Some(record) = streams::get(&batch.tables.streams, &stream)? else { return Ok(()) };
    let pending = batch.tables.deliveries.lowest(source, record.epoch)?;
    let lowest = pending.map_or_else(|| first_new(batch, source, record), Ok)?;
    if let Some(settled) = lowest.checked_sub(1) {
        cursors::put(&mut batch.tables.cursors, &source.group, &stream, EntryId::new(record.epoch, settled))?;
    }
    trim(batch, &stream, TRIM_MAX)
}

/// Puts an entry back for any host, and lets the hosts know.
fn put_back(
    batch: &mut Batch<'_, '_>,
    source: &SharedSource,
    id: EntryId,
    record: DeliveryRecord,
) -> Result<(), Error> {
    let due_ms = batch.shared.now_ms().saturating_add(record.wait_ms);
    batch.tables.deliveries.put(source, id, &DeliveryRecord { is_out: false, ..record })?;
    batch.shared.deliveries.with(source, |pending| pending.wait(id, due_ms));
    look(batch.bells, &ready_source(source));
    Ok(())
}

/// Takes everything away from those who have it: they are fenced, and no crash is counted.
pub(super) fn take_away(batch: &mut Batch<'_, '_>, source: &SharedSource) -> Result<(), Error> {
    for id in batch.shared.deliveries.with(source, |pending| pending.all_out()) {
        if let Some(record) = batch.tables.deliveries.get(source, id)? {
            put_back(batch, source, id, DeliveryRecord { wait_ms: 0, ..record })?;
        }
    }
    Ok(())
}
