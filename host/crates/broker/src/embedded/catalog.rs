//! The catalog: compared and set, with everything that follows from it in the same step.

use async_trait::async_trait;
use keyrail_ordering::{Capabilities, Catalog, CategoryName, StreamId};
use redb::ReadableDatabase;

use super::EmbeddedBroker;
use super::publish::{look, make_ready};
use super::reading;
use super::records::catalog::Topology;
use super::records::{catalog, lane_of, parse_key, ready, storage, streams};
use super::writer::Batch;
use crate::{Bell, CatalogStore, Error, ReadySource};

/// Rows of an index that are read at once.
const PAGE: usize = 1_000;

#[async_trait]
impl CatalogStore for EmbeddedBroker {
    fn capabilities(&self) -> Capabilities {
        Capabilities { stream_partitioning: true }
    }

    async fn catalog(&self) -> Result<(Catalog, u64), Error> {
        let txn = self.shared.database.begin_read().map_err(storage)?;
        catalog::get(&txn.open_table(catalog::TABLE).map_err(storage)?)
    }

    async fn set_catalog(&self, catalog: &Catalog, expected: u64) -> Result<Option<u64>, Error> {
        let catalog = catalog.clone();
        self.writer.call(move |batch| set(batch, &catalog, expected)).await
    }
}

fn set(batch: &mut Batch<'_, '_>, catalog: &Catalog, expected: u64) -> Result<Option<u64>, Error> {
    let (_, version) = catalog::get(&batch.tables.catalog)?;
    if version != expected {
        return Ok(None);
    }
    let next = Topology::of(catalog);
    for category in batch.memory.topology.categories.keys().chain(next.categories.keys()) {
        check_key_field(batch, &next, category)?;
    }

    batch.writes();
    let version = version + 1;
    catalog::put(&mut batch.tables.catalog, catalog, version)?;
    let before = std::mem::replace(&mut batch.memory.topology, next);
    for (category, entry) in &before.categories {
        for source in &entry.sources {
            if !batch.memory.topology.sources(category).contains(source) {
                retire(batch, source)?;
            }
        }
    }
    let mut welcomed = vec![];
    for (category, entry) in &batch.memory.topology.categories {
        for source in &entry.sources {
            if !before.sources(category).contains(source) {
                welcomed.push((category.clone(), source.clone()));
            }
        }
    }
    for (category, source) in &welcomed {
        welcome(batch, category, source)?;
    }
    batch.bells.push(Bell::Catalog);
    Ok(Some(version))
}

fn check_key_field(batch: &Batch<'_, '_>, next: &Topology, category: &CategoryName) -> Result<(), Error> {
    let (actual, wanted) = (batch.memory.topology.key_field(category), next.key_field(category));
    if actual == wanted || streams::list(&batch.tables.index, category.as_str(), 0, 1)?.is_empty() {
        return Ok(());
    }
    let name = |field: Option<&str>| field.map_or("no field".into(), |field| format!("{field:?}"));
    Err(Error::Refused(format!(
        "category {category} is partitioned by {} and has entries, so it cannot be partitioned by {}; \
         use another category",
        name(actual),
        name(wanted)
    )))
}

/// Empties the ready set of a group that has left. A process manager that still reads another category keeps its set.
fn retire(batch: &mut Batch<'_, '_>, source: &ReadySource) -> Result<(), Error> {
    let has_no_set = matches!(source, ReadySource::Shared { .. });
    if has_no_set || batch.memory.topology.categories.values().any(|category| category.sources.contains(source)) {
        return Ok(());
    }
    loop {
        let page = ready::list(&batch.tables.ready.order, source, 0, PAGE)?;
        if page.is_empty() {
            return Ok(());
        }
        for (_, key) in page {
            batch.tables.ready.remove(&mut batch.memory.counters, source, &parse_key(&key)?)?;
        }
    }
}

/// Fills the ready set of a group that is new to a category: every key that has entries for it.
fn welcome(batch: &mut Batch<'_, '_>, category: &CategoryName, source: &ReadySource) -> Result<(), Error> {
    if matches!(source, ReadySource::Shared { .. }) {
        look(batch.bells, source);
        return Ok(());
    }
    let mut from = 0;
    loop {
        let page = streams::list(&batch.tables.index, category.as_str(), from, PAGE)?;
        for (_, key, lane) in page.iter().filter(|(_, key, _)| !key.is_empty()) {
            let key = parse_key(key)?;
            let stream = StreamId { category: category.clone(), key: Some(key.clone()), lane: lane_of(*lane)? };
            let span = reading::span(batch.tables, source.group(), &stream)?;
            if span.is_some_and(|span| span.head().is_some()) {
                make_ready(batch.tables, &mut batch.memory.counters, batch.bells, source, &key)?;
            }
        }
        let Some((last, ..)) = page.last().filter(|_| page.len() == PAGE) else { return Ok(()) };
        from = last + 1;
    }
}
