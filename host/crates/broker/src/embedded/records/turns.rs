//! Turns: partition of a process manager → the category whose stream was read last, so that its streams take turns
//! whoever owns it.
//!
//! Life: written when another stream than before is read, removed when the partition is forgotten. Absence means that the
//! first stream is next.

use keyrail_ordering::{CategoryName, PartitionId};
use redb::{ReadableTable, Table, TableDefinition};

use super::{PartitionKey, corrupt, partition_key, storage};
use crate::Error;

pub(in crate::embedded) const TABLE: TableDefinition<PartitionKey, &str> = TableDefinition::new("turns");

pub(in crate::embedded) fn get(
    table: &impl ReadableTable<PartitionKey, &'static str>,
    partition: &PartitionId,
) -> Result<Option<CategoryName>, Error> {
    let row = table.get(partition_key(partition)).map_err(storage)?;
    row.map(|row| CategoryName::parse(row.value()).map_err(corrupt)).transpose()
}

pub(in crate::embedded) fn put(
    table: &mut Table<PartitionKey, &'static str>,
    partition: &PartitionId,
    category: &CategoryName,
) -> Result<(), Error> {
    table.insert(partition_key(partition), category.as_str()).map_err(storage)?;
    Ok(())
}

pub(in crate::embedded) fn remove(
    table: &mut Table<PartitionKey, &'static str>,
    partition: &PartitionId,
) -> Result<(), Error> {
    table.remove(partition_key(partition)).map_err(storage)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyrail_ordering::{GroupName, Key, KeyRules, Scope};
    use redb::Database;
    use redb::backends::InMemoryBackend;

    #[test]
    fn a_turn_comes_back_and_goes() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let txn = database.begin_write().unwrap();
        let mut table = txn.open_table(TABLE).unwrap();
        let value = Key::parse("k1", &KeyRules::default()).unwrap();
        let partition = PartitionId { group: GroupName::parse("saga").unwrap(), scope: Scope::Correlation { value } };
        assert_eq!(get(&table, &partition).unwrap(), None);
        let category = CategoryName::parse("order").unwrap();
        put(&mut table, &partition, &category).unwrap();
        assert_eq!(get(&table, &partition).unwrap(), Some(category));
        remove(&mut table, &partition).unwrap();
        assert_eq!(get(&table, &partition).unwrap(), None);
    }
}
