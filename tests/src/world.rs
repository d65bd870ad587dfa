//! A Redis, native hosts on it, and what they told of what they did.

use std::collections::BTreeMap;
use std::process::Command;

use keyrail_broker::testing::RedisServer;
use serde_json::Value;

use crate::host::Host;
use crate::native::{LOG, Line, OVERLAPS, Work};
use crate::{native_host, run_with_input, states, wait_until};

/// Leases so short that a test need not wait long for one to lapse.
pub const SHORT_LEASES: &str = r#"{"lease_ttl_ms":900,"heartbeat_interval_ms":200,"retry":{"backoff_base_ms":20}}"#;

/// See the module.
pub struct World {
    /// The server.
    pub redis: RedisServer,
    connection: redis::Connection,
}

impl World {
    /// With a server of its own.
    pub fn new() -> Self {
        let redis = RedisServer::start().unwrap();
        let connection = redis::Client::open(redis.url()).unwrap().get_connection().unwrap();
        Self { redis, connection }
    }

    /// Starts a native host; `plan` as `native-host` takes it.
    pub fn start_host(&self, settings: &str, handlers: &str, plan: &str) -> Host {
        let mut command = Command::new(native_host());
        command.args([&self.redis.url(), settings, handlers, plan]);
        Host::spawn(command)
    }

    /// The same, and waits until it is up.
    pub fn host(&self, settings: &str, handlers: &str) -> Host {
        self.host_that(settings, handlers, "-")
    }

    /// The same with a plan.
    pub fn host_that(&self, settings: &str, handlers: &str, plan: &str) -> Host {
        let mut host = self.start_host(settings, handlers, plan);
        host.wait_until_up();
        host
    }

    /// Publishes in this order.
    pub fn publish(&self, category: &str, works: impl IntoIterator<Item = Work>) {
        let lines: String = works.into_iter().map(|work| work.line(category)).collect();
        run_with_input(&self.redis.url(), &["publish", "-"], &lines).ok();
    }

    /// Runs a command of the server.
    pub fn redis(&mut self, command: &str) -> redis::Value {
        let mut parts = command.split(' ');
        let mut call = redis::cmd(parts.next().unwrap());
        for part in parts {
            call.arg(part);
        }
        call.query(&mut self.connection).unwrap()
    }

    /// Everything that handlers told so far.
    pub fn log(&mut self) -> Vec<Line> {
        let lines: Vec<String> = redis::cmd("LRANGE").arg(LOG).arg(0).arg(-1).query(&mut self.connection).unwrap();
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until a handler told this.
    pub fn wait_for(&mut self, what: &str, told: impl Fn(&Line) -> bool) -> Line {
        let mut found = None;
        wait_until(what, || {
            found = self.log().into_iter().find(|line| told(line));
            found.is_some()
        });
        found.unwrap()
    }

    /// Asserts that no two different events of one partition were ever in progress at once.
    pub fn assert_no_overlap(&mut self) {
        let overlaps: Vec<String> =
            redis::cmd("LRANGE").arg(OVERLAPS).arg(0).arg(-1).query(&mut self.connection).unwrap();
        assert_eq!(overlaps, Vec::<String>::new());
    }

    /// What each key of a handler has seen, in the order in which it took effect.
    pub fn seen(&self, group: &str) -> BTreeMap<String, Vec<String>> {
        let seen = |state: Value| -> Vec<String> { serde_json::from_value(state["seen"].clone()).unwrap_or_default() };
        states(&self.redis.url(), group).into_iter().map(|(key, state)| (key, seen(state))).collect()
    }

    /// Waits until a key has seen this many.
    pub fn wait_until_seen(&self, group: &str, key: &str, count: usize) {
        wait_until(&format!("{key} has seen {count}"), || {
            self.seen(group).get(key).is_some_and(|seen| seen.len() >= count)
        });
    }

    /// Asserts that a key has seen `order-0` to `order-(count-1)`, each once and in order.
    pub fn assert_in_order(&self, group: &str, key: &str, count: u64) {
        let expected: Vec<_> = (0..count).map(|n| format!("order-{n}")).collect();
        assert_eq!(self.seen(group).get(key), Some(&expected), "{key} of {group}");
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}
