//! A running component, which handles one event at a time.
//!
//! Invariant: an instance that was stopped in any way is never called again, so nothing of one call's failure reaches the
//! next.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use keyrail_ordering::{Effects, Failure, FailureKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::{Store, UpdateDeadline};

use crate::bindings::Handler;
use crate::bindings::keyrail::handler::types as wit;
use crate::call::{Answer, Call, CallHost};
use crate::clock::Meter;
use crate::failure::{CpuLimit, Stop, shorten};
use crate::guest::{Guest, Running};
use crate::module::Module;
use crate::random::Random;
use crate::{InstantiateError, Runtime, Settings};

/// Counts the instances that live.
pub(crate) type Room = Arc<Semaphore>;

/// One instance of a handler. Dropping it frees its memory.
pub struct Instance {
    module: Arc<Module>,
    store: Store<Guest>,
    handler: Handler,
    calls: u32,
    /// Set while a call runs, and left set by one that was stopped or dropped.
    is_broken: bool,
    /// Given back after the store is gone.
    _room: OwnedSemaphorePermit,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Instance({:?}, {} calls, spent: {})", self.module, self.calls, self.is_spent())
    }
}

/// How long guest code may run.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "the unit")]
pub(crate) struct Limits {
    cpu_ms: u64,
    wall_ms: u64,
    tick_ms: u64,
}

impl Limits {
    pub(crate) fn of_call(settings: &Settings) -> Self {
        Self { cpu_ms: settings.cpu_max_ms, wall_ms: settings.wall_max_ms, tick_ms: settings.epoch_tick_ms }
    }

    pub(crate) fn of_describe(settings: &Settings) -> Self {
        Self { cpu_ms: settings.describe_max_ms, wall_ms: settings.describe_max_ms, tick_ms: settings.epoch_tick_ms }
    }
}

/// A store with every limit in place.
pub(crate) fn new_store(runtime: &Runtime, handler: Arc<str>, content_hash: &str) -> Store<Guest> {
    let mut store = Store::new(&runtime.engine, Guest::new(handler, content_hash, &runtime.settings));
    store.limiter(|guest| &mut guest.limiter);
    store.epoch_deadline_callback(|store| match store.data().meter.exceeded() {
        Some(limit_ms) => Err(CpuLimit { limit_ms }.into()),
        // To the async executor and back: a guest that computes does not hold the thread.
        None => Ok(UpdateDeadline::Yield(1)),
    });
    store.set_epoch_deadline(1);
    store
}

/// Runs guest code under its limits.
pub(crate) async fn run<T>(
    meter: &Meter,
    limits: Limits,
    work: impl Future<Output = wasmtime::Result<T>>,
) -> Result<T, Stop> {
    let measured = meter.measure(limits.cpu_ms, limits.tick_ms, work);
    match tokio::time::timeout(Duration::from_millis(limits.wall_ms), measured).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(Stop::Trap(error)),
        Err(_) => Err(Stop::Wall(limits.wall_ms)),
    }
}

/// What to record of guest code that was stopped.
pub(crate) fn failure(guest: &mut Guest, stop: Stop) -> Failure {
    let last_words = guest.log.end();
    stop.into_failure(guest.limiter.take_refused(), &last_words)
}

impl Instance {
    pub(crate) async fn new(module: Arc<Module>) -> Result<Self, InstantiateError> {
        let runtime = &module.runtime;
        let room = runtime.room.clone().try_acquire_owned().map_err(|_| InstantiateError::NoCapacity)?;
        let group = module.metadata().name.as_str().into();
        let mut store = new_store(runtime, group, module.content_hash());
        let meter = store.data().meter.clone();
        let starting = run(&meter, Limits::of_call(&runtime.settings), module.handler.instantiate_async(&mut store));
        match starting.await {
            Ok(handler) => Ok(Self { module, store, handler, calls: 0, is_broken: false, _room: room }),
            Err(stop) if stop.is_full_pool() => Err(InstantiateError::NoCapacity),
            Err(stop) => Err(InstantiateError::Failed(failure(store.data_mut(), stop).error)),
        }
    }

    /// Whether it must not be called again: after anything but `done`, after a call that was not awaited to its end, and
    /// after as many calls as an instance may have. The caller drops it and makes another.
    pub fn is_spent(&self) -> bool {
        self.is_broken || self.calls >= self.module.runtime.settings.instance_calls_max
    }

    /// Handles one event. Dropping the future stops the guest; the instance is spent then. Calling a spent instance is the
    /// caller's mistake.
    pub async fn call(&mut self, call: &Call<'_>, host: Box<dyn CallHost>) -> Answer {
        assert!(!self.is_spent(), "an instance was called that is spent");
        self.calls += 1;
        self.is_broken = true;

        let settings = &self.module.runtime.settings;
        let group = self.module.metadata().name.as_str();
        let guest = self.store.data_mut();
        guest.clock.set(call.recorded_at_ms);
        guest.random = Random::new(&[group.as_bytes(), call.entry.to_string().as_bytes()]);
        guest.limiter.take_refused();
        guest.log.begin(call.event.id.clone());
        guest.call = Some(Running::new(host, settings));

        let event = event_for_guest(call);
        let meter = guest.meter.clone();
        self.store.set_epoch_deadline(1);
        let work = self.handler.keyrail_handler_guest().call_handle(&mut self.store, &event);
        let outcome = run(&meter, Limits::of_call(settings), work).await;

        let guest = self.store.data_mut();
        let running = guest.call.take();
        let answer = match outcome {
            Err(stop) if stop.is_full_pool() => Answer::Deferred("there is no stack for another call".into()),
            Err(stop) => match running.and_then(Running::trouble) {
                Some(trouble) => Answer::Deferred(trouble),
                None => Answer::Failed(failure(guest, stop)),
            },
            Ok(disposition) => {
                guest.log.end();
                judge(disposition, running)
            }
        };
        self.is_broken = !matches!(answer, Answer::Done(_));
        answer
    }
}

/// From what the guest answers to what becomes of the event.
fn judge(disposition: wit::Disposition, running: Option<Running>) -> Answer {
    let effects = running.map_or_else(|| Ok(Effects::default()), |running| running.overlay.into_effects());
    let (kind, mut error) = match (effects, disposition) {
        (Err(refusal), _) => (FailureKind::Refused, refusal),
        (Ok(effects), wit::Disposition::Done) => return Answer::Done(effects),
        (Ok(_), wit::Disposition::Retry(retry)) => (FailureKind::Retry { after_ms: retry.after_ms }, retry.reason),
        (Ok(_), wit::Disposition::Reject(reason)) => (FailureKind::Rejected, reason),
    };
    shorten(&mut error);
    Answer::Failed(Failure { kind, error })
}

fn event_for_guest(call: &Call<'_>) -> wit::Event {
    let event = call.event;
    wit::Event {
        id: event.id.as_ref().into(),
        category: event.category.as_str().into(),
        name: event.name.as_str().into(),
        version: event.version,
        key: event.key.as_ref().map(|key| key.as_str().into()),
        epoch: call.entry.id.epoch,
        sequence: call.entry.id.sequence,
        generation: call.generation.0,
        attempt: call.attempt,
        recorded_at: call.recorded_at_ms,
        headers: event.headers.clone(),
        data: event.data.to_vec(),
    }
}
