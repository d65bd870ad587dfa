//! Finding partitions, and the rows of those that were found.
//!
//! Invariant: a page looks at a bounded number of keys, so it may be short, or empty, and go on. Pages are cut by numbers
//! that never change.

use keyrail_ordering::{CategoryName, EntryId, GroupName, Key, Lane, PartitionId, StreamId};
use redb::{ReadTransaction, ReadableDatabase};

use super::Shared;
use super::records::catalog::Topology;
use super::records::cursors::Span;
use super::records::{
    attempts, catalog, cursors, halts, lane_of, leases, parse_key, partition_of, ready, source_key, storage, streams,
    versions,
};
use crate::{Error, PartitionRow, ReadySource, Rows, Standing, Wanted, WantedKey};

/// Keys that a page looks at to find those that are wanted.
const LOOKED_MAX: usize = 10_000;
/// Keys that are read at once.
const STEP: usize = 1_000;

pub(super) fn find(
    shared: &Shared,
    source: &ReadySource,
    wanted: &Wanted,
    cursor: u64,
    limit: usize,
) -> Rows<PartitionRow> {
    if matches!(source, ReadySource::Shared { .. }) {
        return Ok((vec![], None));
    }
    let txn = shared.database.begin_read().map_err(storage)?;
    let categories = categories_of(&txn, source)?;
    let reader = Reader::new(shared, &txn)?;
    if let WantedKey::Is(key) = &wanted.key {
        let row = reader.whole_row(source, key.clone(), &categories)?;
        let found = row.filter(|row| stands(row, wanted.standing));
        return Ok((found.into_iter().collect(), None));
    }
    match wanted.standing {
        Standing::Waiting => {
            let order = txn.open_table(ready::ORDER).map_err(storage)?;
            listed(&reader, source, wanted, &categories, (cursor, limit), |at, max| {
                ready::list(&order, source, at, max)
            })
        }
        Standing::Halted => {
            let order = txn.open_table(halts::ORDER).map_err(storage)?;
            let list = |at, max| halts::list(&order, source_key(source), at, max);
            listed(&reader, source, wanted, &categories, (cursor, limit), list)
        }
        Standing::Any | Standing::Owned => {
            let index = txn.open_table(streams::INDEX).map_err(storage)?;
            indexed(&reader, source, wanted, &categories, (cursor, limit), &index)
        }
    }
}

/// The categories whose streams a source's partitions have.
pub(super) fn categories_of(txn: &ReadTransaction, source: &ReadySource) -> Result<Vec<CategoryName>, Error> {
    Ok(match source {
        ReadySource::Category { category, .. } | ReadySource::Shared { category, .. } => vec![category.clone()],
        ReadySource::ProcessManager { group } => {
            let (catalog, _) = catalog::get(&txn.open_table(catalog::TABLE).map_err(storage)?)?;
            Topology::of(&catalog).managers.remove(group).unwrap_or_default()
        }
    })
}

/// Of a list that has numbers and keys.
fn listed(
    reader: &Reader<'_>,
    source: &ReadySource,
    wanted: &Wanted,
    categories: &[CategoryName],
    (cursor, limit): (u64, usize),
    list: impl Fn(u64, usize) -> Result<Vec<(u64, String)>, Error>,
) -> Rows<PartitionRow> {
    let (mut rows, mut at, mut looked) = (vec![], cursor, 0);
    while looked < LOOKED_MAX {
        let step = list(at, STEP)?;
        let is_last = step.len() < STEP;
        for (number, key) in step {
            if rows.len() == limit {
                return Ok((rows, Some(number)));
            }
            (at, looked) = (number + 1, looked + 1);
            if wanted.key.has(&key) {
                let row = reader.whole_row(source, parse_key(&key)?, categories)?;
                rows.extend(row.filter(|row| stands(row, wanted.standing)));
            }
        }
        if is_last {
            return Ok((rows, None));
        }
    }
    Ok((rows, Some(at)))
}

