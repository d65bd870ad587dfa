//! Cursors: (group, category, key, lane) → the id of the last entry that the group has settled.
//!
//! Life: written by commit, and when a group comes back that others have overtaken. Absence means that the group has
//! settled nothing and starts from what is kept.

use keyrail_ordering::{EntryId, GroupName, StreamId};
use redb::{ReadableTable, Table, TableDefinition};

use super::streams::StreamRecord;
use super::{storage, stream_key};
use crate::Error;

pub(in crate::embedded) type CursorKey = (&'static str, &'static str, &'static str, u8);
pub(in crate::embedded) type CursorValue = (u64, u64);
pub(in crate::embedded) const TABLE: TableDefinition<CursorKey, CursorValue> = TableDefinition::new("cursors");

fn key<'a>(group: &'a GroupName, stream: &'a StreamId) -> (&'a str, &'a str, &'a str, u8) {
    let (category, key, lane) = stream_key(stream);
    (group.as_str(), category, key, lane)
}

pub(in crate::embedded) fn get(
    table: &impl ReadableTable<CursorKey, CursorValue>,
    group: &GroupName,
    stream: &StreamId,
) -> Result<Option<EntryId>, Error> {
    let row = table.get(key(group, stream)).map_err(storage)?;
    Ok(row.map(|row| {
        let (epoch, sequence) = row.value();
        EntryId::new(epoch, sequence)
    }))
}

pub(in crate::embedded) fn put(
    table: &mut Table<CursorKey, CursorValue>,
    group: &GroupName,
    stream: &StreamId,
    settled: EntryId,
) -> Result<(), Error> {
    table.insert(key(group, stream), (settled.epoch, settled.sequence)).map_err(storage)?;
    Ok(())
}

pub(in crate::embedded) fn remove(
    table: &mut Table<CursorKey, CursorValue>,
    group: &GroupName,
    stream: &StreamId,
) -> Result<(), Error> {
    table.remove(key(group, stream)).map_err(storage)?;
    Ok(())
}

/// What a group has before it in one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::embedded) struct Span {
    pub(in crate::embedded) epoch: u64,
    /// The first sequence that is not settled.
    pub(in crate::embedded) from: u64,
    /// The sequence of the next entry: the end of the span.
    pub(in crate::embedded) next: u64,
    pub(in crate::embedded) settled: Option<EntryId>,
}

impl Span {
    pub(in crate::embedded) fn new(stream: StreamRecord, settled: Option<EntryId>) -> Self {
        let after = settled.filter(|settled| settled.epoch == stream.epoch).map_or(0, |settled| settled.sequence + 1);
        Self { epoch: stream.epoch, from: stream.first.max(after).min(stream.next), next: stream.next, settled }
    }

    /// The first entry that is not settled.
    pub(in crate::embedded) fn head(&self) -> Option<EntryId> {
        (self.from < self.next).then(|| EntryId::new(self.epoch, self.from))
    }

    pub(in crate::embedded) fn waiting(&self) -> u64 {
        self.next - self.from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_starts_after_what_is_settled_or_gone() {
        let stream = StreamRecord { epoch: 4, first: 2, next: 5 };
        let from = |settled: Option<EntryId>| Span::new(stream, settled).from;
        assert_eq!(from(None), 2);
        assert_eq!(from(Some(EntryId::new(4, 0))), 2);
        assert_eq!(from(Some(EntryId::new(4, 2))), 3);
        assert_eq!(from(Some(EntryId::new(3, 9))), 2, "of an older epoch");
        assert_eq!(Span::new(stream, Some(EntryId::new(4, 4))).head(), None);
        assert_eq!(Span::new(stream, None).head(), Some(EntryId::new(4, 2)));
        assert_eq!(Span::new(stream, None).waiting(), 3);
    }
}
