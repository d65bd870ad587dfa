//! Works on categories that are not partitioned: up to `shared_executions_max` events of a handler at once, in no order.
//!
//! There is no lease. A delivery is this host's until another is given the entry, after `shared_idle_min_ms`; the commit of
//! a delivery that is not ours any more is refused. An event that failed waits in the broker and holds nothing here; one
//! that used up its tries is set aside, and the rest goes on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use keyrail_broker::{Delivery, DeliveryRef, FencedError, ReadySource, SharedSource, SharedTaken};
use keyrail_ordering::{Content, Effects, Entry, Failure, FailureKind, Generation, Verdict};
use keyrail_runtime::{Answer, Call, InstantiateError};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use super::call::{NO_STATE, SharedCall};
use super::handler::HandlerInstance;
use super::serving::Version;
use super::shared::Shared;
use super::wants::Wants;
use crate::telemetry::metrics::PartitionMetrics;
use crate::telemetry::traces::{Handling, Try, hex};

/// All pools: their bells, and how they end.
#[derive(Default)]
pub(super) struct Pools(BTreeMap<ReadySource, (Arc<Notify>, CancellationToken)>);

impl Pools {
    /// One pool for each source without partitions, from here on. A pool that goes lets running events end.
    pub(super) fn set(&mut self, shared: &Arc<Shared>, sources: &[ReadySource]) {
        self.0.retain(|source, (_, stopping)| {
            let stays = sources.contains(source);
            if !stays {
                stopping.cancel();
            }
            stays
        });
        for source in sources {
            let ReadySource::Shared { group, category } = source else { continue };
            if self.0.contains_key(source) {
                continue;
            }
            let bell = Arc::new(Notify::new());
            let pool = Arc::new(Pool {
                metrics: shared.metrics().of(group, category),
                shared: shared.clone(),
                source: SharedSource { group: group.clone(), category: category.clone() },
                slots: Arc::new(Semaphore::new(shared.config.shared_executions_max)),
                stopping: shared.stopping.child_token(),
                running: Mutex::default(),
                parked: Mutex::default(),
            });
            let stopping = pool.stopping.clone();
            shared.spawn(Box::pin(pool.clone().run(bell.clone())));
            shared.spawn(Box::pin(pool.keep()));
            self.0.insert(source.clone(), (bell, stopping));
        }
    }

    /// False if this source has no pool.
    pub(super) fn ring(&self, source: &ReadySource) -> bool {
        self.0.get(source).inspect(|(bell, _)| bell.notify_one()).is_some()
    }

    pub(super) fn ring_all(&self) {
        for (bell, _) in self.0.values() {
            bell.notify_one();
        }
    }
}

struct Pool {
    shared: Arc<Shared>,
    metrics: Arc<PartitionMetrics>,
    source: SharedSource,
    slots: Arc<Semaphore>,
    stopping: CancellationToken,
    running: Mutex<Vec<DeliveryRef>>,
    /// Instances that wait for an event, each with its version: with no key, one serves any.
    parked: Mutex<Vec<(Version, Box<dyn HandlerInstance>)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Each use leaves the value whole, so a panic elsewhere does not spoil it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn event_id(entry: &Entry) -> Option<&str> {
    if let Content::Event(event) = &entry.content { Some(event.id.as_ref()) } else { None }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl Pool {
    async fn run(self: Arc<Self>, bell: Arc<Notify>) {
        let config = &self.shared.config;
        loop {
            let Ok(slot) = self.slots.clone().acquire_owned().await else { return };
            drop(slot);
            if self.stopping.is_cancelled() {
                return;
            }
            let taken = self.take().await;
            let now_ms = self.shared.machine.now_ms();
            let due_ms = taken.due_ms.map_or(config.sweep_interval_ms, |due_ms| due_ms.min(config.sweep_interval_ms));
            let (took, more) = (taken.deliveries.len(), taken.more);
            for delivery in taken.deliveries {
                let Ok(slot) = self.slots.clone().acquire_owned().await else { return };
                let pool = self.clone();
                let reference = DeliveryRef { id: delivery.entry.at.id, count: delivery.count };
                lock(&self.running).push(reference);
                self.shared.spawn(Box::pin(async move {
                    pool.work(delivery, reference).await;
                    lock(&pool.running).retain(|other| *other != reference);
                    drop(slot);
                }));
            }
            if more && took > 0 {
                continue;
            }
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => return,
                () = bell.notified() => {}
                () = self.shared.sleep_until(now_ms + due_ms.max(1)) => {}
            }
        }
    }

    /// Tells now and then what is being worked on, so that nobody else is given it.
    async fn keep(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(Duration::from_millis(self.shared.config.heartbeat_interval_ms));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if self.stopping.is_cancelled() && lock(&self.running).is_empty() {
                return;
            }
            let running = lock(&self.running).clone();
            if running.is_empty() {
                continue;
            }
            if let Err(error) = self.shared.broker.keep_shared(&self.source, &self.shared.owner, &running).await {
                self.shared.metrics().broker_failed(&error);
                warn!(%error, category = %self.source.category, "running events could not be kept");
            }
        }
    }

