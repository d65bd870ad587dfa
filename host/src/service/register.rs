//! Putting handlers into the catalog: all or none.

use std::fmt;

use keyrail_broker::Error;
use keyrail_ordering::{Catalog, GroupName, Metadata};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Service;
use super::change::{ChangeError, change_catalog};

/// A handler to register. Its component was checked already.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Registration {
    /// What it declares.
    pub metadata: Metadata,
    /// Hash of the component's bytes, in hex.
    pub content_hash: String,
}

/// A handler that is in the catalog now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Registered {
    /// The handler.
    pub handler: GroupName,
    /// Its version.
    pub version: String,
    /// What changed.
    pub change: Change,
}

/// What a registration changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It was not there.
    New,
    /// It was there with another declaration or other content.
    Updated,
    /// It was there just so.
    Unchanged,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New => "registered",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
        })
    }
}

/// A handler that the catalog refuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefusedHandler {
    /// The handler.
    pub handler: String,
    /// Every reason.
    pub reasons: Vec<String>,
}

/// Why nothing was registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// The rules of the catalog.
    #[error("{}", one_line(.0))]
    Refused(Vec<RefusedHandler>),
    /// Others change the catalog all the time.
    #[error("the catalog was changed by others again and again; try again")]
    Contended,
    /// The broker.
    #[error(transparent)]
    Broker(#[from] Error),
}

impl From<ChangeError<Vec<RefusedHandler>>> for RegisterError {
    fn from(error: ChangeError<Vec<RefusedHandler>>) -> Self {
        match error {
            ChangeError::Refused(refused) => Self::Refused(refused),
            ChangeError::Contended => Self::Contended,
            ChangeError::Broker(error) => error.into(),
        }
    }
}

fn one_line(refused: &[RefusedHandler]) -> String {
    let one = |r: &RefusedHandler| format!("handler {} is refused: {}", r.handler, r.reasons.join("; "));
    refused.iter().map(one).collect::<Vec<_>>().join("; ")
}

impl Service {
    /// Puts these handlers into the catalog, all or none. Nothing is written if nothing changes.
    pub async fn register(&self, registrations: &[Registration]) -> Result<Vec<Registered>, RegisterError> {
        let capabilities = self.broker.capabilities();
        let register = |before: &Catalog| {
            let mut next = before.clone();
            let mut refused = vec![];
            for Registration { metadata, content_hash } in registrations {
                match next.register(metadata, content_hash, capabilities) {
                    Ok(catalog) => next = catalog,
                    Err(reasons) => refused.push(RefusedHandler {
                        handler: metadata.name.to_string(),
                        reasons: reasons.iter().map(ToString::to_string).collect(),
                    }),
                }
            }
            if refused.is_empty() { Ok((next, ())) } else { Err(refused) }
        };
        let (before, ()) = change_catalog(self.broker.as_ref(), register).await?;
        Ok(changes(&before, registrations))
    }
}

fn changes(before: &Catalog, registrations: &[Registration]) -> Vec<Registered> {
    let change = |registration: &Registration| match before.handlers.get(&registration.metadata.name) {
        None => Change::New,
        Some(entry) if entry.metadata == registration.metadata && entry.content_hash == registration.content_hash => {
            Change::Unchanged
        }
        Some(_) => Change::Updated,
    };
    let registered = |registration: &Registration| Registered {
        handler: registration.metadata.name.clone(),
        version: registration.metadata.version.clone(),
        change: change(registration),
    };
    registrations.iter().map(registered).collect()
}
