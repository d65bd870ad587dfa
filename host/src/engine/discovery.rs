//! Finds partitions that have work and no owner, and starts a worker on each that this host should own, up to
//! `partitions_max`.
//!
//! A bell names a key at once; it is only a hint. The ready sets are looked through at the start, after bells may have
//! been lost, when a lease or a wait ends, and now and then, so nothing depends on a message that can get lost.
//!
//! Who should own a key is worked out from the live members ([`Membership`](keyrail_ordering::Membership)); another host
//! takes it only when it has been without an owner for `grace_ms`. When members change, keys that should be elsewhere are
//! given up between two events.

mod lately;
mod looking;
mod sources;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use keyrail_broker::{Bell, Bells, ReadySource};
use keyrail_ordering::{Key, Membership, PartitionId, PartitionSpec};
use tokio::sync::mpsc;
use tracing::{debug, error, warn};

use super::pool::Pools;
use super::shared::Shared;
use super::worker::{self, Ending};
use crate::telemetry::metrics::LossCause;
use lately::Lately;
use looking::Sweep;

/// Partitions that failed lately, or that are another host's; beyond this the knowledge is dropped.
const REMEMBERED_MAX: usize = 10_000;
/// Bells and endings that are handled before the ready sets are looked through again.
const SIGNALS_MAX: usize = 256;

pub(super) async fn run(shared: Arc<Shared>, sources: Vec<ReadySource>, mut bells: Bells) {
    let (ended, mut endings) = mpsc::channel(shared.config.partitions_max);
    let mut discovery = Discovery {
        sweeps: vec![],
        sources: vec![],
        candidates: VecDeque::new(),
        queued: HashSet::new(),
        cooling: BTreeMap::new(),
        passed: BTreeMap::new(),
        lately: Lately::new(shared.config.linger_ms),
        look_at_ms: u64::MAX,
        pools: Pools::default(),
        ended,
        shared: shared.clone(),
    };
    discovery.set_sources(sources);
    let mut interval = tokio::time::interval(Duration::from_millis(shared.config.sweep_interval_ms));
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // Without knowing of the others this host would take what should be theirs.
    shared.until_announced().await;
    loop {
        discovery.fill().await;
        let look_at_ms = discovery.look_at_ms;
        tokio::select! {
            biased;
            () = shared.stopping.cancelled() => return,
            () = shared.assignment_changed.notified() => discovery.rebalance(),
            () = shared.served.changed.notified() => discovery.refresh_sources(&mut bells).await,
            _ = interval.tick() => {
                discovery.refresh_catalog().await;
                discovery.refresh_sources(&mut bells).await;
                discovery.sweep_all();
            }
            () = shared.sleep_until(look_at_ms), if look_at_ms != u64::MAX => {
                // The owner of what lapsed may be gone, and its share be ours.
                discovery.refresh_members().await;
                discovery.sweep_all();
            }
            Some(ended) = endings.recv() => {
                discovery.ended(ended);
                for _ in 0..SIGNALS_MAX {
                    let Ok(ended) = endings.try_recv() else { break };
                    discovery.ended(ended);
                }
                // Bells must not wait for ever behind endings.
                for _ in 0..SIGNALS_MAX {
                    let Some(bell) = bells.next().now_or_never() else { break };
                    discovery.hear(bell, &mut bells).await;
                }
            }
            bell = bells.next() => discovery.hear(bell, &mut bells).await,
        }
    }
}

