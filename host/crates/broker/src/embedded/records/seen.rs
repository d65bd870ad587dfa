//! Seen event ids: (category, event id) → the entry that the id got first, and until when it is remembered, by the wall clock.
//!
//! Life: written by publish and route where a window is asked for. Dropped by a hand that goes round the table and looks at
//! a few rows with each publish, so that the table stays near the size that the windows need, without a second index.

use keyrail_ordering::{CategoryName, EntryId};
use redb::{ReadableTable, Table, TableDefinition};

use super::storage;
use crate::Error;

pub(in crate::embedded) type SeenKey = (&'static str, &'static str);
pub(in crate::embedded) type SeenValue = (u64, u64, u64);
pub(in crate::embedded) const TABLE: TableDefinition<SeenKey, SeenValue> = TableDefinition::new("seen");

/// Rows that the hand looks at for each new one. More than one, so that it gains on what is added.
const HAND_ROWS: usize = 3;

/// The entry that the id got, if it is still remembered.
pub(in crate::embedded) fn get(
    table: &impl ReadableTable<SeenKey, SeenValue>,
    category: &CategoryName,
    event_id: &str,
    wall_ms: u64,
) -> Result<Option<EntryId>, Error> {
    let row = table.get((category.as_str(), event_id)).map_err(storage)?;
    Ok(row.and_then(|row| {
        let (epoch, sequence, until_ms) = row.value();
        (wall_ms < until_ms).then(|| EntryId::new(epoch, sequence))
    }))
}

pub(in crate::embedded) fn put(
    table: &mut Table<SeenKey, SeenValue>,
    category: &CategoryName,
    event_id: &str,
    id: EntryId,
    until_ms: u64,
) -> Result<(), Error> {
    table.insert((category.as_str(), event_id), (id.epoch, id.sequence, until_ms)).map_err(storage)?;
    Ok(())
}

/// Where the hand stands: the next row to look at.
#[derive(Debug, Default)]
pub(in crate::embedded) struct Hand {
    at: (String, String),
}

impl Hand {
    /// Looks at the next few rows and drops those whose time is over.
    pub(in crate::embedded) fn advance(
        &mut self,
        table: &mut Table<SeenKey, SeenValue>,
        wall_ms: u64,
    ) -> Result<(), Error> {
        let mut over = vec![];
        let mut rows = table.range((self.at.0.as_str(), self.at.1.as_str())..).map_err(storage)?;
        for row in rows.by_ref().take(HAND_ROWS) {
            let (at, value) = row.map_err(storage)?;
            if value.value().2 <= wall_ms {
                over.push((at.value().0.to_owned(), at.value().1.to_owned()));
            }
        }
        let next = rows.next().transpose().map_err(storage)?;
        let next = next.map(|(at, _)| (at.value().0.to_owned(), at.value().1.to_owned())).unwrap_or_default();
        drop(rows);
        for (category, id) in &over {
            table.remove((category.as_str(), id.as_str())).map_err(storage)?;
        }
        self.at = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::{Database, ReadableTableMetadata, backends::InMemoryBackend};

    #[test]
    fn the_hand_drops_what_is_over_and_keeps_the_rest() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let txn = database.begin_write().unwrap();
        let mut table = txn.open_table(TABLE).unwrap();
        let category = CategoryName::parse("order").unwrap();
        for n in 0..100u64 {
            put(&mut table, &category, &format!("e{n:03}"), EntryId::new(1, n), if n % 2 == 0 { 10 } else { 1_000 })
                .unwrap();
        }
        assert_eq!(get(&table, &category, "e004", 9).unwrap(), Some(EntryId::new(1, 4)));
        assert_eq!(get(&table, &category, "e004", 10).unwrap(), None);
        let mut hand = Hand::default();
        for _ in 0..100 {
            hand.advance(&mut table, 500).unwrap();
        }
        assert_eq!(table.len().unwrap(), 50);
        assert_eq!(get(&table, &category, "e005", 500).unwrap(), Some(EntryId::new(1, 5)));
    }
}
