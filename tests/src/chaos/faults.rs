//! What can go wrong, and the hosts that it happens to.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use keyrail_broker::testing::RedisServer;
use rand::Rng;
use rand::rngs::StdRng;

use super::HOSTS;
use crate::host::Host;
use crate::proxy::Proxy;
use crate::{guest, keyrail};

/// One fault.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// SIGKILL to a host, and another in its place.
    Kill(usize),
    /// SIGSTOP to a host for this long.
    Stop(usize, u64),
    /// An orderly end of a host, and another in its place.
    Terminate(usize),
    /// SIGKILL to the server, and its start from its append-only file.
    RestartServer,
    /// The server stands still for this long.
    StopServer(u64),
    /// Every connection of clients is ended by the server.
    KillClients,
    /// Scripts are forgotten.
    FlushScripts,
    /// Functions are forgotten.
    FlushFunctions,
    /// A host's connections are cut.
    Cut(usize),
    /// Everything to and from a host takes this long more, from now on.
    Delay(usize, u64),
    /// A host hears nothing and is not heard for this long.
    Silence(usize, u64),
}

impl Fault {
    pub(super) fn draw(chance: &mut StdRng) -> Self {
        let host = chance.random_range(0..HOSTS);
        match chance.random_range(0..16) {
            0..3 => Self::Kill(host),
            3..6 => Self::Stop(host, chance.random_range(200..5_000)),
            6 => Self::Terminate(host),
            7 => Self::RestartServer,
            8 => Self::StopServer(chance.random_range(100..4_000)),
            9 => Self::KillClients,
            10 => Self::FlushScripts,
            11 => Self::FlushFunctions,
            12 => Self::Cut(host),
            13 => Self::Delay(host, chance.random_range(0..100)),
            _ => Self::Silence(host, chance.random_range(500..5_000)),
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Kill(_) => "host killed",
            Self::Stop(..) => "host stopped for a while",
            Self::Terminate(_) => "host ended in order",
            Self::RestartServer => "server killed and started",
            Self::StopServer(_) => "server stopped for a while",
            Self::KillClients => "clients killed by the server",
            Self::FlushScripts => "scripts flushed",
            Self::FlushFunctions => "functions flushed",
            Self::Cut(_) => "connections cut",
            Self::Delay(..) => "network slowed",
            Self::Silence(..) => "network silent for a while",
        }
    }

    pub(super) fn strike(self, redis: &mut RedisServer, slots: &mut [Slot]) -> Result<()> {
        let wait = |ms| std::thread::sleep(Duration::from_millis(ms));
        match self {
            Self::Kill(host) => slots[host].replace(Host::kill),
            Self::Terminate(host) => slots[host].replace(|host| {
                host.terminate();
            }),
            Self::Stop(host, ms) => {
                slots[host].host().freeze();
                wait(ms);
                slots[host].host().thaw();
            }
            Self::RestartServer => redis.restart()?,
            Self::StopServer(ms) => {
                crate::host::freeze(redis.pid());
                wait(ms);
                crate::host::thaw(redis.pid());
            }
            Self::KillClients => ask(redis, &["CLIENT", "KILL", "TYPE", "normal"])?,
            Self::FlushScripts => ask(redis, &["SCRIPT", "FLUSH"])?,
            Self::FlushFunctions => ask(redis, &["FUNCTION", "FLUSH"])?,
            Self::Cut(host) => slots[host].proxy.cut(),
            Self::Delay(host, ms) => slots[host].proxy.delay(ms),
            Self::Silence(host, ms) => {
                slots[host].proxy.silence(true);
                wait(ms);
                slots[host].proxy.silence(false);
            }
        }
        Ok(())
    }
}

fn ask(redis: &RedisServer, command: &[&str]) -> Result<()> {
    let mut connection = redis::Client::open(redis.url())?.get_connection()?;
    let mut call = redis::cmd(command[0]);
    let _: redis::Value = call.arg(&command[1..]).query(&mut connection)?;
    Ok(())
}

/// The place of a host, behind a proxy of its own.
pub(super) struct Slot {
    proxy: Proxy,
    host: Option<Host>,
    /// What earlier hosts of this place printed.
    past: String,
}

impl Slot {
    pub(super) fn new(server: u16) -> Self {
        let proxy = Proxy::start(server);
        let host = Some(start(&proxy));
        Self { proxy, host, past: String::new() }
    }

    fn host(&self) -> &Host {
        self.host.as_ref().expect("a place has a host until it is ended")
    }

    fn replace(&mut self, end: impl FnOnce(Host)) {
        if let Some(host) = self.host.take() {
            let log = host.log();
            end(host);
            self.past += &log;
        }
        self.host = Some(start(&self.proxy));
    }

    /// No fault any more, and a host that runs: one that could not start without its server is started again.
    pub(super) fn heal(&mut self) {
        self.proxy.silence(false);
        self.proxy.delay(0);
        self.host().thaw_if_there();
        if self.host.as_mut().is_some_and(Host::has_ended) {
            self.replace(drop);
        }
    }

    pub(super) fn end(&mut self) {
        if let Some(host) = self.host.take() {
            host.terminate();
        }
    }

    pub(super) fn log(&self) -> String {
        self.past.clone() + &self.host.as_ref().map(Host::log).unwrap_or_default()
    }

    /// Commits that the fence refused.
    pub(super) fn refused_commits(&self) -> usize {
        self.log().lines().filter(|line| line.contains("the lease is another's") && line.contains("commit")).count()
    }

    pub(super) fn failed_tries(&self) -> usize {
        self.log().matches("a try failed").count()
    }
}

fn start(proxy: &Proxy) -> Host {
    let mut command = Command::new(keyrail());
    command.args(["--broker", &proxy.url(), "run", "--handler"]).arg(guest("itinerary"));
    command.args(["--set", "engine.lease_ttl_ms=1500", "--set", "engine.heartbeat_interval_ms=300"]);
    command.args(["--set", "redis.response_timeout_ms=1000"]);
    // Hosts are killed in the middle of events on purpose: none of them is poison.
    command.args(["--set", "engine.retry.crashes_max=1000"]);
    Host::spawn(command)
}
