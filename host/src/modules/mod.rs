//! Which components this host has: what is deployed to the fleet, and files of its own.
//!
//! [`Modules`] follows the catalog. A revision is fetched, compiled and checked in the background, beside the one that
//! serves; only one that is ready is given to the engine, which swaps between two events of a key. A file that this host
//! was given serves in place of whatever is deployed under its name.
//!
//! - [`follower`] is the task that does it; [`loading`] gets one revision;
//! - [`directory`] watches a folder of components; [`manifest`] finds the manifest of a file;
//! - [`canary`] takes a canary back when keys halt under it.

mod canary;
mod directory;
mod follower;
mod loading;
pub mod manifest;

use std::path::PathBuf;
use std::sync::Arc;

use keyrail_runtime::{Module, Runtime};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::ModulesConfig;
use crate::engine::Engine;
use crate::service::Service;
use follower::Follower;

/// The modules of a host that runs.
pub struct Modules {
    stop: CancellationToken,
    follower: JoinHandle<()>,
    settled: watch::Receiver<bool>,
}

/// Components that this host was given as files.
#[derive(Default)]
pub struct OwnFiles {
    /// Loaded and registered already.
    pub modules: Vec<Arc<Module>>,
    /// A folder to watch for more.
    pub directory: Option<PathBuf>,
}

impl Modules {
    /// Begins to follow. What the engine was started with must be among `own`.
    pub fn start(
        service: Service,
        runtime: Arc<Runtime>,
        engine: &mut Engine,
        own: OwnFiles,
        config: &ModulesConfig,
    ) -> Self {
        let stop = CancellationToken::new();
        let (told, settled) = watch::channel(false);
        let halts = engine.canary_halts();
        let follower = Follower::new(service, runtime, engine.handlers(), own, config.clone(), told);
        let follower = tokio::spawn(follower.run(halts, stop.clone()));
        Self { stop, follower, settled }
    }

    /// Waits until nothing is being loaded.
    pub fn until_settled(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut settled = self.settled.clone();
        async move {
            // The follower is gone only when it was stopped.
            let _ = settled.wait_for(|settled| *settled).await;
        }
    }

    /// Loads nothing any more. What serves goes on.
    pub async fn stop(self) {
        self.stop.cancel();
        let _ = self.follower.await;
    }
}
