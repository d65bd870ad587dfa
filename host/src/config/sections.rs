//! Settings of publishing, deploying, retention, Redis, the API and the log.

use keyrail_broker::Retention;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::zeros;

/// Leaves room for generations that grow: the server counts in 63 bits.
const GENERATION_FLOOR_MAX: u64 = 1 << 62;
/// Ten years.
const RETENTION_AGE_MAX_MS: u64 = 10 * 365 * 24 * 3_600 * 1_000;

/// How events are taken in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PublishConfig {
    /// Events in one call to the broker.
    pub batch_max: usize,
    /// Payload bytes in one call to the broker, beyond its first event.
    pub batch_max_bytes: usize,
    /// Calls to the broker under way at once. Events of one key are never in two of them.
    pub in_flight_max: usize,
    /// Bytes of lines that were read and are not published yet; reading waits beyond that.
    pub queue_max_bytes: usize,
    /// Size of an event's data.
    pub payload_max_bytes: usize,
    /// Size of an input line; a longer one is a bad line.
    pub line_max_bytes: usize,
    /// How long an event's id is remembered, so that publishing it again changes nothing.
    pub dedupe_window_ms: u64,
    /// Tries of a call that the broker did not answer; repeats are harmless because ids are remembered.
    pub tries_max: u32,
    /// Wait after the first such try; doubles with each further one.
    pub retry_base_ms: u64,
    /// The longest such wait.
    pub retry_cap_ms: u64,
}

impl Default for PublishConfig {
    fn default() -> Self {
        Self {
            batch_max: 100,
            batch_max_bytes: 1 << 20,
            in_flight_max: 8,
            queue_max_bytes: 16 << 20,
            payload_max_bytes: 1 << 20,
            line_max_bytes: 2 << 20,
            dedupe_window_ms: 24 * 3_600 * 1_000,
            tries_max: 8,
            retry_base_ms: 100,
            retry_cap_ms: 5_000,
        }
    }
}

impl PublishConfig {
    pub(super) fn problems(&self) -> Vec<String> {
        let values = [
            ("batch_max", self.batch_max as u64),
            ("batch_max_bytes", self.batch_max_bytes as u64),
            ("in_flight_max", self.in_flight_max as u64),
            ("queue_max_bytes", self.queue_max_bytes as u64),
            ("payload_max_bytes", self.payload_max_bytes as u64),
            ("tries_max", u64::from(self.tries_max)),
        ];
        let mut problems = zeros("publish", &values);
        if self.line_max_bytes < self.payload_max_bytes {
            problems.push(format!(
                "publish.line_max_bytes is {}; it must be at least publish.payload_max_bytes ({})",
                self.line_max_bytes, self.payload_max_bytes
            ));
        }
        problems
    }
}

/// How Redis is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RedisConfig {
    /// How long a call may take before it counts as not answered.
    pub response_timeout_ms: u64,
    /// How long a connection may take to come up.
    pub connect_timeout_ms: u64,
    /// Generations begin above this. Raise it over every generation that was seen after a server was put back to an older
    /// state, so that no fence of before is given out again. 0 for no floor.
    pub generation_floor: u64,
}

impl Default for RedisConfig {
    fn default() -> Self {
        Self { response_timeout_ms: 2_000, connect_timeout_ms: 2_000, generation_floor: 0 }
    }
}

impl RedisConfig {
    pub(super) fn problems(&self) -> Vec<String> {
        let values =
            [("response_timeout_ms", self.response_timeout_ms), ("connect_timeout_ms", self.connect_timeout_ms)];
        let mut problems = zeros("redis", &values);
        if self.generation_floor > GENERATION_FLOOR_MAX {
            problems.push(format!(
                "redis.generation_floor is {}; it must be at most {GENERATION_FLOOR_MAX}, since generations grow from there",
                self.generation_floor
            ));
        }
        problems
    }
}

/// How long settled events are kept. An event goes once every registered handler has settled it and no limit keeps it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// Newest events of each key that are kept, settled or not; 0 for none.
    pub entries: u64,
    /// How long events are kept after they were recorded, by the broker's clock; 0 for not at all.
    pub age_ms: u64,
}

