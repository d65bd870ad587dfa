//! What operators do. Each action checks first, then changes everything in one step, its record in the audit included.

use async_trait::async_trait;
use keyrail_ordering::{CategoryName, EntryId, EntryRef, GroupName, HaltRecord, Key, PartitionId, PartitionSpec};
use redb::ReadableDatabase;

use super::letters::{self, dead_letter};
use super::log::TRIM_MAX;
use super::publish::{make_ready, trim};
use super::reading::{present_head, span};
use super::records::dead::DeadTables;
use super::records::halts::HaltOrder;
use super::records::leases::LeaseRecord;
use super::records::{
    attempts, audit, cursors, entries, halts, leases, parse_key, partition_of, paused, source_key, source_of, storage,
};
use super::writer::Batch;
use super::{EmbeddedBroker, pausing};
use crate::{
    AuditRow, Bell, By, DeadLetter, Error, Head, HeadAction, Operate, OperateError, Paused, ReadySource, Rows,
};

#[async_trait]
impl Operate for EmbeddedBroker {
    async fn head(&self, partition: &PartitionSpec) -> Result<Option<Head>, Error> {
        let partition = partition.clone();
        self.writer.call(move |batch| head(batch, &partition)).await
    }

    async fn act_on_head(
        &self,
        partition: &PartitionSpec,
        head: &EntryRef,
        action: HeadAction,
        by: &By,
    ) -> Result<(), OperateError> {
        let (partition, head, by) = (partition.clone(), head.clone(), by.clone());
        self.writer.call(move |batch| act(batch, &partition, &head, action, by)).await
    }

    async fn halted(&self, source: &ReadySource, cursor: u64, limit: usize) -> Rows<(PartitionId, HaltRecord)> {
        let source = source.clone();
        self.read(move |shared| {
            let txn = shared.database.begin_read().map_err(storage)?;
            let order = txn.open_table(halts::ORDER).map_err(storage)?;
            let records = txn.open_table(halts::TABLE).map_err(storage)?;
            let listed = halts::list(&order, source_key(&source), cursor, limit)?;
            let next = listed.last().filter(|_| listed.len() == limit).map(|(number, _)| number + 1);
            let mut rows = vec![];
            for (_, key) in listed {
                let partition = partition_of(&source, parse_key(&key)?);
                rows.extend(halts::get(&records, &partition)?.map(|record| (partition, record)));
            }
            Ok((rows, next))
        })
        .await
    }

    async fn pause(&self, category: &CategoryName, key: Option<&Key>, by: &By) -> Result<bool, Error> {
        let (category, key, by) = (category.clone(), key.cloned(), by.clone());
        self.writer.call(move |batch| pausing::pause(batch, &category, key.as_ref(), by)).await
    }

    async fn resume(&self, category: &CategoryName, key: Option<&Key>, by: &By) -> Result<bool, Error> {
        let (category, key, by) = (category.clone(), key.cloned(), by.clone());
        self.writer.call(move |batch| pausing::resume(batch, &category, key.as_ref(), by)).await
    }

    async fn paused(&self, category: &CategoryName) -> Result<Vec<Paused>, Error> {
        let txn = self.shared.database.begin_read().map_err(storage)?;
        paused::list(&txn.open_table(paused::TABLE).map_err(storage)?, category)
    }

    async fn dead_letters(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        cursor: u64,
        limit: usize,
    ) -> Rows<DeadLetter> {
        let (category, key) = (category.clone(), key.cloned());
        self.read(move |shared| letters::list(shared, &category, key.as_ref(), cursor, limit)).await
    }

    async fn dead_letter(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
    ) -> Result<Option<DeadLetter>, Error> {
        let (category, key) = (category.clone(), key.cloned());
        self.read(move |shared| letters::one(shared, &category, key.as_ref(), id)).await
    }

    async fn redrive(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
        by: &By,
    ) -> Result<EntryId, OperateError> {
        let (category, key, by) = (category.clone(), key.cloned(), by.clone());
        self.writer.call(move |batch| letters::redrive(batch, &category, key.as_ref(), id, by)).await
    }

    async fn purge(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
        by: &By,
    ) -> Result<(), OperateError> {
        let (category, key, by) = (category.clone(), key.cloned(), by.clone());
        self.writer.call(move |batch| letters::purge(batch, &category, key.as_ref(), id, by)).await
    }

    async fn record(&self, action: &str, target: &str, by: &By) -> Result<(), Error> {
        let (action, target, by) = (action.to_owned(), target.to_owned(), by.clone());
        self.writer
            .call(move |batch| {
                batch.writes();
                record(batch, &action, target, String::new(), by)
            })
            .await
    }

    async fn audit(&self, cursor: u64, limit: usize) -> Rows<AuditRow> {
        let from = if cursor == 0 { u64::MAX } else { cursor };
        self.read(move |shared| {
            let txn = shared.database.begin_read().map_err(storage)?;
            audit::list(&txn.open_table(audit::TABLE).map_err(storage)?, from, limit)
        })
        .await
    }
}

