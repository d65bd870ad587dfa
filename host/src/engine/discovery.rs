//! Finds partitions that have work and no owner, and starts a worker on each, up to `partitions_max`.
//!
//! A bell names a key at once; it is only a hint. The ready sets are looked through at the start, after bells may have
//! been lost, and now and then, so nothing depends on a message that can get lost.

use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use keyrail_broker::{Bell, Bells, ReadySource};
use keyrail_ordering::{Key, PartitionId, PartitionSpec};
use rand::seq::SliceRandom;
use tokio::sync::mpsc;
use tracing::{error, warn};

use super::shared::Shared;
use super::worker::{self, Ending};
use crate::clock;

/// Partitions that failed lately; beyond this the oldest knowledge is dropped.
const COOLING_MAX: usize = 10_000;

pub(super) async fn run(shared: Arc<Shared>, sources: Vec<ReadySource>, mut bells: Bells) {
    let (ended, mut endings) = mpsc::channel(shared.config.partitions_max);
    let mut discovery = Discovery {
        sweeps: sources.into_iter().map(Sweep::new).collect(),
        candidates: VecDeque::new(),
        queued: HashSet::new(),
        cooling: HashMap::new(),
        ended,
        shared: shared.clone(),
    };
    let mut interval = tokio::time::interval(Duration::from_millis(shared.config.sweep_interval_ms));
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        discovery.fill().await;
        tokio::select! {
            () = shared.stopping.cancelled() => return,
            bell = bells.next() => match bell {
                Some(Bell::Ready { source, key }) => discovery.bell(source, key),
                Some(Bell::Lost) | None => {
                    discovery.sweep_all();
                    if bell.is_none() {
                        bells = futures::stream::pending().boxed();
                    }
                }
                // The committing host routes its own; the router's sweep finds what a dead one left.
                Some(Bell::Outbox) => {}
            },
            Some(ended) = endings.recv() => discovery.ended(ended),
            _ = interval.tick() => {
                discovery.refresh_catalog().await;
                discovery.sweep_all();
            }
        }
    }
}

/// How far one ready set has been looked through.
struct Sweep {
    source: ReadySource,
    /// Where to go on; none when it need not be.
    cursor: Option<u64>,
    /// Whether this pass found anything: then another pass follows, since keys shift while they are settled.
    found: bool,
}

impl Sweep {
    fn new(source: ReadySource) -> Self {
        Self { source, cursor: Some(0), found: false }
    }
}

struct Discovery {
    shared: Arc<Shared>,
    sweeps: Vec<Sweep>,
    candidates: VecDeque<PartitionSpec>,
    /// What is in `candidates`.
    queued: HashSet<PartitionId>,
    /// Partitions that could not be acquired, until when they are left alone.
    cooling: HashMap<PartitionId, u64>,
    ended: mpsc::Sender<Ended>,
}

/// A worker that has ended.
struct Ended {
    spec: Arc<PartitionSpec>,
    ending: Ending,
    /// A bell rang that it has not heard.
    belled: bool,
}

impl Discovery {
    fn has_room(&self) -> bool {
        self.shared.holdings.len() < self.shared.config.partitions_max
    }

    /// Starts workers while there is room and there are keys, looking through ready sets as needed.
    async fn fill(&mut self) {
        while !self.shared.stopping.is_cancelled() {
            while self.has_room()
                && let Some(spec) = self.candidates.pop_front()
            {
                self.queued.remove(&spec.id);
                self.start(spec);
            }
            if !self.candidates.is_empty() {
                break;
            }
            let Some(index) = self.sweeps.iter().position(|sweep| sweep.cursor.is_some()) else { break };
            if !self.look(index).await {
                break;
            }
        }
        self.shared.crowded.store(!self.candidates.is_empty(), Relaxed);
    }

