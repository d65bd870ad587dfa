//! One host process: the real engine on a machine of its own, reached and stopped only from outside.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use keyrail::config::EngineConfig;
use keyrail::engine::{Engine, Handler, Serving, Surroundings, Version};
use keyrail::telemetry::Telemetry;
use keyrail_broker::Broker;
use keyrail_ordering::{Metadata, OwnerId, RetryPolicy, Selection};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::dice::Dice;
use super::faulty::{FaultyBroker, Link};
use super::handlers::{self, SimHandler};
use super::machine::{Power, SimMachine, Switch};
use super::world::World;

/// How soon an engine that did not start is started again, as a supervisor would.
const START_AGAIN: Duration = Duration::from_millis(200);

/// What becomes of a handler while its host runs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reload {
    /// Another version serves every key.
    Version(u64),
    /// Another version serves about half of them.
    Canary(u64),
    /// It is not served any more.
    Undeployed,
}

pub(super) struct Host {
    pub(super) owner: OwnerId,
    reloads: mpsc::UnboundedSender<(usize, Reload)>,
    switch: Switch,
    link: Link,
    stop: CancellationToken,
    ended: Arc<AtomicBool>,
}

impl Host {
    /// Starts one with a fresh owner id.
    pub(super) fn start(world: &Arc<World>, number: u64) -> Self {
        let owner = OwnerId::new(&format!("h{number}"));
        let link = Link::new(world.network.clone(), owner.as_str());
        let (switch, stop, ended) = (Switch::default(), CancellationToken::new(), Arc::<AtomicBool>::default());
        let machine = Arc::new(SimMachine {
            clock: world.clock.clone(),
            dice: Mutex::new(world.roll(Dice::fork)),
            switch: switch.clone(),
        });
        let broker: Arc<dyn Broker> = Arc::new(FaultyBroker { link: link.clone() });
        let (notes, of) = (world.notebook.clone(), owner.clone());
        let handler = move |metadata: Metadata| -> Arc<dyn Handler> {
            Arc::new(SimHandler { metadata, owner: of.clone(), notebook: notes.clone() })
        };
        let handlers: Vec<_> = handlers::all().into_iter().map(&handler).collect();
        let (reloads, mut reloading) = mpsc::unbounded_channel();
        let config = world.config.clone();
        let host = Self { owner: owner.clone(), reloads, switch, link, stop: stop.clone(), ended: ended.clone() };
        let notebook = world.notebook.clone();
        notebook.remark(format!("{owner} starts"));
        let process = Box::pin(async move {
            let engine = loop {
                let surroundings = Surroundings { machine: machine.clone(), telemetry: Telemetry::default() };
                let start = Engine::start_in(surroundings, broker.clone(), handlers.clone(), &config, owner.clone());
                match start.await {
                    Ok(engine) => break engine,
                    Err(error) => notebook.remark(format!("{owner} did not start: {error}")),
                }
                tokio::time::sleep(START_AGAIN).await;
            };
            loop {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => break,
                    Some((which, reload)) = reloading.recv() => apply(&engine, &handler, which, reload),
                }
            }
            engine.shutdown(config.shutdown_grace_ms).await;
            notebook.remark(format!("{owner} has left"));
            ended.store(true, Relaxed);
        });
        tokio::spawn(host.switch.gate(process));
        host
    }

    pub(super) fn freeze(&self) {
        self.switch.set(Power::Frozen);
    }

    pub(super) fn thaw(&self) {
        self.switch.set(Power::Running);
    }

    pub(super) fn crash(&self) {
        self.switch.set(Power::Crashed);
        self.ended.store(true, Relaxed);
    }

    /// Does this with the handler of this place in [`handlers::all`], as soon as the host runs.
    pub(super) fn reload(&self, which: usize, reload: Reload) {
        // A host that has ended takes none.
        let _ = self.reloads.send((which, reload));
    }

    /// Asks it to leave in good order.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    pub(super) fn set_cut(&self, cut: bool) {
        self.link.cut.store(cut, Relaxed);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Relaxed)
    }

    /// Whether it was asked to leave, or is gone.
    pub(super) fn is_leaving(&self) -> bool {
        self.stop.is_cancelled() || self.has_ended()
    }
}

fn apply(engine: &Engine, handler: &impl Fn(Metadata) -> Arc<dyn Handler>, which: usize, reload: Reload) {
    let metadata = handlers::all().swap_remove(which);
    let group = metadata.name.clone();
    let version = |number: u64, is_canary| {
        let metadata = Metadata { version: number.to_string(), ..metadata.clone() };
        Version::deployed(handler(metadata), number, &number.to_string(), is_canary)
    };
    match reload {
        Reload::Version(number) => engine.handlers().set(&group, Serving::all(version(number, false))),
        Reload::Canary(number) => {
            let canary = Some((Selection::Percent(50), version(number + 1, true)));
            engine.handlers().set(&group, Serving { active: version(number, false), canary })
        }
        Reload::Undeployed => engine.handlers().remove(&group),
    };
}

/// Short times and small limits, so that everything happens within seconds.
pub(super) fn config(dice: &mut Dice) -> EngineConfig {
    let lease_ttl_ms = dice.pick(&[900, 1_500, 3_000]);
    let heartbeat_interval_ms = lease_ttl_ms / dice.pick(&[3, 4]);
    EngineConfig {
        lease_ttl_ms,
        heartbeat_interval_ms,
        renew_batch_max: dice.pick(&[1, 2, 200]),
        partitions_max: dice.pick(&[2, 8, 64]),
        executions_max: dice.pick(&[1, 2, 16]),
        read_ahead_max: dice.pick(&[0, 1, 4, 256]),
        read_ahead_max_bytes: dice.pick(&[1_000, 256 * 1024]),
        commit_batch_max: dice.pick(&[1, 3, 64]),
        commit_batch_max_bytes: dice.pick(&[100, 64 * 1024]),
        commit_batch_max_ms: dice.pick(&[0, 5, 200]),
        linger_ms: dice.pick(&[0, 50, 300]),
        pause_ms: dice.pick(&[20, 50]),
        sweep_interval_ms: dice.between(500, 2_000),
        grace_ms: dice.between(50, 600),
        housekeeping_interval_ms: dice.between(700, 3_000),
        shared_executions_max: dice.pick(&[1, 4]),
        shared_idle_min_ms: lease_ttl_ms,
        discovery_batch_max: dice.pick(&[1, 3, 256]),
        candidates_max: dice.pick(&[1, 4_096]),
        quantum_events: dice.pick(&[2, 256]),
        route_batch_max: dice.pick(&[1, 3, 100]),
        state_cache_max_bytes: dice.pick(&[0, 1 << 20]),
        worker_stall_max_ms: 5_000,
        shutdown_grace_ms: dice.pick(&[100, 2_000]),
        stop_max_ms: 1_000,
        retry: RetryPolicy {
            attempts_max: 3,
            crashes_max: dice.pick(&[3, 100]),
            backoff_base_ms: 50,
            backoff_cap_ms: 800,
        },
        ..EngineConfig::default()
    }
}