struct Discovery {
    shared: Arc<Shared>,
    /// Of everything that is served.
    sources: Vec<ReadySource>,
    /// One for each of `sources` that has keys.
    sweeps: Vec<Sweep>,
    candidates: VecDeque<PartitionSpec>,
    /// What is in `candidates`.
    queued: HashSet<PartitionId>,
    /// Partitions that could not be acquired, until when they are left alone.
    cooling: BTreeMap<PartitionId, u64>,
    /// Partitions without an owner that another host should take, since when.
    passed: BTreeMap<PartitionId, u64>,
    /// Partitions that ran here and were given up.
    lately: Lately,
    /// When to look through the ready sets although nobody rang; never is `u64::MAX`.
    look_at_ms: u64,
    pools: Pools,
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
                self.shared.holdings.drain_resting(self.candidates.len());
                break;
            }
            let Some(index) = self.sweeps.iter().position(|sweep| sweep.cursor.is_some()) else { break };
            if !self.look(index).await {
                break;
            }
        }
        self.shared.crowded.store(!self.candidates.is_empty(), Relaxed);
    }

    fn look_by(&mut self, at_ms: u64) {
        self.look_at_ms = self.look_at_ms.min(at_ms);
    }

    /// Whether the partition was new to us.
    fn enqueue(&mut self, spec: PartitionSpec) -> bool {
        if self.queued.contains(&spec.id) || self.shared.holdings.contains(&spec.id) {
            return false;
        }
        if self.cooling.get(&spec.id).is_some_and(|until_ms| self.shared.machine.now_ms() < *until_ms) {
            return false;
        }
        self.queued.insert(spec.id.clone());
        self.candidates.push_back(spec);
        true
    }

    async fn hear(&mut self, bell: Option<Bell>, bells: &mut Bells) {
        match bell {
            Some(Bell::Ready { source, key }) => self.bell(&source, key),
            Some(Bell::Look { source }) => {
                if !self.pools.ring(&source) {
                    self.sweep(&source);
                }
            }
            Some(Bell::Members) => {
                self.refresh_members().await;
            }
            Some(Bell::Catalog) => {
                self.refresh_catalog().await;
                self.refresh_sources(bells).await;
            }
            Some(Bell::Lost) | None => {
                self.refresh_members().await;
                self.refresh_catalog().await;
                self.pools.ring_all();
                self.sweep_all();
                if bell.is_none() {
                    *bells = futures::stream::pending().boxed();
                }
            }
            // The committing host routes its own; the router's sweep finds what a dead one left.
            Some(Bell::Outbox) => {}
        }
    }

    fn bell(&mut self, source: &ReadySource, key: Key) {
        let Some(spec) = self.spec_of(source, key) else { return };
        if self.shared.holdings.bell(&spec.id) {
            return;
        }
        if !is_taker(&self.shared.membership(), &self.shared, &spec.id) {
            let now_ms = self.shared.machine.now_ms();
            self.look_by(now_ms + self.shared.config.grace_ms);
            if self.passed.len() < REMEMBERED_MAX {
                self.passed.insert(spec.id, now_ms);
            }
        } else if self.candidates.len() < self.shared.config.candidates_max {
            self.enqueue(spec);
        } else {
            self.sweep(source);
        }
    }

    fn spec_of(&self, source: &ReadySource, key: Key) -> Option<PartitionSpec> {
        source.partition(&self.shared.catalog(), key)
    }

    fn start(&mut self, spec: PartitionSpec) {
        let Some(version) = self.shared.served.for_key(&spec.id.group, spec.id.key()) else { return };
        let Some(holding) = self.shared.holdings.reserve(&spec.id) else { return };
        let came_back = self.lately.comes_back(&spec.id, self.shared.machine.now_ms());
        let (shared, ended) = (self.shared.clone(), self.ended.clone());
        self.shared.spawn(Box::pin(async move {
            let spec = Arc::new(spec);
            let partition = spec.id.clone();
            let work = AssertUnwindSafe(worker::run(shared.clone(), version, spec.clone(), holding.clone(), came_back));
            let ending = work.catch_unwind().await.unwrap_or_else(|_| {
                // Not released: it lapses, and the next owner counts a crash for the head.
                error!(%partition, "the worker panicked; its lease lapses");
                if let (Some(metrics), Some(_)) = (shared.metrics().of_partition(&spec), holding.lease()) {
                    metrics.lost(LossCause::Panicked);
                }
                Ending::Failed
            });
            let belled = shared.holdings.remove(&partition);
            // Discovery is gone only when the engine stops.
            let _ = ended.send(Ended { spec, ending, belled }).await;
        }));
    }

    fn ended(&mut self, ended: Ended) {
        let Ended { spec, ending, belled } = ended;
        if ending == Ending::Ran {
            self.lately.ended(spec.id.clone(), self.shared.machine.now_ms());
        }
        if let Some(present) = self.outdated(&spec) {
            // Its streams are others now, and what was added may hold work that nobody will ring for again.
            self.enqueue(present);
            return;
        }
        if ending == Ending::Failed {
            if self.cooling.len() >= REMEMBERED_MAX {
                self.cooling.clear();
            }
            let until_ms = self.shared.machine.now_ms() + self.shared.config.sweep_interval_ms;
            self.cooling.insert(spec.id.clone(), until_ms);
            // A lease that nobody works under lapses in a while.
            self.look_by(until_ms);
        } else if belled {
            let membership = self.shared.membership();
            let now_ms = self.shared.machine.now_ms();
            if self.may_take(&membership, &spec.id, now_ms) {
                self.enqueue(spec.as_ref().clone());
            }
        }
    }

    /// Gives up, between two events, what another member should have; looks for what should be ours.
    fn rebalance(&mut self) {
        let membership = self.shared.membership();
        let mut given = 0;
        for holding in self.shared.holdings.all() {
            let Some(lease) = holding.lease() else { continue };
            if membership.successor(&self.shared.owner, &lease.partition.id).is_some() {
                holding.drain();
                given += 1;
            }
        }
        debug!(members = membership.members().count(), given, "members have changed");
        self.passed.clear();
        self.sweep_all();
    }

    async fn refresh_members(&mut self) {
        match self.shared.broker.members().await {
            Ok(members) => self.shared.set_membership(Membership::new(members)),
            Err(error) => {
                self.shared.metrics().broker_failed(&error);
                warn!(%error, "the members could not be read");
            }
        }
    }

    async fn refresh_catalog(&self) {
        match self.shared.broker.catalog().await {
            Ok((catalog, _)) => self.shared.set_catalog(catalog),
            Err(error) => {
                self.shared.metrics().broker_failed(&error);
                warn!(%error, "the catalog could not be read");
            }
        }
    }
}

/// Whether this host should take the partition. If nobody is known to serve it, whoever asks should: this host serves it.
fn is_taker(membership: &Membership, shared: &Shared, partition: &PartitionId) -> bool {
    membership.taker(partition).is_none_or(|taker| *taker == shared.owner)
}
