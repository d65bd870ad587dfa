//! Modules: hash of a component's bytes → what is known of it; and the bytes, in a table of their own, so that a list does
//! not read them.
//!
//! Life: written by a deployment, removed when the catalog names the module no longer.

use redb::{ReadableTable, Table, TableDefinition};

use super::storage;
use crate::{Error, ModuleInfo, wire};

pub(in crate::embedded) const TABLE: TableDefinition<&str, &[u8]> = TableDefinition::new("modules");
pub(in crate::embedded) const BYTES: TableDefinition<&str, &[u8]> = TableDefinition::new("module_bytes");

pub(in crate::embedded) fn info(
    table: &impl ReadableTable<&'static str, &'static [u8]>,
    content_hash: &str,
) -> Result<Option<ModuleInfo>, Error> {
    let row = table.get(content_hash).map_err(storage)?;
    row.map(|row| wire::decode(row.value())).transpose()
}

pub(in crate::embedded) fn list(
    table: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<Vec<ModuleInfo>, Error> {
    table.iter().map_err(storage)?.map(|row| wire::decode(row.map_err(storage)?.1.value())).collect()
}

pub(in crate::embedded) fn put(
    infos: &mut Table<&'static str, &'static [u8]>,
    contents: &mut Table<&'static str, &'static [u8]>,
    info: &ModuleInfo,
    bytes: &[u8],
) -> Result<(), Error> {
    infos.insert(info.content_hash.as_str(), wire::encode(info).as_slice()).map_err(storage)?;
    contents.insert(info.content_hash.as_str(), bytes).map_err(storage)?;
    Ok(())
}