    /// Reads the next page of one ready set. False if the broker failed.
    async fn look(&mut self, index: usize) -> bool {
        let sweep = &self.sweeps[index];
        let cursor = sweep.cursor.unwrap_or(0);
        let limit = self.shared.config.discovery_batch_max;
        let page = match self.shared.broker.ready(&sweep.source, cursor, limit).await {
            Ok(page) => page,
            Err(error) => {
                warn!(%error, "a ready set could not be read");
                self.sweeps[index].cursor = None;
                return false;
            }
        };
        let source = sweep.source.clone();
        let mut keys = page.keys;
        // Several hosts look through the same set: in a different order each, so that they seldom want the same key.
        keys.shuffle(&mut rand::rng());
        let mut found = false;
        for key in keys {
            found |= self.enqueue(spec_of(&source, key));
        }
        let sweep = &mut self.sweeps[index];
        sweep.found |= found;
        sweep.cursor = page.next;
        if sweep.cursor.is_none() && std::mem::take(&mut sweep.found) {
            sweep.cursor = Some(0);
        }
        true
    }

    /// Whether the partition was new to us.
    fn enqueue(&mut self, spec: PartitionSpec) -> bool {
        if self.queued.contains(&spec.id) || self.shared.holdings.contains(&spec.id) {
            return false;
        }
        if self.cooling.get(&spec.id).is_some_and(|until_ms| clock::now_ms() < *until_ms) {
            return false;
        }
        self.queued.insert(spec.id.clone());
        self.candidates.push_back(spec);
        true
    }

    fn bell(&mut self, source: ReadySource, key: Key) {
        let spec = spec_of(&source, key);
        if self.shared.holdings.bell(&spec.id) {
            return;
        }
        if self.candidates.len() < self.shared.config.candidates_max {
            self.enqueue(spec);
        } else if let Some(sweep) = self.sweeps.iter_mut().find(|sweep| sweep.source == source) {
            sweep.cursor.get_or_insert(0);
        }
    }

    fn sweep_all(&mut self) {
        for sweep in &mut self.sweeps {
            sweep.cursor.get_or_insert(0);
        }
        let now_ms = clock::now_ms();
        self.cooling.retain(|_, until_ms| now_ms < *until_ms);
    }

    fn start(&mut self, spec: PartitionSpec) {
        let Some(handler) = self.shared.handlers.get(&spec.id.group).cloned() else { return };
        let Some(holding) = self.shared.holdings.reserve(&spec.id) else { return };
        let (shared, ended) = (self.shared.clone(), self.ended.clone());
        tokio::spawn(async move {
            let spec = Arc::new(spec);
            let partition = spec.id.clone();
            let work = AssertUnwindSafe(worker::run(shared.clone(), handler, spec.clone(), holding));
            let ending = work.catch_unwind().await.unwrap_or_else(|_| {
                // Not released: it lapses, and the next owner counts a crash for the head.
                error!(%partition, "the worker panicked; its lease lapses");
                Ending::Failed
            });
            let belled = shared.holdings.remove(&partition);
            // Discovery is gone only when the engine stops.
            let _ = ended.send(Ended { spec, ending, belled }).await;
        });
    }

    fn ended(&mut self, ended: Ended) {
        let Ended { spec, ending, belled } = ended;
        if ending == Ending::Failed {
            if self.cooling.len() >= COOLING_MAX {
                self.cooling.clear();
            }
            let until_ms = clock::now_ms() + self.shared.config.sweep_interval_ms;
            self.cooling.insert(spec.id.clone(), until_ms);
        } else if belled {
            self.enqueue(spec.as_ref().clone());
        }
    }

    async fn refresh_catalog(&self) {
        match self.shared.broker.catalog().await {
            Ok((catalog, _)) => self.shared.set_catalog(catalog),
            Err(error) => warn!(%error, "the catalog could not be read"),
        }
    }
}

fn spec_of(source: &ReadySource, key: Key) -> PartitionSpec {
    match source {
        ReadySource::Category { group, category } => PartitionSpec::of_key(group.clone(), category.clone(), key),
        ReadySource::ProcessManager { .. } => unreachable!("refused when the engine starts"),
    }
}
