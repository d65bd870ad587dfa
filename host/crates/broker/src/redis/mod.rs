//! The broker on Redis 7 or Valkey. Every operation of the traits is one Function on the server; this side writes its
//! arguments and reads its answer.
//!
//! Owns: the names (`keyspace`), the Lua libraries (`functions`), connections. Must not know: what an event means, when
//! a try is due again, who should own what.
//! Invariant: nothing per key is kept here. What is kept is a cache of the key rules and the highest generation seen.

mod answer;
mod bells;
mod catalog;
mod checks;
mod connection;
mod decode;
mod diagnose;
mod find;
mod functions;
mod housekeeping;
mod inspect;
pub mod keyspace;
mod lag;
mod leases;
mod letters;
mod log;
mod members;
mod modules;
mod operate;
mod pausing;
mod publish;
mod reading;
mod router;
mod rows;
mod shared_log;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use keyrail_ordering::{KeyRules, PartitionSpec};
use redis::{Client, ConnectionInfo, IntoConnectionInfo, Value};

pub use diagnose::diagnose;

use crate::{Broker, Error, Retention};
use connection::{Connection, Failure, Timeouts};
use functions::Call;
use reading::Readings;

/// Ten years. The server refuses larger times, some of them after it has written.
const TIME_MAX_MS: u64 = 315_360_000_000;
/// Entries in one read: it holds the whole server up while it runs.
const READ_MAX: usize = 1_000;

/// The highest number that a function can count with.
const EXACT_MAX: u64 = 1 << 53;

/// How the broker talks to the server.
#[derive(Debug, Clone)]
pub struct RedisSettings {
    /// How long to wait for a connection.
    pub connect_timeout_ms: u64,
    /// How long to wait for an answer. Past it a call may have happened.
    pub response_timeout_ms: u64,
    /// How long entries are kept that every group has settled.
    pub retention: Retention,
    /// Generations begin above this: for a server whose counter was lost while owners live on.
    pub generation_floor: u64,
}

impl Default for RedisSettings {
    fn default() -> Self {
        Self {
            connect_timeout_ms: 5_000,
            response_timeout_ms: 5_000,
            retention: Retention::default(),
            generation_floor: 0,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct RedisBroker {
    client: Client,
    connection: Connection,
    settings: RedisSettings,
    address: String,
    /// As the catalog has them; what names the backfill lane.
    rules: RwLock<Arc<KeyRules>>,
    /// The highest generation seen: a server that lost its counter must not begin again below it.
    highest: AtomicU64,
    readings: Readings,
}

impl RedisBroker {
    /// Connects, checks that the server can be used, and loads the functions. `url` is
    /// `redis://[user:password@]host[:port][/database]`.
    pub async fn connect(url: &str, settings: RedisSettings) -> Result<Self, Error> {
        let (info, address) = target(url)?;
        let client = Client::open(info).map_err(|error| unusable(&error))?;
        let timeouts = Timeouts { connect_ms: settings.connect_timeout_ms, response_ms: settings.response_timeout_ms };
        let connection = Connection::new(client.clone(), timeouts);
        checks::server(&connection, &address).await.accepted()?;
        let highest = AtomicU64::new(settings.generation_floor);
        let broker = Self {
            client,
            connection,
            settings,
            address,
            rules: RwLock::default(),
            highest,
            readings: Readings::default(),
        };
        broker.read_catalog().await?;
        Ok(broker)
    }

    fn timeouts(&self) -> Timeouts {
        Timeouts { connect_ms: self.settings.connect_timeout_ms, response_ms: self.settings.response_timeout_ms }
    }

    /// What is kept, as the functions read it: how many entries, and how old in ms. The server's numbers are exact to 2^53.
    fn kept(&self) -> String {
        let Retention { entries, age_ms } = self.settings.retention;
        format!("{} {}", entries.min(EXACT_MAX), age_ms.min(EXACT_MAX))
    }

    async fn call(&self, call: &Call) -> Result<Value, Failure> {
        functions::call(&self.connection, call).await
    }

    fn rules(&self) -> Arc<KeyRules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_rules(&self, rules: &KeyRules) {
        let mut present = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        if **present != *rules {
            *present = Arc::new(rules.clone());
        }
    }

    fn saw_generation(&self, generation: u64) {
        self.highest.fetch_max(generation, Ordering::Relaxed);
    }

    fn stream_names(&self, partition: &PartitionSpec) -> Arc<[String]> {
        let rules = self.rules();
        partition.streams.iter().map(|id| keyspace::stream(id, &rules)).collect()
    }

    /// A function call on a partition: its streams as keys, then scope, collection, group and key.
    fn partition_call(function: &'static str, partition: &PartitionSpec, streams: &[String]) -> Call {
        let mut call = Call::new(function, streams.len());
        for name in streams {
            call.arg(name);
        }
        let id = &partition.id;
        call.arg(keyspace::scope(id)).arg(keyspace::collection_of(id)).arg(id.group.as_str()).arg(id.key().as_str());
        call
    }
}

/// Where a URL points to, and the same without its password.
fn target(url: &str) -> Result<(ConnectionInfo, String), Error> {
    let info = url.into_connection_info().map_err(|error| unusable(&error))?;
    let info = info.set_tcp_settings(redis::io::tcp::TcpSettings::default().set_nodelay(true));
    let address = format!("redis://{}/{}", info.addr(), info.redis_settings().db());
    Ok((info, address))
}

fn unusable(error: &redis::RedisError) -> Error {
    Error::Unusable(format!(
        "the broker's address is not usable: {error}; write redis://[user:password@]host[:port][/database]"
    ))
}

impl Broker for RedisBroker {
    fn address(&self) -> String {
        self.address.clone()
    }
}
