//! One worker on one owned partition, from acquire to release: performs what `Partition` decides and feeds the answers
//! back.
//!
//! The version of the handler may change between two events ([`version`]); lease and generation do not.
//!
//! Invariant: a guest call starts only while the lease surely holds by our own clock, and the effects of a call reach the
//! broker only through the fenced commit of the same ownership.

mod measured;
mod version;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use keyrail_broker::{Acquired, Commit, Error, FencedError};
use keyrail_ordering::{
    Content, Effect, Effects, Entry, EntryRef, Event, Failure, FailureKind, HaltRecord, Input, Outcome, Partition,
    PartitionId, PartitionSpec, Scope,
};
use keyrail_runtime::{Answer, Call, InstantiateError};
use tracing::{debug, error, warn};

use super::acquire::acquire;
use super::call::{EventCall, Session};
use super::handler::HandlerInstance;
use super::holdings::Holding;
use super::serving::Version;
use super::shared::Shared;
use super::wants::Wants;
use crate::telemetry::metrics::LossCause;
use crate::telemetry::traces::{Handling, Try, hex};
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

/// Acquires the partition and works on it until it is released or lost.
pub(super) async fn run(
    shared: Arc<Shared>,
    version: Version,
    spec: Arc<PartitionSpec>,
    holding: Arc<Holding>,
) -> Ending {
    let (acquired, deadline_ms) = match acquire(&shared, &spec).await {
        Ok(acquired) => acquired,
        Err(ending) => return ending,
    };
    debug!(partition = %spec.id, generation = %acquired.lease.generation, entries = acquired.entries.len(), "acquired");
    holding.expect_by(u64::MAX);
    holding.granted(acquired.lease.clone(), deadline_ms);
    Worker::new(shared.clone(), version, holding, acquired).run().await;
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
    /// Of the last call, until they are committed.
    effects: Effects,
    settled: u64,
    told_to_drain: bool,
    first: Option<Input>,
    metrics: Measured,
    /// The lease was given up in order.
    gave_up: bool,
    /// Of the event that was called last, until it is committed.
    handling: Handling,
}

