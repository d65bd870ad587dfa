//! Audit: number → what an operator did, when and why.
//!
//! Life: written with each action, in its own step; the oldest goes when there are more than [`KEEP_MAX`].

use redb::{ReadableTable, Table, TableDefinition};

use super::storage;
use crate::{AuditRow, Error, wire};

pub(in crate::embedded) const TABLE: TableDefinition<u64, &[u8]> = TableDefinition::new("audit");

/// Rows that are kept.
const KEEP_MAX: u64 = 10_000;

pub(in crate::embedded) fn put(
    table: &mut Table<u64, &'static [u8]>,
    number: u64,
    row: &AuditRow,
) -> Result<(), Error> {
    table.insert(number, wire::encode(row).as_slice()).map_err(storage)?;
    if let Some(over) = number.checked_sub(KEEP_MAX) {
        table.remove(over).map_err(storage)?;
    }
    Ok(())
}

/// Up to `max` rows, newest first, from this number down; and the number of the next one, if there is one.
pub(in crate::embedded) fn list(
    table: &impl ReadableTable<u64, &'static [u8]>,
    from: u64,
    max: usize,
) -> Result<(Vec<AuditRow>, Option<u64>), Error> {
    let mut rows = vec![];
    for row in table.range(..=from).map_err(storage)?.rev() {
        let (number, bytes) = row.map_err(storage)?;
        if rows.len() == max {
            return Ok((rows, Some(number.value())));
        }
        rows.push(wire::decode(bytes.value())?);
    }
    Ok((rows, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::By;
    use redb::backends::InMemoryBackend;
    use redb::{Database, ReadableTableMetadata};

    #[test]
    fn the_newest_are_kept_and_come_first() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let txn = database.begin_write().unwrap();
        let mut table = txn.open_table(TABLE).unwrap();
        let by = By { who: "ann".into(), reason: "sour".into() };
        let row = |number: u64| AuditRow {
            at_ms: number,
            action: "skip".into(),
            target: "order/k1 (billing)".into(),
            entry: "1-0".into(),
            by: by.clone(),
        };
        for number in 1..=KEEP_MAX + 5 {
            put(&mut table, number, &row(number)).unwrap();
        }
        assert_eq!(table.len().unwrap(), KEEP_MAX);
        let (page, next) = list(&table, u64::MAX, 2).unwrap();
        assert_eq!((page, next), (vec![row(KEEP_MAX + 5), row(KEEP_MAX + 4)], Some(KEEP_MAX + 3)));
        assert_eq!(list(&table, 7, 5).unwrap(), (vec![row(7), row(6)], None));
    }
}
