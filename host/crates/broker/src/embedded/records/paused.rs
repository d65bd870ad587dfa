//! What is paused: (category, key) → who paused it, why and when; the key is empty for a whole category.
//!
//! Life: written by pause, removed by resume. The writer keeps which there are in memory, since every acquire asks.

use std::collections::BTreeSet;

use keyrail_ordering::{CategoryName, Key, StreamId};
use redb::{ReadableTable, Table, TableDefinition};

use super::{corrupt, parse_key, storage};
use crate::{Error, Paused, wire};

pub(in crate::embedded) type PausedKey = (&'static str, &'static str);
pub(in crate::embedded) const TABLE: TableDefinition<PausedKey, &[u8]> = TableDefinition::new("paused");

fn row<'a>(category: &'a CategoryName, key: Option<&'a Key>) -> (&'a str, &'a str) {
    (category.as_str(), key.map_or("", Key::as_str))
}

pub(in crate::embedded) fn put(table: &mut Table<PausedKey, &'static [u8]>, paused: &Paused) -> Result<(), Error> {
    let at = row(&paused.category, paused.key.as_ref());
    table.insert(at, wire::encode(paused).as_slice()).map_err(storage)?;
    Ok(())
}

pub(in crate::embedded) fn remove(
    table: &mut Table<PausedKey, &'static [u8]>,
    category: &CategoryName,
    key: Option<&Key>,
) -> Result<(), Error> {
    table.remove(row(category, key)).map_err(storage)?;
    Ok(())
}

/// What is paused in a category: the whole first, then keys in order.
pub(in crate::embedded) fn list(
    table: &impl ReadableTable<PausedKey, &'static [u8]>,
    category: &CategoryName,
) -> Result<Vec<Paused>, Error> {
    let mut paused = vec![];
    for row in table.range((category.as_str(), "")..).map_err(storage)? {
        let (at, bytes) = row.map_err(storage)?;
        if at.value().0 != category.as_str() {
            break;
        }
        paused.push(wire::decode(bytes.value())?);
    }
    Ok(paused)
}

/// Which categories and keys are paused.
#[derive(Debug, Default)]
pub(in crate::embedded) struct PausedSet(BTreeSet<(CategoryName, Option<Key>)>);

impl PausedSet {
    pub(in crate::embedded) fn load(table: &impl ReadableTable<PausedKey, &'static [u8]>) -> Result<Self, Error> {
        let mut set = BTreeSet::new();
        for row in table.iter().map_err(storage)? {
            let (at, _) = row.map_err(storage)?;
            let (category, key) = at.value();
            let key = if key.is_empty() { None } else { Some(parse_key(key)?) };
            set.insert((CategoryName::parse(category).map_err(corrupt)?, key));
        }
        Ok(Self(set))
    }

    /// False if it was there already.
    pub(in crate::embedded) fn insert(&mut self, category: &CategoryName, key: Option<&Key>) -> bool {
        self.0.insert((category.clone(), key.cloned()))
    }

    /// False if it was not there.
    pub(in crate::embedded) fn remove(&mut self, category: &CategoryName, key: Option<&Key>) -> bool {
        self.0.remove(&(category.clone(), key.cloned()))
    }

    pub(in crate::embedded) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::embedded) fn contains(&self, category: &CategoryName, key: Option<&Key>) -> bool {
        !self.0.is_empty() && self.0.contains(&(category.clone(), key.cloned()))
    }

    /// Whether nobody may read this key of the category.
    pub(in crate::embedded) fn covers(&self, category: &CategoryName, key: Option<&Key>) -> bool {
        self.contains(category, None) || (key.is_some() && self.contains(category, key))
    }

    /// Whether nobody may own a partition that reads these streams.
    pub(in crate::embedded) fn covers_any(&self, streams: &[StreamId]) -> bool {
        streams.iter().any(|stream| self.covers(&stream.category, stream.key.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::By;
    use keyrail_ordering::KeyRules;
    use redb::Database;
    use redb::backends::InMemoryBackend;

    #[test]
    fn what_is_paused_comes_back_by_category() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let txn = database.begin_write().unwrap();
        let mut table = txn.open_table(TABLE).unwrap();
        let category = |name| CategoryName::parse(name).unwrap();
        let key = Key::parse("k1", &KeyRules::default()).unwrap();
        let by = By { who: "ann".into(), reason: "a fire".into() };
        let paused = |name, key| Paused { category: category(name), key, by: by.clone(), at_ms: 7 };
        let rows = [paused("order", None), paused("order", Some(key.clone())), paused("orders", None)];
        for row in &rows {
            put(&mut table, row).unwrap();
        }
        assert_eq!(list(&table, &category("order")).unwrap(), rows[..2]);
        let set = PausedSet::load(&table).unwrap();
        assert!(set.covers(&category("orders"), Some(&key)) && !set.covers(&category("pay"), Some(&key)));
        remove(&mut table, &category("order"), None).unwrap();
        let set = PausedSet::load(&table).unwrap();
        let other = Key::parse("k2", &KeyRules::default()).unwrap();
        assert!(set.covers(&category("order"), Some(&key)) && !set.covers(&category("order"), Some(&other)));
        assert!(!set.covers(&category("order"), None));
    }
}
