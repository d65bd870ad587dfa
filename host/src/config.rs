//! Configuration, parsed once. Every limit has a name, a unit and a default here.
//!
//! Owns the tree of settings and the order of its layers: defaults, `keyrail.toml`, environment, flags. A later layer
//! replaces single values of an earlier one. Nothing after start reads the environment or the file again.
//! Invariant: a [`Config`] that [`load`] gave out has passed [`Config::problems`].

mod address;
mod engine;
mod error;
mod http;
mod in_force;
mod layers;
mod reference;
mod runtime;
mod sections;
mod traces;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use address::{AddressError, BrokerAddress};
pub use engine::EngineConfig;
pub use error::ConfigError;
pub use http::{ClientConfig, DEFAULT_PORT, HttpConfig, Listen, TlsFiles, Token};
pub use in_force::{InForce, Origin, in_force};
pub use layers::{FILE_NAME, Layers, load, origins};
pub use reference::{Setting, schema, settings};
pub use runtime::{COMPILE_COMMAND, RuntimeConfig};
pub use sections::{ApiConfig, LogConfig, LogFormat, ModulesConfig, PublishConfig, RedisConfig, RetentionConfig};
pub use traces::TracesConfig;

/// All settings of a host and of the command line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where events, leases and state live: `embedded:PATH`, `memory`, `redis://…`, or `socket:PATH` or `http://…` of a running
    /// host.
    #[schemars(with = "String")]
    pub broker: BrokerAddress,
    /// How a host owns partitions and works on them.
    pub engine: EngineConfig,
    /// What a handler may use.
    pub runtime: RuntimeConfig,
    /// How handlers are deployed and loaded.
    pub modules: ModulesConfig,
    /// How events are taken in.
    pub publish: PublishConfig,
    /// How long settled events are kept.
    pub retention: RetentionConfig,
    /// How Redis is reached.
    pub redis: RedisConfig,
    /// The local HTTP API of a host.
    pub api: ApiConfig,
    /// The HTTP API of a host over TCP.
    pub http: HttpConfig,
    /// How commands reach a host over TCP.
    pub client: ClientConfig,
    /// What is logged.
    pub log: LogConfig,
    /// Where traces go.
    pub traces: TracesConfig,
}

impl Config {
    /// What does not fit together, a sentence each.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.engine.problems();
        problems.extend(self.runtime.problems());
        problems.extend(self.modules.problems());
        problems.extend(self.publish.problems());
        problems.extend(self.retention.problems());
        problems.extend(self.redis.problems());
        problems.extend(self.api.problems());
        problems.extend(self.http.problems());
        problems.extend(self.client.problems());
        problems.extend(self.log.problems());
        problems.extend(self.traces.problems());
        let call_max_ms = self.runtime.wall_max_ms.max(self.runtime.cpu_max_ms);
        if self.engine.worker_stall_max_ms <= call_max_ms {
            problems.push(format!(
                "engine.worker_stall_max_ms is {}; it must be more than the longest call, runtime.wall_max_ms ({call_max_ms})",
                self.engine.worker_stall_max_ms
            ));
        }
        problems
    }
}

/// A sentence for each of `values` that is 0.
fn zeros(section: &str, values: &[(&str, u64)]) -> Vec<String> {
    let zero = values.iter().filter(|(_, value)| *value == 0);
    zero.map(|(name, _)| format!("{section}.{name} is 0; it must be at least 1")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_defaults_fit_together() {
        assert_eq!(Config::default().problems(), Vec::<String>::new());
        assert_eq!(Config::default().broker.to_string(), "embedded:keyrail.redb");
    }

    #[test]
    fn what_does_not_fit_is_said_all_at_once() {
        let mut config = Config::default();
        config.engine.heartbeat_interval_ms = 2_000;
        config.publish.batch_max = 0;
        config.publish.line_max_bytes = 10;
        config.retention.age_ms = u64::MAX;
        config.redis.generation_floor = u64::MAX;
        let problems = config.problems().join("; ");
        for part in [
            "engine.heartbeat_interval_ms is 2000",
            "publish.batch_max is 0",
            "publish.line_max_bytes is 10",
            "retention.age_ms is",
            "redis.generation_floor is",
        ] {
            assert!(problems.contains(part), "{problems}");
        }
    }
}
