//! Looking at state and what is left to do, in pages.

use std::fmt;
use std::str::FromStr;

use keyrail_broker::{Backlog, Error, ReadySource};
use keyrail_ordering::Catalog;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Service;
use super::rows::{State, shown};

/// The catalog and its version.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CatalogView {
    /// Grows with each change.
    pub version: u64,
    /// What is registered.
    pub catalog: Catalog,
}

/// A part of a listing.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Where to go on; none at the end.
    pub next: Option<String>,
}

/// Why nothing was shown.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// No handler on that category.
    #[error("unknown category {name:?}{}", listing(.known))]
    UnknownCategory {
        /// As given.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// No such handler.
    #[error("no handler named {name:?} is registered{}", listing(.known))]
    UnknownGroup {
        /// As given.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// It cannot be meant.
    #[error("{0}")]
    Usage(String),
    /// The broker.
    #[error(transparent)]
    Broker(#[from] Error),
}

fn listing(names: &[String]) -> String {
    if names.is_empty() {
        "; none is, see keyrail register".into()
    } else {
        format!("; there are: {}", names.join(", "))
    }
}

/// A place in a listing over several sources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    pub(super) source: usize,
    pub(super) at: u64,
}

/// A text that is no cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a cursor; give the `next` of the page before")]
pub struct CursorError(String);

impl FromStr for Cursor {
    type Err = CursorError;
    fn from_str(text: &str) -> Result<Self, CursorError> {
        let parse = || {
            let (source, at) = text.split_once('.')?;
            Some(Self { source: source.parse().ok()?, at: at.parse().ok()? })
        };
        parse().ok_or_else(|| CursorError(text.into()))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.source, self.at)
    }
}

impl Service {
    /// State of a group's keys, one page.
    pub async fn states(&self, group: &str, cursor: Cursor, limit: usize) -> Result<Page<State>, InspectError> {
        let (catalog, _) = self.broker.catalog().await?;
        let Some(group) = catalog.handlers.keys().find(|name| name.as_str() == group) else {
            let known = catalog.handlers.keys().map(ToString::to_string).collect();
            return Err(InspectError::UnknownGroup { name: group.into(), known });
        };
        let sources = ReadySource::of_handler(&catalog, group);
        let Some(source) = sources.get(cursor.source) else { return Ok(Page { rows: vec![], next: None }) };
        let (rows, next) = self.broker.states(source, cursor.at, limit).await?;
        let next = following(cursor, next, sources.len());
        let several = sources.len() > 1;
        Ok(Page { rows: rows.into_iter().map(|row| shown(row, several)).collect(), next })
    }

    /// What is left to do over all that is registered.
    pub async fn backlog(&self) -> Result<Backlog, Error> {
        let (catalog, _) = self.broker.catalog().await?;
        let sources: Vec<_> =
            catalog.handlers.keys().flat_map(|group| ReadySource::of_handler(&catalog, group)).collect();
        self.broker.backlog(&sources).await
    }

    /// What is registered.
    pub async fn catalog(&self) -> Result<CatalogView, Error> {
        let (catalog, version) = self.broker.catalog().await?;
        Ok(CatalogView { version, catalog })
    }
}

pub(super) fn following(cursor: Cursor, at: Option<u64>, sources: usize) -> Option<String> {
    let next = match at {
        Some(at) => Cursor { at, ..cursor },
        None => Cursor { source: cursor.source + 1, at: 0 },
    };
    (next.source < sources).then(|| next.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_cursor_walks_the_sources() {
        let start = Cursor::default();
        assert_eq!(following(start, Some(7), 2).as_deref(), Some("0.7"));
        assert_eq!(following(start, None, 2).as_deref(), Some("1.0"));
        assert_eq!(following("1.9".parse().unwrap(), None, 2), None);
        assert!("x".parse::<Cursor>().is_err());
    }
}
