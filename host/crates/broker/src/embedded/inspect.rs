//! Looking without touching: all in read transactions. Pages are cut by numbers that never change, so that nothing is listed
//! twice or left out because something else moved.

use async_trait::async_trait;
use keyrail_ordering::{CategoryName, EntryId, Key, PartitionId, StreamId};
use redb::{ReadableDatabase, ReadableTableMetadata};

use super::records::{
    counters, dead, deliveries, entries, halts, outbox, parse_key, partition_key, ready, source_key, state, storage,
    streams,
};
use super::shared_log::stream_of;
use super::{EmbeddedBroker, Shared, find, lag};
use crate::{
    Backlog, Error, Inspect, Lag, PartitionRow, ReadFrom, Reading, ReadySource, Rows, SharedSource, Snapshot, StateRow,
    Wanted,
};

#[async_trait]
impl Inspect for EmbeddedBroker {
    async fn find(&self, source: &ReadySource, wanted: &Wanted, cursor: u64, limit: usize) -> Rows<PartitionRow> {
        let (source, wanted) = (source.clone(), wanted.clone());
        self.read(move |shared| find::find(shared, &source, &wanted, cursor, limit)).await
    }

    async fn waiting_keys(&self, source: &ReadySource, cursor: u64, limit: usize) -> Rows<Key> {
        let source = source.clone();
        self.read(move |shared| {
            let txn = shared.database.begin_read().map_err(storage)?;
            let order = txn.open_table(ready::ORDER).map_err(storage)?;
            let listed = ready::list(&order, &source, cursor, limit)?;
            let next = listed.last().filter(|_| listed.len() == limit).map(|(number, _)| number + 1);
            let keys = listed.iter().map(|(_, key)| parse_key(key)).collect::<Result<_, _>>()?;
            Ok((keys, next))
        })
        .await
    }

    async fn states(&self, source: &ReadySource, cursor: u64, limit: usize) -> Rows<StateRow> {
        let source = source.clone();
        self.read(move |shared| states(shared, &source, cursor, limit)).await
    }

    async fn snapshot(
        &self,
        partition: &PartitionId,
        from: &[(StreamId, EntryId)],
        limit: usize,
    ) -> Result<Snapshot, Error> {
        let (partition, from) = (partition.clone(), from.to_vec());
        self.read(move |shared| snapshot(shared, &partition, &from, limit)).await
    }

    async fn read_streams(&self, streams: &[(StreamId, ReadFrom)], limit: usize) -> Result<Reading, Error> {
        let streams = streams.to_vec();
        self.read(move |shared| {
            let at_ms = shared.wall_ms();
            let txn = shared.database.begin_read().map_err(storage)?;
            let table = txn.open_table(entries::TABLE).map_err(storage)?;
            let read = |(stream, from): &(StreamId, ReadFrom)| match from {
                ReadFrom::After(id) => entries::kept(&table, stream, EntryId::new(id.epoch, id.sequence + 1), limit),
                ReadFrom::Since(ms) => entries::newest(&table, stream, *ms, limit),
            };
            Ok(Reading { at_ms, entries: streams.iter().map(read).collect::<Result<_, _>>()? })
        })
        .await
    }

    async fn lag(&self, source: &ReadySource, sample_max: usize) -> Result<Lag, Error> {
        let source = source.clone();
        self.read(move |shared| lag::lag(shared, &source, sample_max)).await
    }

    async fn published(&self, categories: &[CategoryName]) -> Result<Vec<Option<u64>>, Error> {
        let txn = self.shared.database.begin_read().map_err(storage)?;
        let counts = txn.open_table(counters::PUBLISHED).map_err(storage)?;
        let count =
            |category: &CategoryName| Ok(counts.get(category.as_str()).map_err(storage)?.map(|row| row.value()));
        categories.iter().map(count).collect()
    }

    async fn letters_kept(&self, _: &[CategoryName]) -> Result<u64, Error> {
        let txn = self.shared.database.begin_read().map_err(storage)?;
        txn.open_table(dead::TABLE).map_err(storage)?.len().map_err(storage)
    }

    async fn live_keys(&self, category: &CategoryName) -> Result<u64, Error> {
        let category = category.clone();
        self.read(move |shared| {
            let txn = shared.database.begin_read().map_err(storage)?;
            streams::count(&txn.open_table(streams::INDEX).map_err(storage)?, category.as_str())
        })
        .await
    }

    async fn backlog(&self, sources: &[ReadySource]) -> Result<Backlog, Error> {
        let txn = self.shared.database.begin_read().map_err(storage)?;
        let counts = txn.open_table(counters::READY).map_err(storage)?;
        let halted = txn.open_table(halts::TABLE).map_err(storage)?;
        let mut backlog = Backlog {
            outbox: txn.open_table(outbox::TABLE).map_err(storage)?.len().map_err(storage)?,
            abandoned: txn.open_table(outbox::ABANDONED).map_err(storage)?.len().map_err(storage)?,
            ..Backlog::default()
        };
        let streams = txn.open_table(streams::TABLE).map_err(storage)?;
        let next = txn.open_table(deliveries::NEXT).map_err(storage)?;
        for source in sources {
            if let ReadySource::Shared { group, category } = source {
                let source = SharedSource { group: group.clone(), category: category.clone() };
                backlog.ready += self.shared.deliveries.count(&source);
                if let Some(record) = streams::get(&streams, &stream_of(&source))? {
                    let next = deliveries::next(&next, &source, record.epoch)?.clamp(record.first, record.next);
                    backlog.ready += record.next - next;
                }
                continue;
            }
            backlog.ready += counts.get(source_key(source)).map_err(storage)?.map_or(0, |row| row.value());
            backlog.halted += halts::count(&halted, source_key(source))?;
        }
        Ok(backlog)
    }
}

fn snapshot(
    shared: &Shared,
    partition: &PartitionId,
    from: &[(StreamId, EntryId)],
    limit: usize,
) -> Result<Snapshot, Error> {
    let txn = shared.database.begin_read().map_err(storage)?;
    let values = txn.open_table(state::TABLE).map_err(storage)?;
    let state = state::all(&values, partition_key(partition), usize::MAX)?.unwrap_or_default();
    let table = txn.open_table(entries::TABLE).map_err(storage)?;
    let mut kept = vec![];
    for (stream, id) in from {
        kept.extend(entries::kept(&table, stream, *id, limit)?);
    }
    Ok(Snapshot { state, entries: kept })
}

fn states(shared: &Shared, source: &ReadySource, cursor: u64, limit: usize) -> Rows<StateRow> {
    let txn = shared.database.begin_read().map_err(storage)?;
    let values = txn.open_table(state::TABLE).map_err(storage)?;
    let listed = state::list(&txn.open_table(state::LIST).map_err(storage)?, source_key(source), cursor, limit)?;
    let next = listed.last().filter(|_| listed.len() == limit).map(|(number, _)| number + 1);
    let category = match source {
        ReadySource::Category { category, .. } | ReadySource::Shared { category, .. } => Some(category.clone()),
        ReadySource::ProcessManager { .. } => None,
    };
    let (group, category_name) = source_key(source);
    let mut rows = vec![];
    for (_, key) in listed {
        let values = state::all(&values, (group, category_name, &key), usize::MAX)?.unwrap_or_default();
        rows.push(StateRow { category: category.clone(), key: parse_key(&key)?, values });
    }
    Ok((rows, next))
}
