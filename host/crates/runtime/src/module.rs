//! A component that was loaded: compiled, linked, described.

use std::sync::Arc;

use keyrail_ordering::Metadata;

use crate::bindings::HandlerPre;
use crate::bindings::keyrail::handler::types as wit;
use crate::guest::Guest;
use crate::instance::{Instance, Limits, failure, new_store, run};
use crate::{InstantiateError, Runtime};

/// A handler that can be run. Never changes.
pub struct Module {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) handler: HandlerPre<Guest>,
    metadata: Metadata,
    content_hash: String,
    imports: Vec<String>,
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Module({} {}, {})", self.metadata.name, self.metadata.version, self.content_hash)
    }
}

impl Module {
    pub(crate) fn new(
        runtime: Arc<Runtime>,
        handler: HandlerPre<Guest>,
        metadata: Metadata,
        content_hash: String,
        imports: Vec<String>,
    ) -> Self {
        Self { runtime, handler, metadata, content_hash, imports }
    }

    /// Makes an instance for this alone and asks it to describe itself; one limit for both.
    pub(crate) async fn describe(
        runtime: &Runtime,
        handler: &HandlerPre<Guest>,
        content_hash: &str,
    ) -> Result<wit::Metadata, String> {
        let settings = &runtime.settings;
        let name = format!("component {}", &content_hash[..8]).into();
        let mut store = new_store(runtime, name, content_hash);
        let meter = store.data().meter.clone();
        let described = run(&meter, Limits::of_describe(settings), async {
            let instance = handler.instantiate_async(&mut store).await?;
            instance.keyrail_handler_guest().call_describe(&mut store).await
        });
        described.await.map_err(|stop| failure(store.data_mut(), stop).error)
    }

    /// What the handler says of itself.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// SHA-256 of the component's bytes, in hex.
    pub fn content_hash(&self) -> &str {
        &self.content_hash
    }

    /// The names of everything that it imports.
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// Whether a call can change the world outside the commit. Grants do not exist yet, so nothing can.
    pub fn has_external_effects(&self) -> bool {
        false
    }

    /// Makes an instance, if there is room for one.
    pub async fn instantiate(self: &Arc<Self>) -> Result<Instance, InstantiateError> {
        Instance::new(self.clone()).await
    }
}
