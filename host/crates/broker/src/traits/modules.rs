//! The module registry: components under the hash of their bytes.
//!
//! What is deployed of them stands in the catalog. A module is stored before the catalog names it and dropped after it no
//! longer does, so a host always finds what the catalog names.

use async_trait::async_trait;
use bytes::Bytes;
use keyrail_ordering::Metadata;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;

/// What is known of a module without loading it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModuleInfo {
    /// SHA-256 of its bytes, in hex.
    pub content_hash: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// What it declares of itself.
    pub metadata: Metadata,
}

/// Storing modules.
#[async_trait]
pub trait Modules: Send + Sync {
    /// Stores a module. One that is there already is stored again, with the same content.
    async fn put_module(&self, info: &ModuleInfo, bytes: Bytes) -> Result<(), Error>;

    /// What is known of a module; none if it is not stored.
    async fn module_info(&self, content_hash: &str) -> Result<Option<ModuleInfo>, Error>;

    /// The bytes of a module; none if it is not stored. The caller checks the hash.
    async fn module(&self, content_hash: &str) -> Result<Option<Bytes>, Error>;

    /// Every module that is stored, by its hash.
    async fn modules(&self) -> Result<Vec<ModuleInfo>, Error>;

    /// Forgets a module. One that is gone already is no error.
    async fn drop_module(&self, content_hash: &str) -> Result<(), Error>;
}
