//! A running component, which handles one event at a time.
//!
//! Invariant: an instance that was stopped in any way is never called again, so nothing of one call's failure reaches the
//! next.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use keyrail_ordering::{Effects, Failure, FailureKind};
use wasmtime::{Store, UpdateDeadline};

use crate::bindings::Handler;
use crate::bindings::keyrail::handler::types as wit;
use crate::call::{Answer, Call, CallHost};
use crate::clock::Meter;
use crate::failure::{CpuLimit, Stop, shorten};
use crate::grants::Granted;
use crate::guest::{Guest, Kit, Running, Trouble};
use crate::http::HttpRoute;
use crate::limits::Limits;
use crate::module::Module;
use crate::room::Place;
use crate::usage::count;
use crate::{InstantiateError, Runtime, Settings};

/// One instance of a handler. Dropping it frees its memory.
pub struct Instance {
    module: Arc<Module>,
    store: Store<Guest>,
    handler: Handler,
    calls: u64,
    /// Set while a call runs, and left set by one that was stopped or dropped.
    is_broken: bool,
    /// Given back after the store is gone.
    _place: Place,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Instance({:?}, {} calls, spent: {})", self.module, self.calls, self.is_spent())
    }
}

/// How long guest code may run.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "the unit")]
pub(crate) struct Time {
    cpu_ms: u64,
    wall_ms: u64,
    tick_ms: u64,
}

impl Time {
    pub(crate) fn of_call(limits: &Limits, settings: &Settings) -> Self {
        Self { cpu_ms: limits.cpu_max_ms, wall_ms: limits.wall_max_ms, tick_ms: settings.epoch_tick_ms }
    }

    pub(crate) fn of_describe(settings: &Settings) -> Self {
        Self { cpu_ms: settings.describe_max_ms, wall_ms: settings.describe_max_ms, tick_ms: settings.epoch_tick_ms }
    }
}

/// A store with every limit in place.
pub(crate) fn new_store(runtime: &Runtime, kit: &Kit, granted: Option<&Granted>) -> Store<Guest> {
    let mut store = Store::new(&runtime.engine, Guest::new(kit, granted, &runtime.settings));
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
    time: Time,
    work: impl Future<Output = wasmtime::Result<T>>,
) -> Result<T, Stop> {
    let measured = meter.measure(time.cpu_ms, time.tick_ms, work);
    match tokio::time::timeout(Duration::from_millis(time.wall_ms), measured).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(Stop::Trap(error)),
        Err(_) => Err(Stop::Wall(time.wall_ms)),
    }
}

/// What to record of guest code that was stopped.
pub(crate) fn failure(guest: &mut Guest, stop: Stop) -> Failure {
    let last_words = guest.log.end();
    stop.into_failure(guest.limiter.take_refused(), &last_words)
}

impl Instance {
    pub(crate) async fn new(module: Arc<Module>, seed: &str) -> Result<Self, InstantiateError> {
        let runtime = &module.runtime;
        let place = runtime.room.take(module.core_instances, &module.places).ok_or(InstantiateError::NoCapacity)?;
        let kit = &module.kit;
        let mut store = new_store(runtime, kit, Some(&kit.granted));
        store.data_mut().random.reseed(&[kit.content_hash.as_bytes(), seed.as_bytes()]);
        let meter = store.data().meter.clone();
        let time = Time::of_call(&kit.limits, &runtime.settings);
        let started = run(&meter, time, module.handler.instantiate_async(&mut store)).await;
        let (cpu, waited) = meter.spent();
        kit.counters.spend(cpu, waited, store.data().limiter.memory_bytes());
        match started {
            Ok(handler) => Ok(Self { module, store, handler, calls: 0, is_broken: false, _place: place }),
            Err(stop) if stop.is_full_pool() => Err(InstantiateError::NoCapacity),
            Err(stop) => Err(InstantiateError::Failed(failure(store.data_mut(), stop).error)),
        }
    }

