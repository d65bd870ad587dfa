//! The catalog: one row with its version; and what publishers need of it, taken apart once and kept in memory.
//!
//! Life: written by `set_catalog` only. Absence is the empty catalog, version 0.

use std::collections::BTreeMap;

use keyrail_ordering::{Catalog, CategoryName, GroupName, Role, SequentialBy};
use redb::{ReadableTable, Table, TableDefinition};

use super::storage;
use crate::{Error, ReadySource, wire};

pub(in crate::embedded) const TABLE: TableDefinition<&str, &[u8]> = TableDefinition::new("catalog");

const ROW: &str = "catalog";

pub(in crate::embedded) fn get(
    table: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<(Catalog, u64), Error> {
    let row = table.get(ROW).map_err(storage)?;
    row.map_or_else(|| Ok((Catalog::default(), 0)), |row| wire::decode(row.value()))
}

pub(in crate::embedded) fn put(
    table: &mut Table<&'static str, &'static [u8]>,
    catalog: &Catalog,
    version: u64,
) -> Result<(), Error> {
    table.insert(ROW, wire::encode(&(catalog, version)).as_slice()).map_err(storage)?;
    Ok(())
}

/// What the broker itself uses of a catalog.
#[derive(Debug, Default)]
pub(in crate::embedded) struct Topology {
    pub(in crate::embedded) categories: BTreeMap<CategoryName, Category>,
    /// The categories of each process manager.
    pub(in crate::embedded) managers: BTreeMap<GroupName, Vec<CategoryName>>,
}

/// One category.
#[derive(Debug, Default)]
pub(in crate::embedded) struct Category {
    pub(in crate::embedded) key_field: Option<String>,
    /// Where each group that consumes it finds its work.
    pub(in crate::embedded) sources: Vec<ReadySource>,
}

impl Topology {
    pub(in crate::embedded) fn of(catalog: &Catalog) -> Self {
        let mut managers = BTreeMap::new();
        for (group, handler) in &catalog.handlers {
            let metadata = &handler.metadata;
            let correlates = matches!(metadata.sequential_by, SequentialBy::Correlation(_));
            if metadata.role == Role::ProcessManager || correlates {
                managers.insert(group.clone(), metadata.categories().into_iter().cloned().collect());
            }
        }
        let source = |category: &CategoryName, group: &GroupName, partitioned: bool| {
            let (group, category) = (group.clone(), category.clone());
            if !partitioned {
                ReadySource::Shared { group, category }
            } else if managers.contains_key(&group) {
                ReadySource::ProcessManager { group }
            } else {
                ReadySource::Category { group, category }
            }
        };
        let categories = catalog.categories.iter().map(|(name, entry)| {
            let sources = entry.groups.iter().map(|group| source(name, group, entry.key_field.is_some())).collect();
            (name.clone(), Category { key_field: entry.key_field.clone(), sources })
        });
        Self { categories: categories.collect(), managers }
    }

    pub(in crate::embedded) fn key_field(&self, category: &CategoryName) -> Option<&str> {
        self.categories.get(category).and_then(|category| category.key_field.as_deref())
    }

    pub(in crate::embedded) fn sources(&self, category: &CategoryName) -> &[ReadySource] {
        self.categories.get(category).map_or(&[], |category| &category.sources)
    }
}
