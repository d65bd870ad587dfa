//! What a handler is deployed with: the limits that it wishes for, and what it is granted.
//!
//! A manifest holds no secret, only where this host finds it, so it may be stored and shown. By itself it decides nothing:
//! [`Runtime::load`](crate::Runtime::load) holds it against the operator's ceilings.

mod grants;
mod host_pattern;
mod text;

use serde::{Deserialize, Serialize};

pub use grants::{Grants, HttpGrant, HttpMethod, SecretSource};
pub use host_pattern::{HostPattern, Reach};

pub use crate::limits::Wishes;

/// Limits and grants of one handler. The default grants nothing and has the operator's limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Manifest {
    /// What it wishes for.
    pub limits: Wishes,
    /// What it may reach.
    pub grants: Grants,
}

/// A text that is no manifest: every reason, with its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct ManifestError(pub Vec<String>);

impl Manifest {
    /// Reads the text of a manifest, which is TOML. Every problem is listed.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        text::parse(text)
    }
}
