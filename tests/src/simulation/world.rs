//! One run: a world made from a seed, faults for a while, calm, and the last look.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use keyrail::config::EngineConfig;
use keyrail_broker::embedded::{EmbeddedBroker, EmbeddedSettings, Writing};
use keyrail_broker::{By, CatalogStore as _, Inspect as _, Leases as _, Operate as _, ReadySource};
use keyrail_ordering::{Catalog, Key};

use super::chaos::Chaos;
use super::checks::End;
use super::clock::Clock;
use super::dice::Dice;
use super::faulty::Network;
use super::handlers::{self, Digest};
use super::host;
use super::notebook::Notebook;
use super::operators::operator;
use super::traffic::{self, publisher};
use super::truth::Truth;
use super::{Options, Report};

/// Virtual time within which everything comes to rest once faults have stopped.
const REST_WITHIN_MS: u64 = 120_000;
/// The same for hosts that are asked to leave.
const LEAVE_WITHIN_MS: u64 = 30_000;
/// How often the end is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Rows of one page.
const PAGE: usize = 100;

pub(super) struct World {
    pub(super) clock: Clock,
    pub(super) notebook: Arc<Notebook>,
    pub(super) network: Arc<Network>,
    pub(super) config: EngineConfig,
    pub(super) catalog: Catalog,
    pub(super) keys: Vec<Key>,
    /// Which part of the events is slow to handle.
    pub(super) slow: f64,
    pub(super) sources: Vec<ReadySource>,
    /// Those that list keys.
    pub(super) keyed_sources: Vec<ReadySource>,
    dice: Mutex<Dice>,
}

impl World {
    async fn new(options: &Options) -> Arc<Self> {
        let (clock, mut dice) = (Clock::start(), Dice::new(options.seed));
        let notebook = Arc::new(Notebook::new(clock.clone(), options.trace));
        let settings = EmbeddedSettings {
            writing: Writing::Inline,
            cache_max_bytes: 1 << 20,
            lease_clock: clock.lease_clock(),
            wall_clock: clock.wall_clock(),
            ..EmbeddedSettings::default()
        };
        let store = EmbeddedBroker::memory(settings).unwrap();
        let mut catalog = Catalog::default();
        for metadata in handlers::all() {
            catalog = catalog.register(&metadata, "simulated", store.capabilities()).unwrap();
        }
        assert_eq!(store.set_catalog(&catalog, 0).await.unwrap(), Some(1));
        let names = handlers::all().into_iter().map(|metadata| metadata.name);
        let sources: Vec<_> = names.flat_map(|name| ReadySource::of_handler(&catalog, &name)).collect();
        let keyed = |source: &&ReadySource| !matches!(source, ReadySource::Shared { .. });
        let truth = Arc::new(Truth::new(store, options.mistake, notebook.clone()));
        let world = Self {
            network: Arc::new(Network::new(truth, dice.fork())),
            config: host::config(&mut dice),
            keys: (0..dice.between(1, 5)).map(|n| traffic::key(&format!("k{n}"))).collect(),
            slow: dice.pick(&[0.05, 0.2, 0.5]),
            keyed_sources: sources.iter().filter(keyed).cloned().collect(),
            sources,
            catalog,
            clock,
            notebook,
            dice: Mutex::new(dice),
        };
        world.notebook.remark(format!("{:?}", world.config));
        Arc::new(world)
    }

    pub(super) fn roll<T>(&self, roll: impl FnOnce(&mut Dice) -> T) -> T {
        roll(&mut self.dice.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn store(&self) -> &EmbeddedBroker {
        self.network.truth.store()
    }

    async fn is_at_rest(&self) -> bool {
        let backlog = self.store().backlog(&self.sources).await.unwrap();
        backlog.ready == 0 && backlog.outbox == 0
    }

    /// What is still to do, source by source.
    async fn left(&self) -> String {
        let mut left = vec![];
        for source in &self.sources {
            let backlog = self.store().backlog(std::slice::from_ref(source)).await.unwrap();
            let looked = self.store().ready(source, 0, PAGE).await.unwrap();
            if backlog.ready > 0 {
                left.push(format!("{source:?}: {backlog:?}, {looked:?}"));
            }
        }
        left.join("; ")
    }

    /// A pause that its operator had given up may come late: ends what is paused once nothing can come any more.
    async fn end_pauses(&self) {
        tokio::time::sleep(Network::LATEST).await;
        let by = By { who: "op".into(), reason: "the end".into() };
        for category in self.catalog.categories.keys() {
            for paused in self.store().paused(category).await.unwrap() {
                self.network.truth.resume(category, paused.key.as_ref(), &by).await.unwrap();
            }
        }
    }

    /// Waits until everything is settled or halted. False if that does not happen in time.
    async fn rest(&self) -> bool {
        let until_ms = self.clock.elapsed_ms() + REST_WITHIN_MS;
        while !self.is_at_rest().await {
            if self.clock.elapsed_ms() >= until_ms {
                let left = self.left().await;
                self.notebook.violate("liveness", format!("still to do long after the faults: {left}"));
            }
            if self.notebook.is_violated() {
                return false;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        true
    }

    async fn last_look(&self) -> End {
        let mut end = End::default();
        for source in &self.keyed_sources {
            let mut cursor = Some(0);
            while let Some(from) = cursor {
                let (rows, next) = self.store().states(source, from, PAGE).await.unwrap();
                for row in rows {
                    for (name, value) in row.values {
                        let digest = Digest::from_bytes(&value).unwrap();
                        end.states.insert((source.group().clone(), row.key.clone(), name), digest);
                    }
                }
                cursor = next;
            }
            let (rows, _) = self.store().halted(source, 0, PAGE).await.unwrap();
            end.halted.extend(rows);
        }
        end
    }
}

/// Runs one seed. To be called in a runtime of its own whose clock is paused.
pub(super) async fn run(options: Options) -> Report {
    let world = World::new(&options).await;
    let (hosts, faults_ms) = world.roll(|dice| (dice.between(2, 4), dice.between(2_000, 12_000)));
    let mut chaos = Chaos::new(&world, hosts, world.roll(Dice::fork));
    let mut busy = tokio::task::JoinSet::new();
    let publishers = world.roll(|dice| dice.between(1, 3));
    for number in 0..publishers {
        let batches = world.roll(|dice| dice.between(10, 30));
        busy.spawn(publisher(world.clone(), number, batches, world.roll(Dice::fork)));
    }
    busy.spawn(operator(world.clone(), faults_ms, world.roll(Dice::fork)));
    chaos.rage(faults_ms).await;
    chaos.calm();
    while !world.notebook.is_violated() && busy.join_next().await.is_some() {}
    world.end_pauses().await;
    if world.rest().await {
        let end = world.last_look().await;
        world.notebook.end(&end);
        chaos.leave(LEAVE_WITHIN_MS).await;
    }
    for panic in super::panics::take() {
        world.notebook.violate("panics", panic);
    }
    let virtual_ms = world.clock.elapsed_ms();
    let (violations, hash, facts, lines) = world.notebook.close();
    Report { seed: options.seed, hash, facts, virtual_ms, violations, lines }
}
