//! A component that was loaded: compiled, linked, described.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use keyrail_ordering::{EntryRef, Metadata};
use tokio::sync::Semaphore;

use crate::bindings::HandlerPre;
use crate::bindings::keyrail::handler::types as wit;
use crate::contract::Wants;
use crate::guest::{Guest, Kit};
use crate::instance::{Instance, Time, failure, new_store, run};
use crate::limits::Limits;
use crate::{InstantiateError, Manifest, Runtime, Usage};

/// Times that one event is put off because the host was slow; after that it is a failed try, which ends at some time.
const SLOW_MAX: u32 = 5;
/// Events whose slow calls are remembered.
const SLOW_EVENTS_MAX: usize = 1_024;

/// A handler that can be run. Never changes.
pub struct Module {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) handler: HandlerPre<Guest>,
    pub(crate) kit: Kit,
    pub(crate) core_instances: u32,
    /// Its own share of the room.
    pub(crate) places: Arc<Semaphore>,
    metadata: Metadata,
    manifest: Manifest,
    imports: Vec<String>,
    wants: Wants,
    warnings: Vec<String>,
    slow: Slow,
}

/// What was found out about a component before it is a module.
pub(crate) struct Loaded {
    pub(crate) handler: HandlerPre<Guest>,
    pub(crate) kit: Kit,
    pub(crate) core_instances: u32,
    pub(crate) metadata: Metadata,
    pub(crate) manifest: Manifest,
    pub(crate) imports: Vec<String>,
    pub(crate) wants: Wants,
    pub(crate) warnings: Vec<String>,
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Module({} {}, {})", self.metadata.name, self.metadata.version, self.kit.content_hash)
    }
}

impl Module {
    pub(crate) fn new(runtime: Arc<Runtime>, loaded: Loaded) -> Self {
        let Loaded { handler, kit, core_instances, metadata, manifest, imports, wants, warnings } = loaded;
        let places = kit.limits.handler_instances_max.min(Semaphore::MAX_PERMITS as u64) as usize;
        let (places, slow) = (Arc::new(Semaphore::new(places)), Slow::default());
        Self { runtime, handler, kit, core_instances, places, metadata, manifest, imports, wants, warnings, slow }
    }

    /// Makes an instance for this alone and asks it to describe itself; one limit for both. Nothing is granted.
    pub(crate) async fn describe(
        runtime: &Runtime,
        handler: &HandlerPre<Guest>,
        kit: &Kit,
    ) -> Result<wit::Metadata, String> {
        let mut store = new_store(runtime, kit, None);
        let meter = store.data().meter.clone();
        let described = run(&meter, Time::of_describe(&runtime.settings), async {
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
        &self.kit.content_hash
    }

    /// The names of everything that it imports.
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// What it was loaded with.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its limits: what the manifest wishes for, and the operator's defaults.
    pub fn limits(&self) -> &Limits {
        &self.kit.limits
    }

    /// What the manifest grants and the component does not use, a sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether a call can change the world outside the commit: it imports HTTP and is granted some.
    pub fn external_effects(&self) -> bool {
        self.wants.http && self.kit.granted.http.is_some()
    }

    /// What it has used on this host since it was loaded.
    pub fn usage(&self) -> Usage {
        self.kit.counters.read()
    }

    /// Makes an instance, if there is room for one.
    pub async fn instantiate(self: &Arc<Self>) -> Result<Instance, InstantiateError> {
        self.instantiate_for("").await
    }

    /// The same for one key: what start-up code draws by chance, such as the seed of a generator, is another for each `seed`
    /// and always the same for one.
    pub async fn instantiate_for(self: &Arc<Self>, seed: &str) -> Result<Instance, InstantiateError> {
        Instance::new(self.clone(), seed).await
    }

    /// Whether a call of the event that a slow host ended is put off once more, and uses no try. Not for ever: an event that
    /// never gets its state must halt in the end, so that somebody looks.
    pub(crate) fn is_put_off(&self, entry: &EntryRef) -> bool {
        self.slow.is_put_off(entry)
    }

    /// The event's call ended in another way.
    pub(crate) fn was_not_slow(&self, entry: &EntryRef) {
        self.slow.forget(entry);
    }
}

/// Events that a slow host ended, and how often in a row.
#[derive(Debug, Default)]
struct Slow {
    /// Whether `times` has any, so that a call need not lock.
    any: AtomicBool,
    times: Mutex<HashMap<EntryRef, u32>>,
}

impl Slow {
    fn is_put_off(&self, entry: &EntryRef) -> bool {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        if times.len() >= SLOW_EVENTS_MAX && !times.contains_key(entry) {
            // The host is slow for everybody; counting starts again.
            times.clear();
        }
        self.any.store(true, Relaxed);
        let slow = times.entry(entry.clone()).or_default();
        *slow += 1;
        if *slow < SLOW_MAX {
            return true;
        }
        times.remove(entry);
        false
    }

    fn forget(&self, entry: &EntryRef) {
        if self.any.load(Relaxed) {
            let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
            times.remove(entry);
            self.any.store(!times.is_empty(), Relaxed);
        }
    }
}
