//! From names that an operator typed to what they mean.

use keyrail_broker::ReadySource;
use keyrail_ordering::{Catalog, CategoryName, GroupName, Key, PartitionSpec, Role};

use super::super::InspectError;
use super::OperationError;

/// The category of this name.
pub(in crate::service) fn category(catalog: &Catalog, name: &str) -> Result<CategoryName, OperationError> {
    let known = catalog.categories.keys().find(|known| known.as_str() == name).cloned();
    known.ok_or_else(|| {
        let known = catalog.categories.keys().map(ToString::to_string).collect();
        InspectError::UnknownCategory { name: name.into(), known }.into()
    })
}

/// The group of this name.
pub(super) fn group(catalog: &Catalog, name: &str) -> Result<GroupName, OperationError> {
    let known = catalog.handlers.keys().find(|known| known.as_str() == name).cloned();
    known.ok_or_else(|| {
        let known = catalog.handlers.keys().map(ToString::to_string).collect();
        InspectError::UnknownGroup { name: name.into(), known }.into()
    })
}

/// The key, if it can be one.
pub(super) fn key(catalog: &Catalog, text: &str) -> Result<Key, OperationError> {
    Key::parse(text, &catalog.key_rules).map_err(|error| OperationError::Usage(error.to_string()))
}

/// The key of a category, or none for all of it.
pub(in crate::service) fn place(
    catalog: &Catalog,
    category_name: &str,
    key_text: Option<&str>,
) -> Result<(CategoryName, Option<Key>), OperationError> {
    let category = category(catalog, category_name)?;
    let key = key_text.map(|text| key(catalog, text)).transpose()?;
    if key.is_some() && !is_partitioned(catalog, &category) {
        return Err(OperationError::Usage(format!("{category} is not partitioned: it has no keys; leave KEY out")));
    }
    Ok((category, key))
}

/// The partitions of a key of a category: one for each group that reads it, or for the named group.
pub(in crate::service) fn partitions(
    catalog: &Catalog,
    category_name: &str,
    key_text: &str,
    group_name: Option<&str>,
) -> Result<Vec<PartitionSpec>, OperationError> {
    let category = category(catalog, category_name)?;
    if !is_partitioned(catalog, &category) {
        return Err(OperationError::Usage(format!(
            "{category} is not partitioned: nothing in it waits for another event; what failed is in keyrail dlq list {category}"
        )));
    }
    let key = key(catalog, key_text)?;
    let wanted = group_name.map(|name| group(catalog, name)).transpose()?;
    let readers: Vec<_> = catalog
        .handlers
        .iter()
        .filter(|(_, handler)| handler.metadata.categories().contains(&&category))
        .map(|(group, _)| group)
        .collect();
    if let Some(wanted) = &wanted
        && !readers.contains(&wanted)
    {
        let readers: Vec<_> = readers.iter().map(ToString::to_string).collect();
        let readers = readers.join(", ");
        return Err(OperationError::Usage(format!("{wanted} does not read {category}; these do: {readers}")));
    }
    let groups = readers.into_iter().filter(|group| wanted.as_ref().is_none_or(|wanted| wanted == *group));
    Ok(groups.filter_map(|group| partition(catalog, group, &category, &key)).collect())
}

fn partition(catalog: &Catalog, group: &GroupName, category: &CategoryName, key: &Key) -> Option<PartitionSpec> {
    let sources = ReadySource::of_handler(catalog, group);
    let source = sources.iter().find(|source| match source {
        ReadySource::Category { category: name, .. } => name == category,
        ReadySource::ProcessManager { .. } => true,
        ReadySource::Shared { .. } => false,
    })?;
    source.partition(catalog, key.clone())
}

fn is_partitioned(catalog: &Catalog, category: &CategoryName) -> bool {
    catalog.categories.get(category).is_some_and(|entry| entry.key_field.is_some())
}

/// Whether the group is a process manager: its entries are named with their category.
pub(super) fn is_process_manager(catalog: &Catalog, group: &GroupName) -> bool {
    catalog.handlers.get(group).is_some_and(|handler| handler.metadata.role == Role::ProcessManager)
}
