//! Partitions, searched: by category, handler, key and how they stand, in pages.
//!
//! Invariant: a page costs a bounded amount, so it may be short, or empty, and go on.

use std::str::FromStr;

use keyrail_broker::{Error, PartitionRow, Paused, ReadySource, Standing, Wanted, WantedKey};
use keyrail_ordering::{Catalog, CategoryName, GroupName, Key};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inspect::{InspectError, following};
use super::rows::Row;
use super::{Cursor, Page, Service};

/// Bytes of a prefix: no key is longer.
const PREFIX_MAX_BYTES: usize = 256;

/// Which partitions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Search {
    /// Those that read this category; process managers too.
    pub category: Option<String>,
    /// Those of this handler.
    pub group: Option<String>,
    /// Those of this key.
    pub key: Option<String>,
    /// Those whose key begins so.
    pub prefix: Option<String>,
    /// Those that stand so.
    pub status: Option<Status>,
}

/// How a partition stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It has unsettled events, and does not stand still.
    Waiting,
    /// A host holds it.
    Owned,
    /// It stands still.
    Halted,
    /// It is paused, by itself or with its category.
    Paused,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Owned, Self::Halted, Self::Paused];

    /// As queries and the command line name it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Owned => "owned",
            Self::Halted => "halted",
            Self::Paused => "paused",
        }
    }
}

impl FromStr for Status {
    type Err = InspectError;
    fn from_str(text: &str) -> Result<Self, InspectError> {
        let known = Self::ALL.into_iter().find(|status| status.word() == text);
        known.ok_or_else(|| {
            InspectError::Usage(format!("{text:?} is no status; there are: waiting, owned, halted, paused"))
        })
    }
}

impl Service {
    /// Partitions, one page.
    pub async fn partitions(&self, search: &Search, cursor: Cursor, limit: usize) -> Result<Page<Row>, InspectError> {
        let (catalog, _) = self.broker.catalog().await?;
        let wanted = Wanted { key: wanted_key(&catalog, search)?, standing: standing(search.status) };
        let sources = sources(&catalog, search)?;
        let Some(source) = sources.get(cursor.source) else { return Ok(Page { rows: vec![], next: None }) };
        let paused = self.paused_of(&catalog, source).await?;
        let is_paused = |key: &Key| paused.iter().any(|paused| paused.key.as_ref().is_none_or(|of| of == key));
        let (rows, next) = if search.status == Some(Status::Paused) && paused.iter().all(|pause| pause.key.is_some()) {
            self.paused_keys(source, &wanted, &paused, cursor.at, limit).await?
        } else {
            self.broker.find(source, &wanted, cursor.at, limit).await?
        };
        let rows = rows.into_iter().map(|row| {
            let paused = is_paused(row.partition.key());
            Row::new(row, paused)
        });
        Ok(Page { rows: rows.collect(), next: following(cursor, next, sources.len()) })
    }

    /// Partitions of the keys that are paused one by one, from a place in their list on.
    async fn paused_keys(
        &self,
        source: &ReadySource,
        wanted: &Wanted,
        paused: &[Paused],
        from: u64,
        limit: usize,
    ) -> Result<(Vec<PartitionRow>, Option<u64>), Error> {
        let mut keys: Vec<&Key> = paused.iter().filter_map(|pause| pause.key.as_ref()).collect();
        keys.sort_unstable();
        keys.dedup();
        let keys: Vec<_> = keys.into_iter().filter(|key| has(&wanted.key, key)).collect();
        let from = (from as usize).min(keys.len());
        let to = (from + limit).min(keys.len());
        let mut rows = vec![];
        for key in &keys[from..to] {
            let one = Wanted { key: WantedKey::Is((*key).clone()), standing: Standing::Any };
            rows.extend(self.broker.find(source, &one, 0, 1).await?.0);
        }
        Ok((rows, (to < keys.len()).then_some(to as u64)))
    }

    /// What is paused of the categories that a source reads.
    async fn paused_of(&self, catalog: &Catalog, source: &ReadySource) -> Result<Vec<Paused>, Error> {
        let mut paused = vec![];
        for category in categories(catalog, source) {
            paused.extend(self.broker.paused(category).await?);
        }
        Ok(paused)
    }
}

/// The sources that a search goes through, in order.
fn sources(catalog: &Catalog, search: &Search) -> Result<Vec<ReadySource>, InspectError> {
    let known = |names: Vec<String>, name: &str| !names.iter().any(|known| known == name);
    let categories_known = || catalog.categories.keys().map(ToString::to_string).collect::<Vec<_>>();
    let groups_known = || catalog.handlers.keys().map(ToString::to_string).collect::<Vec<_>>();
    if let Some(name) = search.category.as_ref().filter(|name| known(categories_known(), name)) {
        return Err(InspectError::UnknownCategory { name: name.clone(), known: categories_known() });
    }
    if let Some(name) = search.group.as_ref().filter(|name| known(groups_known(), name)) {
        return Err(InspectError::UnknownGroup { name: name.clone(), known: groups_known() });
    }
    let is_group = |group: &&GroupName| search.group.as_ref().is_none_or(|name| group.as_str() == name);
    let all = catalog.handlers.keys().filter(is_group).flat_map(|group| ReadySource::of_handler(catalog, group));
    let is_wanted = |source: &ReadySource| {
        let reads = |name: &String| categories(catalog, source).iter().any(|category| category.as_str() == name);
        // A category that is not partitioned has no partitions.
        !matches!(source, ReadySource::Shared { .. }) && search.category.as_ref().is_none_or(reads)
    };
    Ok(all.filter(is_wanted).collect())
}

/// The categories that a source reads.
pub(super) fn categories<'a>(catalog: &'a Catalog, source: &'a ReadySource) -> Vec<&'a CategoryName> {
    match source {
        ReadySource::Category { category, .. } | ReadySource::Shared { category, .. } => vec![category],
        ReadySource::ProcessManager { group } => {
            catalog.handlers.get(group).map(|handler| handler.metadata.categories()).unwrap_or_default()
        }
    }
}

fn wanted_key(catalog: &Catalog, search: &Search) -> Result<WantedKey, InspectError> {
    match (&search.key, &search.prefix) {
        (Some(_), Some(_)) => Err(InspectError::Usage("give a key or a prefix, not both".into())),
        (Some(key), None) => Key::parse(key, &catalog.key_rules)
            .map(WantedKey::Is)
            .map_err(|error| InspectError::Usage(error.to_string())),
        (None, Some(prefix)) if prefix.len() > PREFIX_MAX_BYTES => Err(InspectError::Usage(format!(
            "the prefix has {} bytes; keys have at most {PREFIX_MAX_BYTES}",
            prefix.len()
        ))),
        (None, Some(prefix)) => Ok(WantedKey::StartsWith(prefix.clone())),
        (None, None) => Ok(WantedKey::Any),
    }
}

fn has(wanted: &WantedKey, key: &Key) -> bool {
    match wanted {
        WantedKey::Any => true,
        WantedKey::Is(is) => is == key,
        WantedKey::StartsWith(prefix) => key.as_str().starts_with(prefix.as_str()),
    }
}

fn standing(status: Option<Status>) -> Standing {
    match status {
        None | Some(Status::Paused) => Standing::Any,
        Some(Status::Waiting) => Standing::Waiting,
        Some(Status::Owned) => Standing::Owned,
        Some(Status::Halted) => Standing::Halted,
    }
}