impl Worker {
    fn new(shared: Arc<Shared>, version: Version, holding: Arc<Holding>, acquired: Acquired) -> Self {
        let policy = policy(&shared, &version);
        let metrics = Measured::of_acquired(shared.metrics(), &acquired);
        let Acquired { lease, entries, attempts, positions, more, state } = acquired;
        let session = Arc::new(Session::new(shared.clone(), holding.clone(), lease, state));
        Self {
            shared,
            version,
            // Whatever changed since it was chosen is seen before the first event.
            seen_changes: u64::MAX,
            waits_for_version: false,
            noted: None,
            holding,
            session,
            partition: Partition::new(policy),
            instance: None,
            effects: Effects::default(),
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
        let mut effects = self.partition.step(now_ms, input);
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
            Effect::Commit { entry, take_max, release } => self.commit(&entry.at, take_max, release).await,
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
        // A signal since the last step is pending in `changed`, so none is missed.
        tokio::select! {
            biased;
            () = self.holding.lost() => Input::Fenced,
            () = self.holding.changed() => Input::Tick,
            () = self.shared.sleep_until(at_ms) => Input::Tick,
        }
    }

    async fn invoke(&mut self, entry: &Arc<Entry>, attempt: u32, alone: bool) -> Input {
        let Content::Event(event) = &entry.content else { unreachable!("only events are invoked") };
        self.effects = Effects::default();
        self.handling = Handling::default();
        if !self.choose_version() {
            return self.put_off(event, "the handler was undeployed");
        }
        // Asking for the catalog takes a moment.
        match self.shared.wants(&self.version, event).await {
            Wants::Yes => {}
            Wants::No | Wants::Unknown => return self.handled(Outcome::Done),
            Wants::NotYet => return self.wait_for_version(event),
            Wants::OtherVersion(why) => {
                return self.failed(entry, event, attempt, Failure { kind: FailureKind::Rejected, error: why });
            }
        }
        let shared = self.shared.clone();
        let holding = self.holding.clone();
        let lease = &self.session.lease;
        self.handling = shared.telemetry.traces().handling(&Try {
            event,
            group: &lease.partition.id.group,
            version: &self.version.label,
            entry: entry.at.id,
            attempt,
            generation: lease.generation,
        });
        let answer = async {
            // Who waits for a slot does not hang.
            holding.expect_by(u64::MAX);
            let slots = if alone { shared.config.executions_max as u32 } else { 1 };
            let Ok(_slots) = shared.slots.acquire_many(slots).await else {
                return Answer::Deferred("the engine is stopping".into());
            };
            if holding.has_lapsed(shared.machine.now_ms()) {
                holding.lose(LossCause::Lapsed);
                return Answer::Deferred("the lease may have lapsed".into());
            }
            holding.expect_by(shared.machine.now_ms() + shared.config.worker_stall_max_ms);
            holding.busy.begin(shared.machine.now_ns());
            self.call(entry, event, attempt).await
        };
        let answer = tokio::select! {
            biased;
            () = holding.lost() => None,
            () = shared.cancelled.cancelled() => Some(Answer::Deferred("the host is stopping".into())),
            answer = answer => Some(answer),
        };
        if let Some(seconds) = holding.busy.end(shared.machine.now_ns()) {
            self.metrics.of(&entry.at).handler.observe(seconds);
        }
        match answer {
            None => {
                self.instance = None;
                self.handling.failed("lost", "the lease was lost");
                Input::Fenced
            }
            Some(Answer::Done(effects)) => {
                self.effects = effects;
                self.handled(Outcome::Done)
            }
            Some(Answer::Failed(failure)) => self.failed(entry, event, attempt, failure),
            Some(Answer::Deferred(why)) => self.put_off(event, &why),
        }
    }

    fn put_off(&mut self, event: &Event, why: &str) -> Input {
        let mut handling = std::mem::take(&mut self.handling);
        let partition = &self.session.lease.partition.id;
        debug!(%partition, event = %event.id, trace_id = handling.trace_id().map(hex), why, "the event was put off");
        handling.put_off(why);
        self.instance = None;
        if self.holding.is_lost() { Input::Fenced } else { self.handled(Outcome::Deferred) }
    }

    async fn call(&mut self, entry: &Arc<Entry>, event: &Event, attempt: u32) -> Answer {
        if self.instance.as_ref().is_none_or(|instance| instance.is_spent()) {
            self.instance = None;
            match self.version.handler.instantiate(&self.session.lease.partition.id.to_string()).await {
                Ok(instance) => self.instance = Some(instance),
                Err(InstantiateError::NoCapacity) => return Answer::Deferred("the instance pool is full".into()),
                Err(error) => {
                    return Answer::Failed(Failure { kind: FailureKind::Trap, error: error.to_string() });
                }
            }
        }
        let Some(instance) = self.instance.as_mut() else { unreachable!("made above") };
        let call = Call {
            entry: &entry.at,
            event,
            recorded_at_ms: entry.recorded_at_ms,
            generation: self.session.lease.generation,
            attempt,
            trace_id: self.handling.trace_id(),
        };
        let host = EventCall {
            session: self.session.clone(),
            entry: entry.clone(),
            event_id: event.id.clone(),
            trace: self.handling.context(),
        };
        let answer = instance.call(&call, Box::new(host)).await;
        if !matches!(answer, Answer::Done(_)) {
            // Nothing of a failed call reaches the next.
            self.instance = None;
        }
        answer
    }

    fn handled(&self, outcome: Outcome) -> Input {
        Input::Handled { outcome, chance: self.shared.machine.chance() }
    }

    fn failed(&mut self, entry: &Entry, event: &Event, attempt: u32, failure: Failure) -> Input {
        self.metrics.of(&entry.at).failed(failure.kind);
        let mut handling = std::mem::take(&mut self.handling);
        handling.failed(failure.kind.as_str(), &failure.error);
        warn!(
            partition = %self.session.lease.partition.id, entry = %entry.at.id, event = %event.id,
            trace_id = handling.trace_id().map(hex), attempt,
            kind = failure.kind.as_str(), error = failure.error, "a try failed"
        );
        self.handled(Outcome::Failed(failure))
    }

    async fn commit(&mut self, head: &EntryRef, take_max: usize, release: bool) -> Input {
        let effects = std::mem::take(&mut self.effects);
        let emits = effects.emits.len();
        let changes = effects.state.clone();
        let label = &self.version.label;
        let version = (self.noted.as_ref() != Some(label)).then(|| label.clone());
        let commit = Commit { entries: vec![head.clone()], effects, take_max, release, version: version.clone() };
        let handling = std::mem::take(&mut self.handling);
        let mut committing = handling.commit();
        self.holding.busy.begin(self.shared.machine.now_ns());
        let committed = self.shared.broker.commit(&self.session.lease, commit).await;
        let seconds = self.holding.busy.end(self.shared.machine.now_ns());
        match committed {
            Ok(committed) => {
                self.session.write_through(changes);
                if version.is_some() {
                    self.noted = version;
                }
                self.settled += 1;
                let metrics = self.metrics.of(head);
                metrics.settled.inc();
                metrics.commit.observe(seconds.unwrap_or_default());
                if emits > 0 {
                    metrics.emitted.inc_by(emits as u64);
                    self.shared.outbox_bell.notify_one();
                }
                if self.settled >= self.shared.config.quantum_events && self.shared.crowded.load(Relaxed) {
                    self.holding.drain();
                }
                let keyrail_broker::Committed { entries, more, released } = committed;
                self.gave_up |= released;
                Input::Committed { entries, more, released }
            }
            Err(error) => {
                committing.failed(&error);
                self.refused("commit", &error)
            }
        }
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
        self.effects = Effects::default();
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
