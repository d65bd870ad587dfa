//! Halts: partition → why it stands still; and partition → number, and (group, category, number) → key, by which pages
//! are cut.
//!
//! Life: written by halt, removed by an operator's decision only. While there is one the partition is in no ready set and
//! nobody acquires it.

use keyrail_ordering::{HaltRecord, PartitionId};
use redb::{ReadableTable, Table, TableDefinition, WriteTransaction};

use super::counters::Counters;
use super::{PartitionKey, partition_key, storage};
use crate::{Error, wire};

pub(in crate::embedded) const TABLE: TableDefinition<PartitionKey, &[u8]> = TableDefinition::new("halts");

pub(in crate::embedded) type OrderKey = (&'static str, &'static str, u64);
pub(in crate::embedded) const NUMBERS: TableDefinition<PartitionKey, u64> = TableDefinition::new("halt_numbers");
pub(in crate::embedded) const ORDER: TableDefinition<OrderKey, &str> = TableDefinition::new("halt_order");

/// The order of the halts, for writing.
pub(in crate::embedded) struct HaltOrder<'txn> {
    numbers: Table<'txn, PartitionKey, u64>,
    order: Table<'txn, OrderKey, &'static str>,
}

impl<'txn> HaltOrder<'txn> {
    pub(in crate::embedded) fn open(txn: &'txn WriteTransaction) -> Result<Self, Error> {
        let numbers = txn.open_table(NUMBERS).map_err(storage)?;
        Ok(Self { numbers, order: txn.open_table(ORDER).map_err(storage)? })
    }

    fn add(&mut self, counters: &mut Counters, at @ (group, category, key): (&str, &str, &str)) -> Result<(), Error> {
        if self.numbers.get(at).map_err(storage)?.is_none() {
            let number = counters.next_halt();
            self.numbers.insert(at, number).map_err(storage)?;
            self.order.insert((group, category, number), key).map_err(storage)?;
        }
        Ok(())
    }

    fn remove(&mut self, at @ (group, category, _): (&str, &str, &str)) -> Result<(), Error> {
        let number = self.numbers.remove(at).map_err(storage)?.map(|row| row.value());
        if let Some(number) = number {
            self.order.remove((group, category, number)).map_err(storage)?;
        }
        Ok(())
    }

    /// Gives a number to each halt that has none.
    pub(in crate::embedded) fn number_all(
        &mut self,
        halts: &impl ReadableTable<PartitionKey, &'static [u8]>,
        counters: &mut Counters,
    ) -> Result<(), Error> {
        for row in halts.iter().map_err(storage)? {
            self.add(counters, row.map_err(storage)?.0.value())?;
        }
        Ok(())
    }
}

pub(in crate::embedded) fn get(
    table: &impl ReadableTable<PartitionKey, &'static [u8]>,
    partition: &PartitionId,
) -> Result<Option<HaltRecord>, Error> {
    let row = table.get(partition_key(partition)).map_err(storage)?;
    row.map(|row| wire::decode(row.value())).transpose()
}

pub(in crate::embedded) fn exists(
    table: &impl ReadableTable<PartitionKey, &'static [u8]>,
    partition: (&str, &str, &str),
) -> Result<bool, Error> {
    Ok(table.get(partition).map_err(storage)?.is_some())
}

pub(in crate::embedded) fn put(
    table: &mut Table<PartitionKey, &'static [u8]>,
    order: &mut HaltOrder<'_>,
    counters: &mut Counters,
    partition: &PartitionId,
    record: &HaltRecord,
) -> Result<(), Error> {
    table.insert(partition_key(partition), wire::encode(record).as_slice()).map_err(storage)?;
    order.add(counters, partition_key(partition))
}

pub(in crate::embedded) fn remove(
    table: &mut Table<PartitionKey, &'static [u8]>,
    order: &mut HaltOrder<'_>,
    partition: &PartitionId,
) -> Result<(), Error> {
    table.remove(partition_key(partition)).map_err(storage)?;
    order.remove(partition_key(partition))
}

/// Up to `max` keys that stand still, from a number on: number, key.
pub(in crate::embedded) fn list(
    order: &impl ReadableTable<OrderKey, &'static str>,
    (group, category): (&str, &str),
    from: u64,
    max: usize,
) -> Result<Vec<(u64, String)>, Error> {
    let mut keys = vec![];
    for row in order.range((group, category, from)..=(group, category, u64::MAX)).map_err(storage)?.take(max) {
        let (at, key) = row.map_err(storage)?;
        keys.push((at.value().2, key.value().to_owned()));
    }
    Ok(keys)
}

pub(in crate::embedded) fn count(
    table: &impl ReadableTable<PartitionKey, &'static [u8]>,
    (group, category): (&str, &str),
) -> Result<u64, Error> {
    let mut count = 0;
    for row in table.range((group, category, "")..).map_err(storage)? {
        let (at, _) = row.map_err(storage)?;
        let (its_group, its_category, _) = at.value();
        if (its_group, its_category) != (group, category) {
            break;
        }
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyrail_ordering::{CategoryName, EntryId, EntryRef, GroupName, HaltCause, Key, KeyRules, StreamId};
    use redb::Database;
    use redb::backends::InMemoryBackend;

    #[test]
    fn halts_come_back_in_pages_and_old_ones_get_a_number() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let txn = database.begin_write().unwrap();
        let (mut table, mut order) = (txn.open_table(TABLE).unwrap(), HaltOrder::open(&txn).unwrap());
        let mut counters = Counters::default();
        let (group, category) = (GroupName::parse("billing").unwrap(), CategoryName::parse("order").unwrap());
        let key = |text| Key::parse(text, &KeyRules::default()).unwrap();
        let partition = |text| PartitionId::of_key(group.clone(), category.clone(), key(text));
        let head = EntryRef { stream: StreamId::primary(category.clone(), key("b")), id: EntryId::new(1, 2) };
        let (error, handler_version) = ("no".into(), "1.0".into());
        let record = HaltRecord { head, cause: HaltCause::Poison, attempts: 5, error, handler_version };
        for text in ["b", "a"] {
            put(&mut table, &mut order, &mut counters, &partition(text), &record).unwrap();
        }
        table.insert(partition_key(&partition("c")), wire::encode(&record).as_slice()).unwrap();
        order.number_all(&table, &mut counters).unwrap();
        let list = |order: &HaltOrder<'_>, from| list(&order.order, ("billing", "order"), from, 2).unwrap();
        assert_eq!(list(&order, 0), [(1, "b".into()), (2, "a".into())]);
        assert_eq!(list(&order, 3), [(3, "c".into())]);
        assert_eq!(get(&table, &partition("b")).unwrap(), Some(record));
        remove(&mut table, &mut order, &partition("b")).unwrap();
        assert_eq!(get(&table, &partition("b")).unwrap(), None);
        assert_eq!(list(&order, 0), [(2, "a".into()), (3, "c".into())]);
    }
}
