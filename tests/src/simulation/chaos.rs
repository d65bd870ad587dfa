//! What happens to hosts and network while the faults last: freezes, crashes, cut connections, hosts that join and leave,
//! handlers that are replaced and undeployed, changing weather, wall clocks that jump.

use std::sync::Arc;
use std::time::Duration;

use super::dice::Dice;
use super::faulty::Weather;
use super::handlers;
use super::host::{Host, Reload};
use super::world::World;

/// How long a host is frozen, cut off or away, at most.
const OUTAGE_MAX_MS: u64 = 5_000;

/// What is to be undone, and when.
enum Cure {
    Thaw(usize),
    Connect(usize),
    /// A host in the place of one that is gone.
    Replace(usize),
    /// A handler is served again.
    Deploy(usize, usize),
}

pub(super) struct Chaos {
    world: Arc<World>,
    dice: Dice,
    /// One place a host; what is gone is replaced by a new one.
    hosts: Vec<Host>,
    /// Hosts that were replaced and may still be on their way out.
    old: Vec<Host>,
    started: u64,
    /// Versions of handlers so far.
    versions: u64,
    cures: Vec<(u64, Cure)>,
}

impl Chaos {
    pub(super) fn new(world: &Arc<World>, hosts: u64, dice: Dice) -> Self {
        let mut chaos =
            Self { world: world.clone(), dice, hosts: vec![], old: vec![], started: 0, versions: 1, cures: vec![] };
        for _ in 0..hosts {
            let host = chaos.next_host();
            chaos.hosts.push(host);
        }
        chaos
    }

    fn next_host(&mut self) -> Host {
        self.started += 1;
        Host::start(&self.world, self.started)
    }

    fn remark(&self, what: &str, place: usize) {
        self.world.notebook.remark(format!("{} {what}", self.hosts[place].owner));
    }

    /// Lets things happen for so long.
    pub(super) async fn rage(&mut self, for_ms: u64) {
        let (until_ms, often_ms) = (self.now_ms() + for_ms, self.dice.pick(&[300, 1_000, 3_000]));
        while self.now_ms() < until_ms && !self.world.notebook.is_violated() {
            let wait_ms = self.dice.between(1, often_ms);
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            self.cure();
            self.strike();
        }
    }

    fn now_ms(&self) -> u64 {
        self.world.clock.elapsed_ms()
    }

    fn cure(&mut self) {
        let now_ms = self.now_ms();
        let due = self.cures.extract_if(.., |(at_ms, _)| *at_ms <= now_ms);
        let due: Vec<_> = due.map(|(_, cure)| cure).collect();
        for cure in due {
            self.apply(cure);
        }
    }

    fn apply(&mut self, cure: Cure) {
        match cure {
            Cure::Thaw(place) => {
                self.remark("thaws", place);
                self.hosts[place].thaw();
            }
            Cure::Connect(place) => {
                self.remark("is connected", place);
                self.hosts[place].set_cut(false);
            }
            Cure::Deploy(place, which) => {
                self.remark("serves a handler again", place);
                self.versions += 1;
                self.hosts[place].reload(which, Reload::Version(self.versions));
            }
            Cure::Replace(place) => {
                let host = self.next_host();
                let before = std::mem::replace(&mut self.hosts[place], host);
                // It may have been frozen or cut off on its way out.
                before.thaw();
                before.set_cut(false);
                self.old.push(before);
            }
        }
    }

    /// Often a little more than a lease: just then others come in between.
    fn outage_ms(&mut self) -> u64 {
        let lease_ttl_ms = self.world.config.lease_ttl_ms;
        if self.dice.hits(0.5) {
            return lease_ttl_ms + self.dice.between(0, 1_000);
        }
        self.dice.between(1, OUTAGE_MAX_MS)
    }

    fn strike(&mut self) {
        let place = self.dice.between(0, self.hosts.len() as u64 - 1) as usize;
        let until_ms = self.now_ms() + self.outage_ms();
        let gone = self.hosts[place].is_leaving();
        match self.dice.between(0, 12) {
            0..=2 if !gone => {
                self.remark("freezes", place);
                self.hosts[place].freeze();
                self.cures.push((until_ms, Cure::Thaw(place)));
            }
            3..=4 if !gone => {
                self.remark("crashes", place);
                self.hosts[place].crash();
                self.cures.push((until_ms, Cure::Replace(place)));
            }
            5 if !gone => {
                self.remark("is asked to leave", place);
                self.hosts[place].stop();
                self.cures.push((until_ms, Cure::Replace(place)));
            }
            6 if !gone => {
                self.remark("is cut off", place);
                self.hosts[place].set_cut(true);
                self.cures.push((until_ms, Cure::Connect(place)));
            }
            7..=8 if !gone => {
                let which = self.dice.between(0, handlers::all().len() as u64 - 1) as usize;
                self.versions += 2;
                let canary = self.dice.hits(0.3);
                let reload = if canary { Reload::Canary(self.versions) } else { Reload::Version(self.versions) };
                self.remark("reloads a handler", place);
                self.hosts[place].reload(which, reload);
            }
            9 if !gone => {
                let which = self.dice.between(0, handlers::all().len() as u64 - 1) as usize;
                self.remark("serves a handler no more", place);
                self.hosts[place].reload(which, Reload::Undeployed);
                self.cures.push((until_ms, Cure::Deploy(place, which)));
            }
            10 => {
                let by_ms = self.dice.between(0, 20_000).cast_signed() - 10_000;
                self.world.notebook.remark(format!("the wall clock jumps by {by_ms} ms"));
                self.world.clock.jump(by_ms);
            }
            _ => {
                let weather = Weather::roll(&mut self.dice);
                self.world.network.set_weather(weather);
            }
        }
    }

    /// Ends every fault.
    pub(super) fn calm(&mut self) {
        self.world.network.set_weather(Weather::CALM);
        for (_, cure) in std::mem::take(&mut self.cures) {
            self.apply(cure);
        }
    }

    /// Lets every host leave in good order; false if one does not within this time.
    pub(super) async fn leave(&self, within_ms: u64) -> bool {
        let until_ms = self.now_ms() + within_ms;
        let mut all = self.hosts.iter().chain(&self.old);
        self.hosts.iter().for_each(Host::stop);
        while !all.clone().all(Host::has_ended) {
            if self.now_ms() >= until_ms {
                let left = all.find(|host| !host.has_ended()).map(|host| host.owner.to_string());
                self.world.notebook.violate("liveness", format!("{left:?} does not come to its end"));
                return false;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        true
    }
}