    async fn take(&self) -> SharedTaken {
        let (shared, max) = (&self.shared, self.slots.available_permits());
        let idle_min_ms = shared.config.shared_idle_min_ms;
        match shared.broker.take_shared(&self.source, &shared.owner, max, idle_min_ms).await {
            Ok(taken) => taken,
            Err(error) => {
                shared.metrics().broker_failed(&error);
                warn!(%error, category = %self.source.category, "events could not be taken");
                SharedTaken { due_ms: Some(shared.config.pause_ms), ..SharedTaken::default() }
            }
        }
    }

    async fn work(&self, delivery: Delivery, reference: DeliveryRef) {
        let (shared, source, owner) = (&self.shared, &self.source, &self.shared.owner);
        let mut handling = Handling::default();
        let version = shared.served.for_entry(&source.group, &delivery.entry.at);
        let Some(version) = version else {
            return self.put_off(&delivery, reference, "the handler was undeployed").await;
        };
        let retry = version.handler.retry(&shared.config.retry);
        let outcome = if delivery.crashes >= retry.crashes_max {
            let error = format!("{} hosts died while they handled this event", delivery.crashes);
            Err((error, None))
        } else {
            match self.handle(&version, &delivery, &mut handling).await {
                Answer::Done(effects) => Ok(effects),
                Answer::Deferred(why) => {
                    handling.put_off(&why);
                    drop(handling);
                    return self.put_off(&delivery, reference, &why).await;
                }
                Answer::Failed(failure) => {
                    handling.failed(failure.kind.as_str(), &failure.error);
                    self.metrics.failed(failure.kind);
                    let attempt = delivery.attempts + 1;
                    warn!(
                        group = %source.group, entry = %delivery.entry.at, event = event_id(&delivery.entry),
                        trace_id = handling.trace_id().map(hex), attempt, kind = failure.kind.as_str(),
                        error = failure.error, "a try failed"
                    );
                    match retry.verdict(attempt, failure.kind, shared.machine.chance()) {
                        Verdict::Again { after_ms } => Err((failure.error, Some(after_ms))),
                        Verdict::GiveUp(_) => Err((failure.error, None)),
                    }
                }
            }
        };
        let done = match outcome {
            Ok(effects) => {
                let mut committing = handling.commit();
                self.commit(reference, effects).await.inspect_err(|error| committing.failed(error))
            }
            Err((error, Some(after_ms))) => {
                self.metrics.retried.inc();
                shared.broker.fail_shared(source, owner, reference, &error, after_ms).await
            }
            Err((error, None)) => {
                error!(
                    group = %source.group, entry = %delivery.entry.at, next = format!("keyrail dlq list {}", source.category),
                    "an event of {} was set aside: {error}", source.category
                );
                self.metrics.set_aside.inc();
                shared.broker.set_aside_shared(source, owner, reference, &error).await
            }
        };
        match done {
            Ok(()) => {}
            Err(FencedError::Fenced | FencedError::NotHead { .. }) => {
                self.metrics.fenced.inc();
                warn!(entry = %delivery.entry.at, "the event was given to another host meanwhile");
            }
            // It may have happened. If not, the entry is due again when its idle time is over.
            Err(error) => {
                shared.metrics().fenced_call_failed(&error);
                warn!(%error, entry = %delivery.entry.at, "the outcome could not be recorded");
            }
        }
    }

