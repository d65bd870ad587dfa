//! Counters: name → the highest number given out, or how many there are.
//!
//! Life: never removed. Loaded when the store opens and written once a batch; the writer is the only one that changes them.

use std::collections::HashMap;

use keyrail_ordering::CategoryName;
use redb::{ReadableTable, Table, TableDefinition};

use super::storage;
use crate::{Error, ReadySource};

pub(in crate::embedded) const TABLE: TableDefinition<&str, u64> = TableDefinition::new("counters");
pub(in crate::embedded) const READY: TableDefinition<(&str, &str), u64> = TableDefinition::new("ready_counts");
/// How many events each category was given, since the first release that counts.
pub(in crate::embedded) const PUBLISHED: TableDefinition<&str, u64> = TableDefinition::new("published_counts");

/// The present layout of all tables. A change that an older release cannot read raises it.
pub(in crate::embedded) const FORMAT: u64 = 1;
pub(in crate::embedded) const FORMAT_NAME: &str = "format";

const NAMES: [&str; 8] = ["epoch", "generation", "ready", "outbox", "state", "dead", "audit", "halt"];
const EPOCH: usize = 0;
const GENERATION: usize = 1;
const READY_NUMBER: usize = 2;
const OUTBOX: usize = 3;
const STATE: usize = 4;
const DEAD: usize = 5;
const AUDIT: usize = 6;
const HALT: usize = 7;

/// Numbers that only grow, among them the events of each category, and the sizes of the ready sets.
#[derive(Debug, Default)]
pub(in crate::embedded) struct Counters {
    values: [u64; NAMES.len()],
    /// Which of `values` are not written yet.
    changed: [bool; NAMES.len()],
    ready: HashMap<ReadySource, (u64, bool)>,
    published: HashMap<CategoryName, (u64, bool)>,
}

impl Counters {
    pub(in crate::embedded) fn load(
        table: &impl ReadableTable<&'static str, u64>,
        ready: &impl ReadableTable<(&'static str, &'static str), u64>,
        published: &impl ReadableTable<&'static str, u64>,
    ) -> Result<Self, Error> {
        let mut counters = Self::default();
        for (value, name) in counters.values.iter_mut().zip(NAMES) {
            *value = table.get(name).map_err(storage)?.map_or(0, |row| row.value());
        }
        for row in ready.iter().map_err(storage)? {
            let (at, count) = row.map_err(storage)?;
            let (group, category) = at.value();
            counters.ready.insert(super::parse_source(group, category)?, (count.value(), false));
        }
        for row in published.iter().map_err(storage)? {
            let (category, count) = row.map_err(storage)?;
            let category = CategoryName::parse(category.value()).map_err(super::corrupt)?;
            counters.published.insert(category, (count.value(), false));
        }
        Ok(counters)
    }

    fn next(&mut self, which: usize) -> u64 {
        self.values[which] += 1;
        self.changed[which] = true;
        self.values[which]
    }

    pub(in crate::embedded) fn next_epoch(&mut self) -> u64 {
        self.next(EPOCH)
    }

    pub(in crate::embedded) fn next_generation(&mut self) -> u64 {
        self.next(GENERATION)
    }

    pub(in crate::embedded) fn next_ready(&mut self) -> u64 {
        self.next(READY_NUMBER)
    }

    pub(in crate::embedded) fn next_outbox(&mut self) -> u64 {
        self.next(OUTBOX)
    }

    pub(in crate::embedded) fn next_state(&mut self) -> u64 {
        self.next(STATE)
    }

    pub(in crate::embedded) fn next_dead(&mut self) -> u64 {
        self.next(DEAD)
    }

    pub(in crate::embedded) fn next_audit(&mut self) -> u64 {
        self.next(AUDIT)
    }

    pub(in crate::embedded) fn next_halt(&mut self) -> u64 {
        self.next(HALT)
    }

    pub(in crate::embedded) fn published(&mut self, category: &CategoryName) {
        if let Some((count, changed)) = self.published.get_mut(category) {
            (*count, *changed) = (*count + 1, true);
        } else {
            self.published.insert(category.clone(), (1, true));
        }
    }

    pub(in crate::embedded) fn ready_added(&mut self, source: &ReadySource) {
        let (count, changed) = self.ready.entry(source.clone()).or_default();
        *count += 1;
        *changed = true;
    }

    pub(in crate::embedded) fn ready_removed(&mut self, source: &ReadySource) {
        let (count, changed) = self.ready.entry(source.clone()).or_default();
        *count = count.checked_sub(1).expect("only what was added is removed");
        *changed = true;
    }

    pub(in crate::embedded) fn write(
        &mut self,
        table: &mut Table<&'static str, u64>,
        ready: &mut Table<(&'static str, &'static str), u64>,
        published: &mut Table<&'static str, u64>,
    ) -> Result<(), Error> {
        for (index, name) in NAMES.iter().enumerate() {
            if std::mem::take(&mut self.changed[index]) {
                table.insert(name, self.values[index]).map_err(storage)?;
            }
        }
        for (source, (count, changed)) in &mut self.ready {
            if std::mem::take(changed) {
                ready.insert(super::source_key(source), *count).map_err(storage)?;
            }
        }
        for (category, (count, changed)) in &mut self.published {
            if std::mem::take(changed) {
                published.insert(category.as_str(), *count).map_err(storage)?;
            }
        }
        Ok(())
    }
}
