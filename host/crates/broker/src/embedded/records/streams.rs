//! Streams: (category, key, lane) → epoch, first kept sequence, next sequence; and the index, (category, epoch) → key, lane.
//!
//! Life: written with a stream's first entry, in the same step as its index row, kept when all entries are gone, so that
//! sequences go on, and removed by reap. Absence means that nothing is known of the stream: the next entry opens a new
//! epoch.

use keyrail_ordering::{EntryId, StreamId};
use redb::{ReadableTable, Table, TableDefinition};

use super::{StreamKey, lane_number, storage, stream_key};
use crate::Error;

pub(in crate::embedded) type StreamValue = (u64, u64, u64);
pub(in crate::embedded) type IndexKey = (&'static str, u64);
pub(in crate::embedded) type IndexValue = (&'static str, u8);
pub(in crate::embedded) const TABLE: TableDefinition<StreamKey, StreamValue> = TableDefinition::new("streams");
pub(in crate::embedded) const INDEX: TableDefinition<IndexKey, IndexValue> = TableDefinition::new("index");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::embedded) struct StreamRecord {
    /// Which run of sequences; unique in the whole store, so it names the stream too.
    pub(in crate::embedded) epoch: u64,
    /// The first sequence that may still be there.
    pub(in crate::embedded) first: u64,
    /// The sequence of the next entry.
    pub(in crate::embedded) next: u64,
}

impl StreamRecord {
    pub(in crate::embedded) fn last(&self) -> Option<EntryId> {
        self.next.checked_sub(1).map(|sequence| EntryId::new(self.epoch, sequence))
    }
}

pub(in crate::embedded) fn get(
    table: &impl ReadableTable<StreamKey, StreamValue>,
    stream: &StreamId,
) -> Result<Option<StreamRecord>, Error> {
    let row = table.get(stream_key(stream)).map_err(storage)?;
    Ok(row.map(|row| {
        let (epoch, first, next) = row.value();
        StreamRecord { epoch, first, next }
    }))
}

pub(in crate::embedded) fn put(
    table: &mut Table<StreamKey, StreamValue>,
    stream: &StreamId,
    record: StreamRecord,
) -> Result<(), Error> {
    assert!(record.first <= record.next, "a stream keeps entries from {} to {}", record.first, record.next);
    table.insert(stream_key(stream), (record.epoch, record.first, record.next)).map_err(storage)?;
    Ok(())
}

pub(in crate::embedded) fn put_index(
    table: &mut Table<IndexKey, IndexValue>,
    stream: &StreamId,
    epoch: u64,
) -> Result<(), Error> {
    let (category, key, _) = stream_key(stream);
    table.insert((category, epoch), (key, lane_number(stream.lane))).map_err(storage)?;
    Ok(())
}

pub(in crate::embedded) fn remove(
    table: &mut Table<StreamKey, StreamValue>,
    index: &mut Table<IndexKey, IndexValue>,
    stream: &StreamId,
    epoch: u64,
) -> Result<(), Error> {
    table.remove(stream_key(stream)).map_err(storage)?;
    index.remove((stream.category.as_str(), epoch)).map_err(storage)?;
    Ok(())
}

/// Every stream of a category, in the order of epochs: epoch, key, lane.
pub(in crate::embedded) fn rows<'a>(
    table: &'a impl ReadableTable<IndexKey, IndexValue>,
    category: &str,
) -> Result<impl Iterator<Item = Result<(u64, String, u8), Error>> + 'a, Error> {
    let range = table.range((category, 0)..=(category, u64::MAX)).map_err(storage)?;
    Ok(range.map(|row| {
        let (at, value) = row.map_err(storage)?;
        let (key, lane) = value.value();
        Ok((at.value().1, key.to_owned(), lane))
    }))
}

/// How many streams a category has.
pub(in crate::embedded) fn count(
    table: &impl ReadableTable<IndexKey, IndexValue>,
    category: &str,
) -> Result<u64, Error> {
    Ok(table.range((category, 0)..=(category, u64::MAX)).map_err(storage)?.count() as u64)
}

/// Up to `max` streams of a category from an epoch on: epoch, key, lane.
pub(in crate::embedded) fn list(
    table: &impl ReadableTable<IndexKey, IndexValue>,
    category: &str,
    from: u64,
    max: usize,
) -> Result<Vec<(u64, String, u8)>, Error> {
    let mut streams = vec![];
    for row in table.range((category, from)..=(category, u64::MAX)).map_err(storage)?.take(max) {
        let (at, value) = row.map_err(storage)?;
        let (key, lane) = value.value();
        streams.push((at.value().1, key.to_owned(), lane));
    }
    Ok(streams)
}
