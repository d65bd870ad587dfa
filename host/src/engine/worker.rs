//! One worker on one owned partition, from acquire to release: performs what `Partition` decides and feeds the answers
//! back.
//!
//! The version of the handler may change between two events ([`version`]); lease and generation do not.
//!
//! Invariant: a guest call starts only while the lease surely holds by our own clock, and the effects of a call reach the
//! broker only through the fenced commit of the same ownership.

mod calling;
mod committing;
mod measured;
mod version;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use keyrail_broker::{Acquired, Error, FencedError};
use keyrail_ordering::{Effect, EntryRef, HaltRecord, Input, Partition, PartitionId, PartitionSpec, Scope};
use tracing::{debug, error, warn};

use super::acquire::acquire;
use super::call::Session;
use super::handler::HandlerInstance;
use super::holdings::Holding;
use super::serving::Version;
use super::shared::Shared;
use crate::telemetry::metrics::LossCause;
use crate::telemetry::traces::Handling;
use committing::Uncommitted;
use measured::Measured;
use version::policy;

/// How an ownership ended, for discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It ran.
    Ran,
    /// Somebody else holds the partition, or it is halted or paused.
    NotOurs,
    /// The broker failed; not to be tried again at once.
    Failed,
}

/// Acquires the partition and works on it until it is released or lost. `came_back`: it ran here a moment ago.
pub(super) async fn run(
    shared: Arc<Shared>,
    version: Version,
    spec: Arc<PartitionSpec>,
    holding: Arc<Holding>,
    came_back: bool,
) -> Ending {
    let (acquired, deadline_ms) = match acquire(&shared, &spec).await {
        Ok(acquired) => acquired,
        Err(ending) => return ending,
    };
    debug!(partition = %spec.id, generation = %acquired.lease.generation, entries = acquired.entries.len(), "acquired");
    holding.expect_by(u64::MAX);
    holding.granted(acquired.lease.clone(), deadline_ms);
    Worker::new(shared.clone(), version, holding, acquired, came_back).run().await;
    Ending::Ran
}

struct Worker {
    shared: Arc<Shared>,
    /// The version of the handler that the next event gets, as of `seen_changes`.
    version: Version,
    seen_changes: u64,
    /// That this was said.
    waits_for_version: bool,
    /// The version that is on record for the event that was settled last.
    noted: Option<Arc<str>>,
    holding: Arc<Holding>,
    session: Arc<Session>,
    partition: Partition,
    /// Of `version`.
    instance: Option<Box<dyn HandlerInstance>>,
    uncommitted: Uncommitted,
    settled: u64,
    told_to_drain: bool,
    first: Option<Input>,
    metrics: Measured,
    /// The lease was given up in order.
    gave_up: bool,
    /// Of the event that is called.
    handling: Handling,
}

impl Worker {
    fn new(shared: Arc<Shared>, version: Version, holding: Arc<Holding>, acquired: Acquired, came_back: bool) -> Self {
        let policy = policy(&shared, &version);
        let metrics = Measured::of_acquired(shared.metrics(), &acquired);
        let Acquired { lease, entries, attempts, positions, more, state } = acquired;
        let session = Arc::new(Session::new(shared.clone(), holding.clone(), lease, state));
        let partition = Partition::new(policy);
        Self {
            shared,
            version,
            // Whatever changed since it was chosen is seen before the first event.
            seen_changes: u64::MAX,
            waits_for_version: false,
            noted: None,
            holding,
            session,
            partition: if came_back { partition.come_back() } else { partition },
            instance: None,
            uncommitted: Uncommitted::default(),
            settled: 0,
            told_to_drain: false,
            first: Some(Input::Acquired { entries, attempts, positions, more }),
            metrics,
            gave_up: false,
            handling: Handling::default(),
        }
    }

    async fn run(mut self) {
        self.work().await;
        // Only now it is known: a renewal that crosses the end of an ownership is refused too, and nothing was lost.
        if let Some(cause) = self.holding.loss().filter(|cause| *cause != LossCause::Hung && !self.gave_up) {
            self.metrics.whole().lost(cause);
        }
    }

    async fn work(&mut self) {
        let Some(mut input) = self.first.take() else { return };
        loop {
            let Some(effect) = self.step(input) else {
                // Every answer leads to an effect; a partition without one is over.
                return;
            };
            input = match effect {
                Effect::End => return,
                effect => self.perform(effect).await,
            };
        }
    }