    async fn put_off(&self, delivery: &Delivery, reference: DeliveryRef, why: &str) {
        debug!(entry = %delivery.entry.at, why, "the event was put off");
        if let Err(error) = self.shared.broker.return_shared(&self.source, &self.shared.owner, &[reference]).await {
            self.shared.metrics().broker_failed(&error);
            warn!(%error, entry = %delivery.entry.at, "an event could not be given back");
        }
    }

    async fn commit(&self, reference: DeliveryRef, effects: Effects) -> Result<(), FencedError> {
        let (shared, emits) = (&self.shared, effects.emits.len());
        let sent_ns = shared.machine.now_ns();
        shared.broker.commit_shared(&self.source, &shared.owner, reference, effects).await?;
        self.metrics.commit.observe(seconds(shared.machine.now_ns().saturating_sub(sent_ns)));
        self.metrics.settled.inc();
        if emits > 0 {
            self.metrics.emitted.inc_by(emits as u64);
            shared.outbox_bell.notify_one();
        }
        Ok(())
    }

    async fn handle(&self, version: &Version, delivery: &Delivery, handling: &mut Handling) -> Answer {
        let rejected = |error: String| Answer::Failed(Failure { kind: FailureKind::Rejected, error });
        let event = match &delivery.entry.content {
            Content::Event(event) => event,
            Content::Undecodable(why) => return rejected(why.clone()),
            Content::Missing => return rejected("the entry was deleted or trimmed by somebody else".into()),
        };
        match self.shared.wants(version, event).await {
            Wants::Yes => {}
            Wants::No | Wants::Unknown => return Answer::Done(Effects::default()),
            Wants::NotYet => return Answer::Deferred("it waits for the version that is registered".into()),
            Wants::OtherVersion(why) => return rejected(why),
        }
        *handling = self.shared.telemetry.traces().handling(&Try {
            event,
            group: &self.source.group,
            version: &version.label,
            entry: delivery.entry.at.id,
            attempt: delivery.attempts + 1,
            generation: Generation(delivery.count),
        });
        let Ok(_slot) = self.shared.slots.acquire().await else {
            return Answer::Deferred("the engine is stopping".into());
        };
        let begun_ns = self.shared.machine.now_ns();
        let parked = self.unpark(version);
        let mut instance = match parked {
            Some(instance) => instance,
            None => match version.handler.instantiate(&delivery.entry.at.to_string()).await {
                Ok(instance) => instance,
                Err(InstantiateError::NoCapacity) => return Answer::Deferred("the instance pool is full".into()),
                Err(error) => {
                    return Answer::Failed(Failure { kind: FailureKind::Trap, error: error.to_string() });
                }
            },
        };
        let wanted_state = Arc::new(AtomicBool::new(false));
        let host = SharedCall {
            shared: self.shared.clone(),
            group: self.source.group.clone(),
            entry: delivery.entry.clone(),
            event_id: event.id.clone(),
            wanted_state: wanted_state.clone(),
            trace: handling.context(),
        };
        let call = Call {
            entry: &delivery.entry.at,
            event,
            recorded_at_ms: delivery.entry.recorded_at_ms,
            generation: Generation(delivery.count),
            attempt: delivery.attempts + 1,
            trace_id: handling.trace_id(),
        };
        let answer = tokio::select! {
            biased;
            () = self.shared.cancelled.cancelled() => Answer::Deferred("the host is stopping".into()),
            answer = instance.call(&call, Box::new(host)) => answer,
        };
        self.metrics.handler.observe(seconds(self.shared.machine.now_ns().saturating_sub(begun_ns)));
        match answer {
            // Nothing of a failed call reaches the next: the instance is dropped.
            _ if wanted_state.load(Relaxed) => rejected(NO_STATE.into()),
            Answer::Done(effects) if !effects.state.is_empty() => rejected(NO_STATE.into()),
            Answer::Done(effects) => {
                if !instance.is_spent() {
                    lock(&self.parked).push((version.clone(), instance));
                }
                Answer::Done(effects)
            }
            other => other,
        }
    }

    /// An instance of this version that waits; those of versions that serve no more are dropped.
    fn unpark(&self, version: &Version) -> Option<Box<dyn HandlerInstance>> {
        let mut parked = lock(&self.parked);
        parked.retain(|(of, _)| self.shared.served.serves(&self.source.group, of));
        let at = parked.iter().rposition(|(of, _)| of.is_same(version))?;
        Some(parked.swap_remove(at).1)
    }
}