fn head(batch: &Batch<'_, '_>, partition: &PartitionSpec) -> Result<Option<Head>, Error> {
    let (id, tables) = (&partition.id, &*batch.tables);
    let Some(at) = present_head(tables, partition)? else { return Ok(None) };
    let halted = halts::get(&tables.halts, id)?;
    let attempts = attempts::get(&tables.attempts, id)?.filter(|record| record.head == at && halted.is_none());
    Ok(Some(Head {
        entry: entries::one(&tables.entries, &at)?,
        attempts: attempts.map(|record| record.into_record(batch.shared.wall_ms())),
        halted,
        owner: batch.shared.live.holder(id, batch.shared.now_ms()).map(|(owner, _)| owner),
        waiting: waiting(batch, partition)?,
        paused: batch.memory.paused.covers_any(&partition.streams),
    }))
}

fn waiting(batch: &Batch<'_, '_>, partition: &PartitionSpec) -> Result<u64, Error> {
    let mut waiting = 0;
    for stream in &partition.streams {
        waiting += span(batch.tables, &partition.id.group, stream)?.map_or(0, |span| span.waiting());
    }
    Ok(waiting)
}

fn act(
    batch: &mut Batch<'_, '_>,
    partition: &PartitionSpec,
    named: &EntryRef,
    action: HeadAction,
    by: By,
) -> Result<(), OperateError> {
    let id = &partition.id;
    let present = present_head(batch.tables, partition)?;
    if present.as_ref() != Some(named) {
        return Err(OperateError::NotHead { named: named.clone(), head: present });
    }

    batch.writes();
    match action {
        HeadAction::Retry => {}
        HeadAction::Skip => settle(batch, &id.group, named)?,
        HeadAction::SetAside => {
            let tries = tries(batch, id, named)?;
            let entry = entries::one(&batch.tables.entries, named)?;
            let letter = dead_letter(batch, &id.group, &entry, tries, by.clone())?;
            DeadTables::open(batch.tables.txn)?.put(&letter)?;
            settle(batch, &id.group, named)?;
        }
    }
    take_lease_away(batch, id)?;
    attempts::remove(&mut batch.tables.attempts, id)?;
    halts::remove(&mut batch.tables.halts, &mut HaltOrder::open(batch.tables.txn)?, id)?;
    let (source, key) = (source_of(id), id.key());
    if waiting(batch, partition)? == 0 {
        batch.tables.ready.remove(&mut batch.memory.counters, &source, key)?;
    } else if batch.tables.ready.contains(&source, key)? {
        batch.bells.push(Bell::Ready { source, key: key.clone() });
    } else {
        make_ready(batch.tables, &mut batch.memory.counters, batch.bells, &source, key)?;
    }
    let action = match action {
        HeadAction::Retry => "retry",
        HeadAction::Skip => "skip",
        HeadAction::SetAside => "set-aside",
    };
    Ok(record(batch, action, id.to_string(), named.to_string(), by)?)
}

/// The failed tries of a head, and what the last one said.
fn tries(batch: &Batch<'_, '_>, partition: &PartitionId, head: &EntryRef) -> Result<(u32, String), Error> {
    if let Some(record) = halts::get(&batch.tables.halts, partition)?.filter(|record| record.head == *head) {
        return Ok((record.attempts, record.error));
    }
    let known = attempts::get(&batch.tables.attempts, partition)?.filter(|record| record.head == *head);
    Ok(known.map_or_else(|| (0, String::new()), |record| (record.attempts, record.last_error)))
}

fn settle(batch: &mut Batch<'_, '_>, group: &GroupName, head: &EntryRef) -> Result<(), Error> {
    cursors::put(&mut batch.tables.cursors, group, &head.stream, head.id)?;
    trim(batch, &head.stream, TRIM_MAX)
}

/// Fences whoever owns the partition. What was in hand goes back, and no crash is counted.
pub(super) fn take_lease_away(batch: &mut Batch<'_, '_>, partition: &PartitionId) -> Result<(), Error> {
    if let Some(record) = leases::get(&batch.tables.leases, partition)? {
        leases::put(&mut batch.tables.leases, partition, &LeaseRecord { serving: None, ..record })?;
    }
    batch.shared.live.remove(partition);
    Ok(())
}

/// Puts an action on record.
pub(super) fn record(
    batch: &mut Batch<'_, '_>,
    action: &str,
    target: String,
    entry: String,
    by: By,
) -> Result<(), Error> {
    let number = batch.memory.counters.next_audit();
    let row = AuditRow { at_ms: batch.shared.wall_ms(), action: action.into(), target, entry, by };
    audit::put(&mut batch.tables.txn.open_table(audit::TABLE).map_err(storage)?, number, &row)
}
