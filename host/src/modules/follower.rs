//! The task that keeps what this host serves at what is deployed.
//!
//! Invariant: the engine is only ever given what is loaded and checked. What served before goes on until then.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use keyrail_ordering::{Catalog, Deployment, GroupName, Held, HeldState, Revision, Usage};
use keyrail_runtime::{Module, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::directory::Directory;
use super::loading::{LoadFailure, load};
use super::{OwnFiles, canary, manifest};
use crate::config::ModulesConfig;
use crate::engine::{CanaryHalt, Handlers, Serving, Version, WasmHandler};
use crate::service::{Registration, Service};

/// A revision that is wanted here.
struct Load {
    revision: Revision,
    state: State,
    serves: bool,
}

enum State {
    Loading,
    Ready(Arc<WasmHandler>),
    Failed(LoadFailure),
}

/// What a loading task came to.
enum Loaded {
    Revision { group: GroupName, number: u64, outcome: Result<Arc<Module>, LoadFailure> },
    File { path: PathBuf, outcome: Result<Arc<Module>, String> },
}

pub(super) struct Follower {
    service: Service,
    runtime: Arc<Runtime>,
    handlers: Handlers,
    config: ModulesConfig,
    /// Handlers of this host's own files.
    own: BTreeMap<GroupName, Arc<Module>>,
    directory: Option<Directory>,
    /// Files of the folder that are being loaded.
    loading_files: usize,
    loads: BTreeMap<(GroupName, u64), Load>,
    /// Deployed handlers that the engine serves.
    served: BTreeSet<GroupName>,
    loaded: (mpsc::Sender<Loaded>, Option<mpsc::Receiver<Loaded>>),
    settled: watch::Sender<bool>,
}

impl Follower {
    pub(super) fn new(
        service: Service,
        runtime: Arc<Runtime>,
        handlers: Handlers,
        own: OwnFiles,
        config: ModulesConfig,
        settled: watch::Sender<bool>,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(16);
        Self {
            service,
            runtime,
            handlers,
            config,
            own: own.modules.into_iter().map(|module| (module.metadata().name.clone(), module)).collect(),
            directory: own.directory.map(Directory::new),
            loading_files: 0,
            loads: BTreeMap::new(),
            served: BTreeSet::new(),
            loaded: (sender, Some(receiver)),
            settled,
        }
    }

    pub(super) async fn run(mut self, halts: Option<mpsc::Receiver<CanaryHalt>>, stop: CancellationToken) {
        let mut catalogs = self.handlers.catalogs();
        let Some(mut loaded) = self.loaded.1.take() else { return };
        let mut halts = halts.unwrap_or_else(|| mpsc::channel(1).1);
        let mut looks = interval(self.config.watch_interval_ms);
        let mut retries = interval(self.config.retry_interval_ms);
        // Twice, since a file counts once it was seen alike two times.
        let mut looks_left: u32 = if self.directory.is_some() { 2 } else { 0 };
        loop {
            let catalog = catalogs.borrow_and_update().clone();
            self.reconcile(&catalog);
            self.settled.send_replace(looks_left == 0 && self.is_settled());
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                Some(loaded) = loaded.recv() => self.take(loaded).await,
                changed = catalogs.changed() => {
                    // The engine is gone.
                    if changed.is_err() {
                        return;
                    }
                }
                Some(halt) = halts.recv() => {
                    let service = self.service.clone();
                    tokio::spawn(async move { canary::take_back(&service, &halt).await });
                }
                _ = looks.tick(), if self.directory.is_some() => {
                    looks_left = looks_left.saturating_sub(1);
                    self.look();
                }
                _ = retries.tick() => self.retry(),
            }
        }
    }

    fn is_settled(&self) -> bool {
        self.loading_files == 0 && !self.loads.values().any(|load| matches!(load.state, State::Loading))
    }

    /// Loads what is wanted, forgets what is not, and gives the engine what is ready.
    fn reconcile(&mut self, catalog: &Catalog) {
        let followed: Vec<_> = catalog.deployments.iter().filter(|(group, _)| !self.own.contains_key(*group)).collect();
        let wanted: BTreeMap<_, _> = followed
            .iter()
            .flat_map(|(group, deployment)| deployment.wanted().map(|it| (((*group).clone(), it.number), it)))
            .collect();
        self.loads.retain(|key, _| wanted.contains_key(key));
        for (key, revision) in wanted {
            if !self.loads.contains_key(&key) {
                self.start(key.0, revision.clone());
            }
        }
        for (group, deployment) in &followed {
            self.serve(group, deployment);
        }
        let gone = self
            .served
            .iter()
            .filter(|group| catalog.deployments.get(*group).is_none_or(|deployment| deployment.active.is_none()));
        for group in gone.cloned().collect::<Vec<_>>() {
            self.served.remove(&group);
            if !self.own.contains_key(&group) && self.handlers.remove(&group) {
                info!(handler = %group, "nothing of it is deployed any more: its keys are given up");
            }
        }
        self.tell();
    }

    fn start(&mut self, group: GroupName, revision: Revision) {
        let (runtime, broker, done) = (self.runtime.clone(), self.service.broker().clone(), self.loaded.0.clone());
        let (number, wanted) = (revision.number, revision.clone());
        let of = group.clone();
        tokio::spawn(async move {
            let outcome = load(&runtime, broker.as_ref(), &of, &wanted).await;
            // Nobody listens only when the host ends.
            let _ = done.send(Loaded::Revision { group: of, number, outcome }).await;
        });
        self.loads.insert((group, number), Load { revision, state: State::Loading, serves: false });
    }

    fn retry(&mut self) {
        let may_pass = |load: &Load| matches!(&load.state, State::Failed(failure) if failure.may_pass);
        let again: Vec<_> = self.loads.iter().filter(|(_, load)| may_pass(load)).map(|(key, _)| key.clone()).collect();
        for key in again {
            if let Some(load) = self.loads.remove(&key) {
                self.start(key.0, load.revision);
            }
        }
    }

    async fn take(&mut self, loaded: Loaded) {
        match loaded {
            Loaded::Revision { group, number, outcome } => {
                let Some(load) = self.loads.get_mut(&(group.clone(), number)) else { return };
                let label = load.revision.label();
                load.state = match outcome {
                    Ok(module) => {
                        info!(handler = %group, version = label, "ready");
                        State::Ready(Arc::new(WasmHandler(module)))
                    }
                    Err(failure) => {
                        error!(handler = %group, version = label, "cannot be run on this host: {}", failure.why);
                        State::Failed(failure)
                    }
                };
            }
            Loaded::File { path, outcome } => {
                self.loading_files -= 1;
                match outcome {
                    Ok(module) => self.take_file(&path, module).await,
                    Err(why) => error!("{why}; what served before goes on"),
                }
            }
        }
    }

    /// A file of the folder is registered, and serves from here on.
    async fn take_file(&mut self, path: &std::path::Path, module: Arc<Module>) {
        let group = module.metadata().name.clone();
        if self.own.get(&group).is_some_and(|present| present.content_hash() == module.content_hash()) {
            return;
        }
        let registration =
            Registration { metadata: module.metadata().clone(), content_hash: module.content_hash().into() };
        if let Err(error) = self.service.register(&[registration]).await {
            error!("{} is refused: {error}; what served before goes on", path.display());
            return;
        }
        info!(handler = %group, version = module.metadata().version, file = %path.display(), "serves from here on");
        let serving = Serving::all(Version::local(Arc::new(WasmHandler(module.clone()))));
        self.own.insert(group.clone(), module);
        self.handlers.set(&group, serving);
    }

    /// Gives the engine what is ready of a deployment.
    fn serve(&mut self, group: &GroupName, deployment: &Deployment) {
        let Some(active) = deployment.active() else { return };
        let Some(version) = self.version(group, active, false) else { return };
        let mut serving = Serving::all(version);
        let canary = deployment.candidate().filter(|(candidate, _)| candidate.serves);
        if let Some((candidate, revision)) = canary
            && let Some(selection) = &candidate.canary
        {
            match self.version(group, revision, true) {
                Some(version) => serving.canary = Some((selection.clone(), version)),
                // Its keys must not begin on one version and go on with the other.
                None if self.is_loading(group, revision.number) && !self.served.contains(group) => return,
                None => {}
            }
        }
        let numbers: Vec<_> = [Some(&serving.active), serving.canary.as_ref().map(|(_, version)| version)]
            .into_iter()
            .flatten()
            .filter_map(|version| version.revision)
            .collect();
        let label = serving.active.label.clone();
        if self.handlers.set(group, serving) {
            info!(handler = %group, version = %label, canary = numbers.len() > 1, "serves from here on");
        }
        self.served.insert(group.clone());
        for ((of, number), load) in &mut self.loads {
            if of == group {
                load.serves = numbers.contains(number);
            }
        }
    }

    fn version(&self, group: &GroupName, revision: &Revision, is_canary: bool) -> Option<Version> {
        match &self.loads.get(&(group.clone(), revision.number))?.state {
            State::Ready(handler) => {
                Some(Version::deployed(handler.clone(), revision.number, &revision.label(), is_canary))
            }
            _ => None,
        }
    }

    fn is_loading(&self, group: &GroupName, number: u64) -> bool {
        self.loads.get(&(group.clone(), number)).is_some_and(|load| matches!(load.state, State::Loading))
    }

    fn look(&mut self) {
        let Some(directory) = &mut self.directory else { return };
        for path in directory.look() {
            let (runtime, done) = (self.runtime.clone(), self.loaded.0.clone());
            self.loading_files += 1;
            tokio::spawn(async move {
                let outcome = match manifest::read(&path, None) {
                    Ok((_, manifest)) => runtime.load(&path, &manifest).await.map_err(|error| error.to_string()),
                    Err(why) => Err(why),
                };
                let _ = done.send(Loaded::File { path, outcome }).await;
            });
        }
    }

    /// Lets the other hosts know what this one has.
    fn tell(&self) {
        let own = self.own.iter().map(|(group, module)| Held {
            group: group.clone(),
            revision: None,
            version: module.metadata().version.clone(),
            state: HeldState::Serving,
            usage: usage(module),
        });
        let deployed = self.loads.iter().map(|((group, number), load)| Held {
            group: group.clone(),
            revision: Some(*number),
            version: load.revision.version.clone(),
            state: match &load.state {
                State::Loading => HeldState::Loading,
                State::Ready(_) if load.serves => HeldState::Serving,
                State::Ready(_) => HeldState::Ready,
                State::Failed(failure) => HeldState::Failed(failure.why.clone()),
            },
            usage: match &load.state {
                State::Ready(handler) => usage(&handler.0),
                _ => Usage::default(),
            },
        });
        self.handlers.tell(own.chain(deployed).collect());
    }
}

fn usage(module: &Module) -> Usage {
    let usage = module.usage();
    Usage {
        calls: usage.calls,
        failed: usage.failures,
        cpu_us: usage.cpu_us,
        host_us: usage.host_us,
        memory_max_bytes: usage.memory_high_bytes,
        denied: usage.denied,
    }
}

fn interval(period_ms: u64) -> tokio::time::Interval {
    let mut interval = tokio::time::interval(Duration::from_millis(period_ms));
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