/// Of the streams of the categories, in the order of their epochs, which are unique in the store: so one cursor serves
/// several categories.
fn indexed(
    reader: &Reader<'_>,
    source: &ReadySource,
    wanted: &Wanted,
    categories: &[CategoryName],
    (cursor, limit): (u64, usize),
    index: &redb::ReadOnlyTable<streams::IndexKey, streams::IndexValue>,
) -> Rows<PartitionRow> {
    let (mut rows, mut at, mut looked) = (vec![], cursor, 0);
    while looked < LOOKED_MAX {
        let mut step = vec![];
        for category in categories {
            let page = streams::list(index, category.as_str(), at, STEP)?;
            step.extend(page.into_iter().map(|(epoch, key, lane)| (epoch, category, key, lane)));
        }
        step.sort_unstable();
        let is_last = step.len() < STEP;
        step.truncate(STEP);
        for (epoch, category, key, lane) in step {
            if rows.len() == limit {
                return Ok((rows, Some(epoch)));
            }
            (at, looked) = (epoch + 1, looked + 1);
            if key.is_empty() || !wanted.key.has(&key) {
                continue;
            }
            let key = parse_key(&key)?;
            let partition = partition_of(source, key.clone());
            if wanted.standing == Standing::Owned && !reader.is_held(&partition) {
                continue;
            }
            let found = StreamId { category: category.clone(), key: Some(key), lane: lane_of(lane)? };
            let row = reader.row(partition, categories, Some((epoch, &found)))?;
            rows.extend(row.filter(|row| stands(row, wanted.standing)));
        }
        if is_last {
            return Ok((rows, None));
        }
    }
    Ok((rows, Some(at)))
}

fn stands(row: &PartitionRow, standing: Standing) -> bool {
    match standing {
        Standing::Any => true,
        Standing::Waiting => row.waiting > 0 && row.halted.is_none(),
        Standing::Owned => row.owned,
        Standing::Halted => row.halted.is_some(),
    }
}

/// Everything that a row is made of, in one snapshot.
pub(super) struct Reader<'a> {
    shared: &'a Shared,
    streams: redb::ReadOnlyTable<super::records::StreamKey, streams::StreamValue>,
    cursors: redb::ReadOnlyTable<cursors::CursorKey, cursors::CursorValue>,
    leases: redb::ReadOnlyTable<super::records::PartitionKey, &'static [u8]>,
    attempts: redb::ReadOnlyTable<super::records::PartitionKey, &'static [u8]>,
    halts: redb::ReadOnlyTable<super::records::PartitionKey, &'static [u8]>,
    versions: redb::ReadOnlyTable<super::records::PartitionKey, &'static [u8]>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(shared: &'a Shared, txn: &ReadTransaction) -> Result<Self, Error> {
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

    fn is_held(&self, partition: &PartitionId) -> bool {
        self.shared.live.holder(partition, self.shared.now_ms()).is_some()
    }

    /// The row of a partition that was found by its key.
    fn whole_row(
        &self,
        source: &ReadySource,
        key: Key,
        categories: &[CategoryName],
    ) -> Result<Option<PartitionRow>, Error> {
        self.row(partition_of(source, key), categories, None)
    }

    /// The row of a partition. If it was found by a stream of an epoch, none where it is listed at another of its streams:
    /// each partition is listed once, at its oldest.
    fn row(
        &self,
        partition: PartitionId,
        categories: &[CategoryName],
        found: Option<(u64, &StreamId)>,
    ) -> Result<Option<PartitionRow>, Error> {
        let (mut last, mut settled, mut waiting) = (None, None, 0);
        let mut heads = vec![];
        let mut is_there = false;
        for stream in streams_of(categories, partition.key()) {
            let Some((record_epoch, stream_last, span)) = self.span(&partition.group, &stream)? else { continue };
            is_there = true;
            if found.is_some_and(|(epoch, by)| record_epoch < epoch && stream != *by) {
                return Ok(None);
            }
            if stream.lane == Lane::Primary && last.is_none() {
                (last, settled) = (stream_last, span.settled);
            }
            waiting += span.waiting();
            heads.extend(span.head().map(|id| (stream, id)));
        }
        if !is_there {
            return Ok(None);
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

    pub(super) fn span(
        &self,
        group: &GroupName,
        stream: &StreamId,
    ) -> Result<Option<(u64, Option<EntryId>, Span)>, Error> {
        let Some(record) = streams::get(&self.streams, stream)? else { return Ok(None) };
        let span = Span::new(record, cursors::get(&self.cursors, group, stream)?);
        Ok(Some((record.epoch, record.last(), span)))
    }
}

/// The streams of a key: the primary ones, then the backfill.
pub(super) fn streams_of(categories: &[CategoryName], key: &Key) -> Vec<StreamId> {
    let lane = |lane| {
        categories.iter().map(move |category| StreamId { category: category.clone(), key: Some(key.clone()), lane })
    };
    lane(Lane::Primary).chain(lane(Lane::Backfill)).collect()
}
