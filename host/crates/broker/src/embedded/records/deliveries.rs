//! Deliveries: (group, category, epoch, sequence) → what is known of an entry that was given out and is not settled; and
//! (group, category) → epoch and sequence of the first entry that never was.
//!
//! Only for categories that are not partitioned. Life: written by take, changed by fail and return, removed by commit and
//! set aside. Who has an entry now, and since when, is known in memory only (see `deliveries.rs`): whoever had one in an
//! earlier process is gone.

use keyrail_ordering::EntryId;
use redb::{ReadableTable, Table, TableDefinition};
use serde::{Deserialize, Serialize};

use super::{corrupt, storage};
use crate::{Error, SharedSource, wire};
use keyrail_ordering::{CategoryName, GroupName};

pub(in crate::embedded) type DeliveryKey = (&'static str, &'static str, u64, u64);
pub(in crate::embedded) const TABLE: TableDefinition<DeliveryKey, &[u8]> = TableDefinition::new("deliveries");
pub(in crate::embedded) const NEXT: TableDefinition<(&str, &str), (u64, u64)> = TableDefinition::new("deliveries_next");

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::embedded) struct DeliveryRecord {
    /// How often it was given out.
    pub(in crate::embedded) count: u64,
    pub(in crate::embedded) attempts: u32,
    pub(in crate::embedded) crashes: u32,
    /// Whether it was given to somebody who has not said what became of it.
    pub(in crate::embedded) is_out: bool,
    /// By the wall clock, since it must survive a restart.
    pub(in crate::embedded) due_at_ms: u64,
    pub(in crate::embedded) wait_ms: u64,
    pub(in crate::embedded) last_error: String,
}

impl DeliveryRecord {
    /// Never longer than the wait was, however the clock jumps.
    pub(in crate::embedded) fn wait_ms(&self, wall_ms: u64) -> u64 {
        self.due_at_ms.saturating_sub(wall_ms).min(self.wait_ms)
    }
}

/// Both tables, for writing.
pub(in crate::embedded) struct DeliveryTables<'txn> {
    pub(in crate::embedded) pending: Table<'txn, DeliveryKey, &'static [u8]>,
    pub(in crate::embedded) next: Table<'txn, (&'static str, &'static str), (u64, u64)>,
}

fn key(source: &SharedSource, id: EntryId) -> (&str, &str, u64, u64) {
    (source.group.as_str(), source.category.as_str(), id.epoch, id.sequence)
}

impl DeliveryTables<'_> {
    pub(in crate::embedded) fn get(&self, source: &SharedSource, id: EntryId) -> Result<Option<DeliveryRecord>, Error> {
        let row = self.pending.get(key(source, id)).map_err(storage)?;
        row.map(|row| wire::decode(row.value())).transpose()
    }

    pub(in crate::embedded) fn put(
        &mut self,
        source: &SharedSource,
        id: EntryId,
        record: &DeliveryRecord,
    ) -> Result<(), Error> {
        self.pending.insert(key(source, id), wire::encode(record).as_slice()).map_err(storage)?;
        Ok(())
    }

    pub(in crate::embedded) fn remove(&mut self, source: &SharedSource, id: EntryId) -> Result<(), Error> {
        self.pending.remove(key(source, id)).map_err(storage)?;
        Ok(())
    }

    /// The lowest sequence of an epoch that is not settled.
    pub(in crate::embedded) fn lowest(&self, source: &SharedSource, epoch: u64) -> Result<Option<u64>, Error> {
        lowest(&self.pending, source, epoch)
    }

    /// The sequence of the first entry of this epoch that was never given out.
    pub(in crate::embedded) fn next(&self, source: &SharedSource, epoch: u64) -> Result<u64, Error> {
        next(&self.next, source, epoch)
    }

    pub(in crate::embedded) fn put_next(&mut self, source: &SharedSource, next: EntryId) -> Result<(), Error> {
        let at = (source.group.as_str(), source.category.as_str());
        self.next.insert(at, (next.epoch, next.sequence)).map_err(storage)?;
        Ok(())
    }
}

/// As [`DeliveryTables::lowest`].
pub(in crate::embedded) fn lowest(
    table: &impl ReadableTable<DeliveryKey, &'static [u8]>,
    source: &SharedSource,
    epoch: u64,
) -> Result<Option<u64>, Error> {
    let bounds = key(source, EntryId::new(epoch, 0))..=key(source, EntryId::new(epoch, u64::MAX));
    let row = table.range(bounds).map_err(storage)?.next().transpose().map_err(storage)?;
    Ok(row.map(|(at, _)| at.value().3))
}

/// As [`DeliveryTables::next`].
pub(in crate::embedded) fn next(
    table: &impl ReadableTable<(&'static str, &'static str), (u64, u64)>,
    source: &SharedSource,
    epoch: u64,
) -> Result<u64, Error> {
    let row = table.get((source.group.as_str(), source.category.as_str())).map_err(storage)?;
    Ok(row.map(|row| row.value()).filter(|next| next.0 == epoch).map_or(0, |next| next.1))
}

/// Everything that is not settled.
pub(in crate::embedded) fn all(
    table: &impl ReadableTable<DeliveryKey, &'static [u8]>,
) -> Result<Vec<(SharedSource, EntryId, DeliveryRecord)>, Error> {
    let mut all = vec![];
    for row in table.iter().map_err(storage)? {
        let (at, bytes) = row.map_err(storage)?;
        let (group, category, epoch, sequence) = at.value();
        let group = GroupName::parse(group).map_err(corrupt)?;
        let category = CategoryName::parse(category).map_err(corrupt)?;
        all.push((SharedSource { group, category }, EntryId::new(epoch, sequence), wire::decode(bytes.value())?));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::Database;
    use redb::backends::InMemoryBackend;

    #[test]
    fn deliveries_come_back_and_the_lowest_is_known() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let txn = database.begin_write().unwrap();
        let (pending, next) = (txn.open_table(TABLE).unwrap(), txn.open_table(NEXT).unwrap());
        let mut tables = DeliveryTables { pending, next };
        let (group, category) = (GroupName::parse("tally").unwrap(), CategoryName::parse("metric").unwrap());
        let source = SharedSource { group, category };
        let record = DeliveryRecord {
            count: 3,
            attempts: 2,
            crashes: 1,
            is_out: true,
            due_at_ms: 1_000,
            wait_ms: 200,
            last_error: "no".into(),
        };
        for id in [EntryId::new(4, 7), EntryId::new(4, 3), EntryId::new(5, 1)] {
            tables.put(&source, id, &record).unwrap();
        }
        assert_eq!(tables.get(&source, EntryId::new(4, 3)).unwrap(), Some(record.clone()));
        assert_eq!(tables.lowest(&source, 4).unwrap(), Some(3));
        tables.remove(&source, EntryId::new(4, 3)).unwrap();
        assert_eq!((tables.lowest(&source, 4).unwrap(), tables.lowest(&source, 6).unwrap()), (Some(7), None));
        assert_eq!(all(&tables.pending).unwrap().len(), 2);
        tables.put_next(&source, EntryId::new(4, 8)).unwrap();
        assert_eq!((tables.next(&source, 4).unwrap(), tables.next(&source, 5).unwrap()), (8, 0));
        assert_eq!((record.wait_ms(900), record.wait_ms(0), record.wait_ms(2_000)), (100, 200, 0));
    }
}
