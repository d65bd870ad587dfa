//! One worker on one owned partition, from acquire to release: performs what `Partition` decides and feeds the answers
//! back.
//!
//! The version of the handler may change between two events ([`version`]); lease and generation do not.
//!
//! Invariant: a guest call starts only while the lease surely holds by our own clock, and the effects of a call reach the
//! broker only through the fenced commit of the same ownership.

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
use super::stats::count;
use super::wants::Wants;
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
    count(&shared.stats.acquired);
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
}

impl Worker {
    fn new(shared: Arc<Shared>, version: Version, holding: Arc<Holding>, acquired: Acquired) -> Self {
        let policy = policy(&shared, &version);
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
        }
    }

    async fn run(mut self) {
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
        if self.holding.lost.is_cancelled() {
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
                    Ok(()) => Input::FailRecorded,
                    Err(error) => self.refused("fail", &error),
                }
            }
            Effect::Halt(record) => self.halt(&record).await,
            Effect::Release => match self.shared.broker.release(&self.session.lease).await {
                Ok(()) => Input::Released,
                Err(error) => self.refused("release", &FencedError::Broker(error)),
            },
            Effect::End => Input::Fenced,
        }
    }

    async fn wait(&mut self, at_ms: u64) -> Input {
        // A signal since the last step is pending in `changed`, so none is missed.
        tokio::select! {
            biased;
            () = self.holding.lost.cancelled() => Input::Fenced,
            () = self.holding.changed() => Input::Tick,
            () = self.shared.sleep_until(at_ms) => Input::Tick,
        }
    }

    async fn invoke(&mut self, entry: &Arc<Entry>, attempt: u32, alone: bool) -> Input {
        let Content::Event(event) = &entry.content else { unreachable!("only events are invoked") };
        self.effects = Effects::default();
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
        let answer = async {
            // Who waits for a slot does not hang.
            holding.expect_by(u64::MAX);
            let slots = if alone { shared.config.executions_max as u32 } else { 1 };
            let Ok(_slots) = shared.slots.acquire_many(slots).await else {
                return Answer::Deferred("the engine is stopping".into());
            };
            if holding.has_lapsed(shared.machine.now_ms()) {
                holding.lost.cancel();
                return Answer::Deferred("the lease may have lapsed".into());
            }
            holding.expect_by(shared.machine.now_ms() + shared.config.worker_stall_max_ms);
            self.call(entry, event, attempt).await
        };
        let answer = tokio::select! {
            biased;
            () = holding.lost.cancelled() => None,
            () = shared.cancelled.cancelled() => Some(Answer::Deferred("the host is stopping".into())),
            answer = answer => Some(answer),
        };
        match answer {
            None => {
                self.instance = None;
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
        debug!(partition = %self.session.lease.partition.id, event = %event.id, why, "the event was put off");
        self.instance = None;
        if self.holding.lost.is_cancelled() { Input::Fenced } else { self.handled(Outcome::Deferred) }
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
        };
        let host = EventCall { session: self.session.clone(), entry: entry.clone(), event_id: event.id.clone() };
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
        count(&self.shared.stats.failed);
        warn!(
            partition = %self.session.lease.partition.id, entry = %entry.at.id, event = %event.id, attempt,
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
        match self.shared.broker.commit(&self.session.lease, commit).await {
            Ok(committed) => {
                self.session.write_through(changes);
                if version.is_some() {
                    self.noted = version;
                }
                self.settled += 1;
                count(&self.shared.stats.settled);
                if emits > 0 {
                    self.shared.stats.emitted.fetch_add(emits as u64, Relaxed);
                    self.shared.outbox_bell.notify_one();
                }
                if self.settled >= self.shared.config.quantum_events && self.shared.crowded.load(Relaxed) {
                    self.holding.drain();
                }
                let keyrail_broker::Committed { entries, more, released } = committed;
                Input::Committed { entries, more, released }
            }
            Err(error) => self.refused("commit", &error),
        }
    }

    async fn halt(&mut self, record: &HaltRecord) -> Input {
        match self.shared.broker.halt(&self.session.lease, record).await {
            Ok(()) => {
                count(&self.shared.stats.halted);
                let partition = &self.session.lease.partition.id;
                let several = matches!(partition.scope, Scope::Correlation { .. });
                let entry = format!("{}{}", record.head.stream.prefix(several), record.head.id);
                error!(
                    %partition, entry, cause = %record.cause, attempts = record.attempts,
                    next = next_command(partition, &record.head),
                    "partition {partition} is halted at {entry}: {}", record.error
                );
                self.tell_of_canary(record);
                Input::Released
            }
            Err(error) => self.refused("halt", &error),
        }
    }

    /// A broker call that did not succeed. Whatever was kept may be wrong.
    fn refused(&mut self, operation: &str, error: &FencedError) -> Input {
        self.session.forget();
        self.instance = None;
        self.effects = Effects::default();
        let partition = &self.session.lease.partition.id;
        match error {
            FencedError::Fenced => {
                if !self.holding.lost.is_cancelled() {
                    count(&self.shared.stats.lost);
                    self.holding.lost.cancel();
                }
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