    /// Feeds what happened, then what was signalled meanwhile. In this order: a bell that rang before a commit's answer
    /// came may tell of an entry that this answer does not know of.
    fn step(&mut self, input: Input) -> Option<Effect> {
        let now_ms = self.shared.machine.now_ms();
        self.partition.set_room(!self.shared.crowded.load(Relaxed));
        let mut effects = self.partition.step(now_ms, input);
        if effects.first() == Some(&Effect::End) {
            // A bell that rang by now is for whoever owns it next: it is heard when the holding goes.
            return effects.into_iter().next();
        }
        let mut feed = |effects: &mut Vec<Effect>, input| {
            let more = self.partition.step(now_ms, input);
            if !more.is_empty() {
                *effects = more;
            }
        };
        if self.holding.is_lost() {
            feed(&mut effects, Input::Fenced);
        }
        if self.holding.take_bell() {
            feed(&mut effects, Input::Belled);
        }
        if self.holding.is_draining() && !self.told_to_drain {
            self.told_to_drain = true;
            feed(&mut effects, Input::Drain);
        }
        effects.into_iter().next()
    }

    async fn perform(&mut self, effect: Effect) -> Input {
        let busy_ms = self.shared.config.worker_stall_max_ms;
        self.holding.expect_by(match effect {
            Effect::WakeAt(at_ms) => at_ms + busy_ms,
            _ => self.shared.machine.now_ms() + busy_ms,
        });
        match effect {
            Effect::WakeAt(at_ms) => self.wait(at_ms).await,
            Effect::Invoke { entry, attempt, alone } => self.invoke(&entry, attempt, alone).await,
            Effect::Commit { entries, take_max, release } => self.commit(&entries, take_max, release).await,
            Effect::Take { max, recover } => match self.shared.broker.take(&self.session.lease, max, recover).await {
                Ok(taken) => Input::Taken { entries: taken.entries, attempts: taken.attempts, more: taken.more },
                Err(error) => self.refused("take", &error),
            },
            Effect::Fail { entry, attempt, error, after_ms } => {
                let lease = &self.session.lease;
                match self.shared.broker.fail(lease, &entry.at, attempt, &error, after_ms).await {
                    Ok(()) => {
                        self.metrics.of(&entry.at).retried.inc();
                        Input::FailRecorded
                    }
                    Err(error) => self.refused("fail", &error),
                }
            }
            Effect::Halt(record) => self.halt(&record).await,
            Effect::Release => match self.shared.broker.release(&self.session.lease).await {
                Ok(()) => self.released(),
                Err(error) => self.refused("release", &FencedError::Broker(error)),
            },
            Effect::End => Input::Fenced,
        }
    }

    async fn wait(&mut self, at_ms: u64) -> Input {
        self.holding.set_resting(self.partition.is_lingering());
        if self.partition.is_lingering() && self.shared.crowded.load(Relaxed) {
            self.holding.drain();
        }
        // A signal since the last step is pending in `changed`, so none is missed.
        let input = tokio::select! {
            biased;
            () = self.holding.lost() => Input::Fenced,
            () = self.holding.changed() => Input::Tick,
            () = self.shared.sleep_until(at_ms) => Input::Tick,
        };
        self.holding.set_resting(false);
        input
    }

    async fn halt(&mut self, record: &HaltRecord) -> Input {
        match self.shared.broker.halt(&self.session.lease, record).await {
            Ok(()) => {
                self.metrics.of(&record.head).halted(record.cause);
                let partition = &self.session.lease.partition.id;
                let several = matches!(partition.scope, Scope::Correlation { .. });
                let entry = format!("{}{}", record.head.stream.prefix(several), record.head.id);
                error!(
                    %partition, entry, cause = %record.cause, attempts = record.attempts,
                    next = next_command(partition, &record.head),
                    "partition {partition} is halted at {entry}: {}", record.error
                );
                self.tell_of_canary(record);
                self.released()
            }
            Err(error) => self.refused("halt", &error),
        }
    }

    fn released(&mut self) -> Input {
        self.gave_up = true;
        Input::Released
    }

    /// A broker call that did not succeed. Whatever was kept may be wrong.
    fn refused(&mut self, operation: &str, error: &FencedError) -> Input {
        self.session.forget();
        self.instance = None;
        self.uncommitted = Uncommitted::default();
        let partition = &self.session.lease.partition.id;
        self.shared.metrics().fenced_call_failed(error);
        match error {
            FencedError::Fenced => {
                self.metrics.whole().fenced.inc();
                self.holding.lose(LossCause::Fenced);
                warn!(%partition, operation, "the lease is another's: the partition is given up");
                Input::Fenced
            }
            FencedError::NotHead { .. } => {
                error!(%partition, operation, %error, "the broker's head is another: reading again");
                Input::Uncertain
            }
            FencedError::Broker(Error::Unavailable(_)) => {
                warn!(%partition, operation, %error, "the call may have happened: reading again");
                Input::Uncertain
            }
            FencedError::Broker(_) => {
                error!(%partition, operation, %error, "the broker refused");
                Input::Uncertain
            }
        }
    }
}

/// What the operator types next.
fn next_command(partition: &PartitionId, head: &EntryRef) -> String {
    format!("keyrail head show {} {} --group {}", head.stream.category, partition.key(), partition.group)
}
