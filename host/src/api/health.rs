//! Whether a host is fit for work, for whoever starts, stops and restarts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// How far a host is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It reads what is deployed.
    Starting,
    /// It owns keys.
    Serving,
    /// It gives its keys up.
    Stopping,
}

/// The stage that a host is in, for its API to tell.
#[derive(Debug, Clone)]
pub struct Health(Arc<AtomicU8>);

impl Default for Health {
    fn default() -> Self {
        Self(Arc::new(AtomicU8::new(0)))
    }
}

impl Health {
    /// From here on it is in this stage.
    pub fn enter(&self, stage: Stage) {
        self.0.store(stage as u8, Relaxed);
    }

    /// Where it is.
    pub fn stage(&self) -> Stage {
        match self.0.load(Relaxed) {
            0 => Stage::Starting,
            1 => Stage::Serving,
            _ => Stage::Stopping,
        }
    }
}
