//! Dead letters: (category, number) → an event that was set aside; and (category, key, number), by which those of one key
//! are found. The number is given out once in the whole store and is the sequence of the letter's id.
//!
//! Life: written when an event is set aside, removed by redrive and purge. Nobody else ever drops one.

use keyrail_ordering::{CategoryName, EntryId, Key};
use redb::{ReadableTable, Table, TableDefinition, WriteTransaction};

use super::storage;
use crate::{DeadLetter, Error, wire};

pub(in crate::embedded) type LetterKey = (&'static str, u64);
pub(in crate::embedded) type ByKey = (&'static str, &'static str, u64);
pub(in crate::embedded) const TABLE: TableDefinition<LetterKey, &[u8]> = TableDefinition::new("dead_letters");
pub(in crate::embedded) const BY_KEY: TableDefinition<ByKey, ()> = TableDefinition::new("dead_letters_by_key");

/// Of every letter's id, so that it looks like an entry's.
const EPOCH: u64 = 1;

pub(in crate::embedded) const fn id(number: u64) -> EntryId {
    EntryId::new(EPOCH, number)
}

/// Both tables, for writing.
pub(in crate::embedded) struct DeadTables<'txn> {
    letters: Table<'txn, LetterKey, &'static [u8]>,
    by_key: Table<'txn, ByKey, ()>,
}

impl<'txn> DeadTables<'txn> {
    pub(in crate::embedded) fn open(txn: &'txn WriteTransaction) -> Result<Self, Error> {
        let letters = txn.open_table(TABLE).map_err(storage)?;
        Ok(Self { letters, by_key: txn.open_table(BY_KEY).map_err(storage)? })
    }

    pub(in crate::embedded) fn put(&mut self, letter: &DeadLetter) -> Result<(), Error> {
        let (category, number) = (letter.category.as_str(), letter.id.sequence);
        self.letters.insert((category, number), wire::encode(letter).as_slice()).map_err(storage)?;
        self.by_key.insert((category, text(letter.key.as_ref()), number), ()).map_err(storage)?;
        Ok(())
    }

    /// The letter, if it is one of this key.
    pub(in crate::embedded) fn get(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
    ) -> Result<Option<DeadLetter>, Error> {
        get(&self.letters, category, key, id)
    }

    pub(in crate::embedded) fn remove(&mut self, letter: &DeadLetter) -> Result<(), Error> {
        let (category, number) = (letter.category.as_str(), letter.id.sequence);
        self.letters.remove((category, number)).map_err(storage)?;
        self.by_key.remove((category, text(letter.key.as_ref()), number)).map_err(storage)?;
        Ok(())
    }
}

/// The letter, if it is one of this key.
pub(in crate::embedded) fn get(
    letters: &impl ReadableTable<LetterKey, &'static [u8]>,
    category: &CategoryName,
    key: Option<&Key>,
    id: EntryId,
) -> Result<Option<DeadLetter>, Error> {
    if id.epoch != EPOCH {
        return Ok(None);
    }
    let row = letters.get((category.as_str(), id.sequence)).map_err(storage)?;
    let letter: Option<DeadLetter> = row.map(|row| wire::decode(row.value())).transpose()?;
    Ok(letter.filter(|letter| letter.key.as_ref() == key))
}

fn text(key: Option<&Key>) -> &str {
    key.map_or("", Key::as_str)
}

/// Up to `max` letters of a category from a number on, or of one key of it, oldest first.
pub(in crate::embedded) fn list(
    letters: &impl ReadableTable<LetterKey, &'static [u8]>,
    by_key: &impl ReadableTable<ByKey, ()>,
    (category, key): (&CategoryName, Option<&Key>),
    from: u64,
    max: usize,
) -> Result<Vec<DeadLetter>, Error> {
    let category = category.as_str();
    let mut found = vec![];
    if let Some(key) = key {
        let bounds = (category, key.as_str(), from)..=(category, key.as_str(), u64::MAX);
        for row in by_key.range(bounds).map_err(storage)?.take(max) {
            let (at, _) = row.map_err(storage)?;
            let letter = letters.get((category, at.value().2)).map_err(storage)?;
            found.extend(letter.map(|row| wire::decode(row.value())).transpose()?);
        }
    } else {
        for row in letters.range((category, from)..=(category, u64::MAX)).map_err(storage)?.take(max) {
            found.push(wire::decode(row.map_err(storage)?.1.value())?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::By;
    use keyrail_ordering::{EntryRef, GroupName, KeyRules, StreamId};
    use redb::Database;
    use redb::backends::InMemoryBackend;

    #[test]
    fn letters_come_back_by_category_and_by_key() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let txn = database.begin_write().unwrap();
        let category = CategoryName::parse("order").unwrap();
        let key = |text: &str| Key::parse(text, &KeyRules::default()).unwrap();
        let letter = |number, of: &str| DeadLetter {
            id: id(number),
            category: category.clone(),
            key: Some(key(of)),
            group: GroupName::parse("billing").unwrap(),
            origin: EntryRef { stream: StreamId::primary(category.clone(), key(of)), id: EntryId::new(3, 4) },
            event_id: "e1".into(),
            name: "OrderPlaced".into(),
            version: 2,
            headers: vec![("a".into(), "b".into())],
            data: "{}".into(),
            attempts: 5,
            error: "no".into(),
            by: By { who: "ann".into(), reason: "sour".into() },
            at_ms: 9,
        };
        let mut tables = DeadTables::open(&txn).unwrap();
        let letters = [letter(1, "b"), letter(2, "a"), letter(3, "b")];
        for letter in &letters {
            tables.put(letter).unwrap();
        }
        let list = |tables: &DeadTables<'_>, of: Option<&str>, from| {
            let of = of.map(key);
            super::list(&tables.letters, &tables.by_key, (&category, of.as_ref()), from, 10).unwrap()
        };
        assert_eq!(list(&tables, None, 0), letters);
        assert_eq!(list(&tables, Some("b"), 0), [letters[0].clone(), letters[2].clone()]);
        assert_eq!(list(&tables, Some("b"), 2), letters[2..]);
        assert_eq!(tables.get(&category, Some(&key("a")), id(1)).unwrap(), None, "it is another key's");
        tables.remove(&letters[0]).unwrap();
        assert_eq!(tables.get(&category, Some(&key("b")), id(1)).unwrap(), None);
        assert_eq!(list(&tables, Some("b"), 0), letters[2..]);
    }
}