    /// Whether it must not be called again: after anything but `done`, after a call that was not awaited to its end, after as
    /// many calls as an instance may have, and when its memory has grown large. The caller drops it and makes another.
    pub fn is_spent(&self) -> bool {
        let limits = &self.module.kit.limits;
        self.is_broken
            || self.calls >= limits.instance_calls_max
            || (self.calls > 0 && self.store.data().limiter.memory_bytes() > limits.instance_memory_max_bytes)
    }

    /// How the HTTP requests of the next calls are answered, as far as they are granted; until then, by the network.
    pub fn route_http(&mut self, route: HttpRoute) {
        self.store.data_mut().outgoing.set_route(route);
    }

    /// Handles one event. Dropping the future stops the guest; the instance is spent then. Calling a spent instance is the
    /// caller's mistake.
    pub async fn call(&mut self, call: &Call<'_>, host: Box<dyn CallHost>) -> Answer {
        assert!(!self.is_spent(), "an instance was called that is spent");
        self.calls += 1;
        self.is_broken = true;

        let kit = &self.module.kit;
        let guest = self.store.data_mut();
        guest.clock.set(call.recorded_at_ms);
        guest.random.reseed(&[kit.name.as_bytes(), call.entry.to_string().as_bytes()]);
        guest.limiter.take_refused();
        guest.log.begin(call.event.id.clone(), call.event.key.clone(), call.trace_id);
        guest.outgoing.begin();
        guest.call = Some(Running::new(host, kit.limits));

        let headers: Vec<_> = call.event.headers.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        let event = event_for_guest(call, &headers);
        let meter = guest.meter.clone();
        self.store.set_epoch_deadline(1);
        let work = self.handler.keyrail_handler_guest().call_handle(&mut self.store, event);
        let outcome = run(&meter, Time::of_call(&kit.limits, &self.module.runtime.settings), work).await;

        let guest = self.store.data_mut();
        let running = guest.call.take();
        let requests_go_on = guest.outgoing.end();
        let is_slow = matches!(&outcome, Err(Stop::Wall(_)));
        let answer = match outcome {
            Err(stop) if stop.is_full_pool() => Answer::Deferred("there is no stack for another call".into()),
            Err(stop) => match running.and_then(|running| running.trouble(is_slow)) {
                Some(Trouble::Told(why)) => Answer::Deferred(why),
                Some(Trouble::Slow(why)) if self.module.is_put_off(call.entry) => Answer::Deferred(why),
                Some(Trouble::Slow(why)) => {
                    let mut failure = failure(guest, stop);
                    failure.error = format!("{}; {why}, and so it did several times", failure.error);
                    Answer::Failed(failure)
                }
                None => Answer::Failed(failure(guest, stop)),
            },
            Ok(disposition) => {
                guest.log.end();
                judge(disposition, running)
            }
        };
        if !matches!(answer, Answer::Deferred(_)) {
            self.module.was_not_slow(call.entry);
        }
        let counters = &kit.counters;
        let (cpu, waited) = meter.spent();
        counters.spend(cpu, waited, guest.limiter.memory_bytes());
        count(&counters.calls);
        match &answer {
            Answer::Done(_) => {}
            Answer::Failed(_) => count(&counters.failures),
            Answer::Deferred(_) => count(&counters.deferred),
        }
        self.is_broken = requests_go_on || !matches!(answer, Answer::Done(_));
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

fn event_for_guest<'c>(call: &Call<'c>, headers: &'c [(&'c str, &'c str)]) -> wit::Event<'c> {
    let event = call.event;
    wit::Event {
        id: &event.id,
        category: event.category.as_str(),
        name: event.name.as_str(),
        version: event.version,
        key: event.key.as_ref().map(keyrail_ordering::Key::as_str),
        epoch: call.entry.id.epoch,
        sequence: call.entry.id.sequence,
        generation: call.generation.0,
        attempt: call.attempt,
        recorded_at: call.recorded_at_ms,
        headers,
        data: &event.data,
    }
}