impl RetentionConfig {
    pub(super) fn problems(&self) -> Vec<String> {
        if self.age_ms <= RETENTION_AGE_MAX_MS {
            return vec![];
        }
        vec![format!("retention.age_ms is {}; it must be at most {RETENTION_AGE_MAX_MS} (ten years)", self.age_ms)]
    }
}

impl From<&RetentionConfig> for Retention {
    fn from(config: &RetentionConfig) -> Self {
        Self { entries: config.entries, age_ms: config.age_ms }
    }
}

/// The local HTTP API of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApiConfig {
    /// The Unix socket to serve: a path, `auto` for `FILE.sock` beside an embedded file (none for other brokers), `off`
    /// for none.
    pub socket: String,
    /// Rows in one answer.
    pub page_max: usize,
    /// Publishing requests at once; further ones wait.
    pub publishes_max: usize,
    /// Size of a request other than publishing, and deploying.
    pub request_max_bytes: usize,
    /// Size of a component that is deployed.
    pub module_max_bytes: usize,
    /// Bytes of lines that the command line sends in one publishing request.
    pub chunk_max_bytes: usize,
    /// How long the command line waits for the host to say anything.
    pub answer_timeout_ms: u64,
    /// How long a look at the whole fleet is good for: all who ask in that time share it.
    pub view_ttl_ms: u64,
    /// Followers of what happens (`/v1/live`, `/v1/tail`) at once; further ones are refused.
    pub followers_max: usize,
    /// Bytes of events that wait for a follower that is slow; what does not fit is counted, and left out.
    pub follower_queue_max_bytes: usize,
    /// How long the command line waits for another command that holds an embedded file.
    pub open_wait_ms: u64,
}

impl Default for ApiConfig {
    fn default() -> Self {
        Self {
            socket: "auto".into(),
            page_max: 1_000,
            publishes_max: 4,
            request_max_bytes: 4 << 20,
            module_max_bytes: 64 << 20,
            chunk_max_bytes: 1 << 20,
            answer_timeout_ms: 60_000,
            view_ttl_ms: 1_000,
            followers_max: 100,
            follower_queue_max_bytes: 1 << 20,
            open_wait_ms: 2_000,
        }
    }
}

impl ApiConfig {
    pub(super) fn problems(&self) -> Vec<String> {
        let values = [
            ("page_max", self.page_max as u64),
            ("publishes_max", self.publishes_max as u64),
            ("module_max_bytes", self.module_max_bytes as u64),
            ("chunk_max_bytes", self.chunk_max_bytes as u64),
            ("answer_timeout_ms", self.answer_timeout_ms),
            ("follower_queue_max_bytes", self.follower_queue_max_bytes as u64),
        ];
        zeros("api", &values)
    }
}

/// How handlers are deployed and loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModulesConfig {
    /// How long keyrail deploy waits for every host to load a handler before it takes it back.
    pub deploy_wait_ms: u64,
    /// How soon a host tries again to fetch a component that the broker did not give.
    pub retry_interval_ms: u64,
    /// How often the folder of --handlers is looked at; a file counts once it was alike two times.
    pub watch_interval_ms: u64,
}

impl Default for ModulesConfig {
    fn default() -> Self {
        Self { deploy_wait_ms: 120_000, retry_interval_ms: 2_000, watch_interval_ms: 500 }
    }
}

impl ModulesConfig {
    pub(super) fn problems(&self) -> Vec<String> {
        let values = [
            ("deploy_wait_ms", self.deploy_wait_ms),
            ("retry_interval_ms", self.retry_interval_ms),
            ("watch_interval_ms", self.watch_interval_ms),
        ];
        zeros("modules", &values)
    }
}

/// What is logged, to standard error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// What to log, in the syntax of `RUST_LOG` (`info`, `keyrail=debug,warn`); `auto` is `info` for `run` and `warn` for
    /// the other commands.
    pub filter: String,
    /// How a line looks.
    pub format: LogFormat,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { filter: "auto".into(), format: LogFormat::Text }
    }
}

impl LogConfig {
    pub(super) fn problems(&self) -> Vec<String> {
        match tracing_subscriber::EnvFilter::builder().parse(&self.filter) {
            Ok(_) => vec![],
            Err(error) => vec![format!(
                "log.filter is {:?}: {error}; give a level (error, warn, info, debug, trace) or TARGET=LEVEL, separated by commas",
                self.filter
            )],
        }
    }
}

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
