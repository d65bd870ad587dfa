//! Looking without touching: all in read transactions. Pages are cut by numbers that never change, so that nothing is listed
//! twice or left out because something else moved.

use async_trait::async_trait;
use keyrail_ordering::{CategoryName, EntryId, GroupName, Key, Lane, PartitionId, StreamId};
use redb::{ReadTransaction, ReadableDatabase, ReadableTableMetadata};

use super::records::catalog::Topology;
use super::records::cursors::Span;
use super::records::{
    attempts, catalog, counters, cursors, deliveries, entries, halts, lane_of, leases, outbox, parse_key,
    partition_key, partition_of, source_key, state, storage, streams, versions,
};
use super::shared_log::stream_of;
use super::{EmbeddedBroker, Shared};
use crate::{Backlog, Error, Inspect, PartitionRow, ReadySource, SharedSource, Snapshot, StateRow};

#[async_trait]
impl Inspect for EmbeddedBroker {
    async fn partitions(
        &self,
        source: &ReadySource,
        cursor: u64,
        limit: usize,
    ) -> Result<(Vec<PartitionRow>, Option<u64>), Error> {
        let source = source.clone();
        self.read(move |shared| partitions(shared, &source, cursor, limit)).await
    }

    async fn states(
        &self,
        source: &ReadySource,
        cursor: u64,
        limit: usize,
    ) -> Result<(Vec<StateRow>, Option<u64>), Error> {
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

fn states(
    shared: &Shared,
    source: &ReadySource,
    cursor: u64,
    limit: usize,
) -> Result<(Vec<StateRow>, Option<u64>), Error> {
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

fn partitions(
    shared: &Shared,
    source: &ReadySource,
    cursor: u64,
    limit: usize,
) -> Result<(Vec<PartitionRow>, Option<u64>), Error> {
    let txn = shared.database.begin_read().map_err(storage)?;
    let (catalog, _) = catalog::get(&txn.open_table(catalog::TABLE).map_err(storage)?)?;
    let categories = match source {
        ReadySource::Category { category, .. } | ReadySource::Shared { category, .. } => vec![category.clone()],
        ReadySource::ProcessManager { group } => Topology::of(&catalog).managers.remove(group).unwrap_or_default(),
    };
    let index = txn.open_table(streams::INDEX).map_err(storage)?;
    let mut listed = vec![];
    for category in &categories {
        let page = streams::list(&index, category.as_str(), cursor, limit)?;
        listed.extend(page.into_iter().map(|(epoch, key, lane)| (epoch, category, key, lane)));
    }
    // Epochs are unique in the store, so one cursor serves several categories.
    listed.sort_unstable();
    let full = listed.len() >= limit;
    listed.truncate(limit);
    let next = listed.last().filter(|_| full).map(|(epoch, ..)| epoch + 1);
    let reader = Reader::new(shared, &txn)?;
    let mut rows = vec![];
    for (epoch, category, key, lane) in listed {
        if key.is_empty() {
            continue;
        }
        let key = parse_key(&key)?;
        let first = StreamId { category: category.clone(), key: Some(key.clone()), lane: lane_of(lane)? };
        if let Some(row) = reader.row(partition_of(source, key), &categories, epoch, &first)? {
            rows.push(row);
        }
    }
    Ok((rows, next))
}

/// Everything that a row is made of, in one snapshot.
struct Reader<'a> {
    shared: &'a Shared,
    streams: redb::ReadOnlyTable<super::records::StreamKey, streams::StreamValue>,
    cursors: redb::ReadOnlyTable<cursors::CursorKey, cursors::CursorValue>,
    leases: redb::ReadOnlyTable<super::records::PartitionKey, &'static [u8]>,
    attempts: redb::ReadOnlyTable<super::records::PartitionKey, &'static [u8]>,
    halts: redb::ReadOnlyTable<super::records::PartitionKey, &'static [u8]>,
    versions: redb::ReadOnlyTable<super::records::PartitionKey, &'static [u8]>,
}

impl<'a> Reader<'a> {
    fn new(shared: &'a Shared, txn: &ReadTransaction) -> Result<Self, Error> {
        Ok(Self {
            shared,
            streams: txn.open_table(streams::TABLE).map_err(storage)?,
            cursors: txn.open_table(cursors::TABLE).map_err(storage)?,
            leases: txn.open_table(leases::TABLE).map_err(storage)?,
            attempts: txn.open_table(attempts::TABLE).map_err(storage)?,
            halts: txn.open_table(halts::TABLE).map_err(storage)?,
            versions: txn.open_table(versions::TABLE).map_err(storage)?,
        })
    }

    /// The row of a partition that was found by the stream `found` of this epoch; none if it is listed at another of its
    /// streams: each partition is listed once, at its oldest.
    fn row(
        &self,
        partition: PartitionId,
        categories: &[CategoryName],
        epoch: u64,
        found: &StreamId,
    ) -> Result<Option<PartitionRow>, Error> {
        let (mut last, mut settled, mut waiting) = (None, None, 0);
        let mut heads = vec![];
        for stream in streams_of(categories, partition.key()) {
            let Some((record_epoch, stream_last, span)) = self.span(&partition.group, &stream)? else { continue };
            if record_epoch < epoch && stream != *found {
                return Ok(None);
            }
            if stream.lane == Lane::Primary && last.is_none() {
                (last, settled) = (stream_last, span.settled);
            }
            waiting += span.waiting();
            heads.extend(span.head().map(|id| (stream, id)));
        }
        let lease = leases::get(&self.leases, &partition)?;
        let holder = self.shared.live.holder(&partition, self.shared.now_ms());
        let attempts = attempts::get(&self.attempts, &partition)?
            .filter(|record| heads.iter().any(|(stream, id)| *stream == record.head.stream && *id == record.head.id));
        let halted = halts::get(&self.halts, &partition)?;
        let tries = attempts.map_or(0, |record| record.attempts);
        Ok(Some(PartitionRow {
            last,
            settled,
            waiting,
            owned: lease
                .as_ref()
                .is_some_and(|lease| holder.as_ref().is_some_and(|(_, generation)| *generation == lease.generation)),
            generation: lease.as_ref().map(|lease| lease.generation),
            owner: lease.map(|lease| lease.owner),
            attempts: halted.as_ref().map_or(tries, |halted| halted.attempts),
            halted,
            versions: versions::get(&self.versions, &partition)?,
            partition,
        }))
    }

    fn span(&self, group: &GroupName, stream: &StreamId) -> Result<Option<(u64, Option<EntryId>, Span)>, Error> {
        let Some(record) = streams::get(&self.streams, stream)? else { return Ok(None) };
        let span = Span::new(record, cursors::get(&self.cursors, group, stream)?);
        Ok(Some((record.epoch, record.last(), span)))
    }
}

/// The streams of a key: the primary ones, then the backfill.
fn streams_of(categories: &[CategoryName], key: &Key) -> Vec<StreamId> {
    let lane = |lane| {
        categories.iter().map(move |category| StreamId { category: category.clone(), key: Some(key.clone()), lane })
    };
    lane(Lane::Primary).chain(lane(Lane::Backfill)).collect()
}
