//! What the engine needs of a handler. A module of the runtime is one; a test's native handler is another.

use std::sync::Arc;

use async_trait::async_trait;
use keyrail_ordering::{BatchLimits, Metadata, RetryPolicy};
use keyrail_runtime::{Answer, Call, CallHost, Instance, InstantiateError, Module};

/// A loaded handler.
#[async_trait]
pub trait Handler: Send + Sync {
    /// What it declared.
    fn metadata(&self) -> &Metadata;

    /// Its tries and waits: the host's, with what its options say. Options that say nothing sensible were refused when it was
    /// registered.
    fn retry(&self, host: &RetryPolicy) -> RetryPolicy {
        host.with_options(&self.metadata().options).unwrap_or_else(|_| host.clone())
    }

    /// How many of its events are committed at once. More than one only if nothing that a call does reaches the world before its
    /// commit: otherwise it would be done again for every event of a batch that is undone.
    fn batch(&self, _host: &BatchLimits) -> BatchLimits {
        BatchLimits::STRICT
    }

    /// A fresh instance, for one partition. `seed` is what its start-up code draws chance from, without a grant for real one.
    async fn instantiate(&self, seed: &str) -> Result<Box<dyn HandlerInstance>, InstantiateError>;
}

/// An instance of a handler. Serves one partition only.
#[async_trait]
pub trait HandlerInstance: Send {
    /// Handles one event.
    async fn call(&mut self, call: &Call<'_>, host: Box<dyn CallHost>) -> Answer;

    /// Whether it must not be used again.
    fn is_spent(&self) -> bool;
}

/// A WebAssembly module as a handler.
pub struct WasmHandler(pub Arc<Module>);

#[async_trait]
impl Handler for WasmHandler {
    fn metadata(&self) -> &Metadata {
        self.0.metadata()
    }

    fn batch(&self, host: &BatchLimits) -> BatchLimits {
        if self.0.external_effects() {
            return BatchLimits::STRICT;
        }
        host.with_options(&self.metadata().options).unwrap_or(BatchLimits::STRICT)
    }

    async fn instantiate(&self, seed: &str) -> Result<Box<dyn HandlerInstance>, InstantiateError> {
        Ok(Box::new(self.0.instantiate_for(seed).await?))
    }
}

#[async_trait]
impl HandlerInstance for Instance {
    async fn call(&mut self, call: &Call<'_>, host: Box<dyn CallHost>) -> Answer {
        Instance::call(self, call, host).await
    }

    fn is_spent(&self) -> bool {
        Instance::is_spent(self)
    }
}
