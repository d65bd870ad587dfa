//! Handlers in Rust that leave marks in Redis, and the processes that run them.
//!
//! What a guest does cannot be seen from outside: it has no network. So the tests of the guarantees run the same engine
//! in the same kind of process, with handlers that tell Redis when they begin and end, beside Keyrail's own data:
//!
//! - `test:mark:{partition}` holds the event in progress. Another event that begins meanwhile is an overlap;
//! - `test:log` has a line for each begin and end, in the server's order.
//!
//! The event: `{"client_id", "n", "work_ms", "mode"}`; modes `ok`, `poison`, `flaky` (fails twice), `hang-once` (never
//! returns, the first time), `panic-once`.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use keyrail::engine::{Handler, HandlerInstance};
use keyrail_ordering::{
    CategoryName, Correlation, Effects, Event, Failure, FailureKind, Field, FieldType, GroupName, MessageName,
    MessageType, Metadata, Role, SequentialBy, StateChange,
};
use keyrail_runtime::{Answer, Call, CallHost, InstantiateError};
use redis::aio::ConnectionManager;
use serde::{Deserialize, Serialize};

/// Where every begin and end is written.
pub const LOG: &str = "test:log";
/// Where overlaps are written.
pub const OVERLAPS: &str = "test:overlaps";

/// What a handler is told to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Work {
    /// The key.
    pub client_id: String,
    /// The place in the order of publishing.
    pub n: u64,
    /// How long to work.
    #[serde(default)]
    pub work_ms: u64,
    /// How it ends.
    #[serde(default)]
    pub mode: String,
}

impl Work {
    /// One that is done at once.
    pub fn new(client_id: &str, n: u64) -> Self {
        Self { client_id: client_id.into(), n, work_ms: 0, mode: "ok".into() }
    }

    /// One that takes a while.
    pub fn taking(self, work_ms: u64) -> Self {
        Self { work_ms, ..self }
    }

    /// One that ends otherwise.
    pub fn ending(self, mode: &str) -> Self {
        Self { mode: mode.into(), ..self }
    }

    /// As a line for `keyrail publish`.
    pub fn line(&self, category: &str) -> String {
        let data = serde_json::to_string(self).unwrap();
        let Self { client_id, n, .. } = self;
        format!(r#"{{"id":"{category}-{client_id}-{n}","category":"{category}","type":"Work","data":{data}}}"#) + "\n"
    }
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// `begin` or `end`.
    pub what: String,
    /// The process.
    pub host: u32,
    /// The handler.
    pub group: String,
    /// The category of the event.
    pub category: String,
    /// The key.
    pub key: String,
    /// Which event.
    pub n: u64,
    /// Under which generation.
    pub generation: u64,
    /// Which try.
    pub attempt: u32,
    /// When, by the machine's clock (`CLOCK_BOOTTIME`): to be compared within one run.
    pub at_ms: u64,
}

fn message(category: &str) -> MessageType {
    let field = |name: &str, kind, required| Field { name: name.into(), kind, required };
    MessageType {
        category: CategoryName::parse(category).unwrap(),
        name: MessageName::parse("Work").unwrap(),
        version: 1,
        fields: vec![
            field("client_id", FieldType::Text, true),
            field("n", FieldType::Integer, true),
            field("work_ms", FieldType::Integer, false),
            field("mode", FieldType::Text, false),
        ],
    }
}

/// What a handler of this name declares: `ledger` (events of `order` by client), `saga` (a process manager over `order` and
/// `payment`), `teller` (commands of `transfer` by client), `meter` (`metrics`, which is not partitioned).
pub fn metadata(name: &str) -> Metadata {
    let by_client = SequentialBy::Field("client_id".into());
    let (role, categories, sequential_by): (_, &[&str], _) = match name {
        "ledger" => (Role::EventHandler, &["order"], by_client),
        "teller" => (Role::CommandHandler, &["transfer"], by_client),
        "meter" => (Role::EventHandler, &["metrics"], SequentialBy::Unordered),
        "saga" => {
            let correlation = |category: &&str| Correlation {
                category: CategoryName::parse(category).unwrap(),
                message: MessageName::parse("Work").unwrap(),
                field: "client_id".into(),
            };
            let categories = ["order", "payment"];
            let by = SequentialBy::Correlation(categories.iter().map(correlation).collect());
            (Role::ProcessManager, &["order", "payment"], by)
        }
        other => panic!("no native handler {other}"),
    };
    Metadata {
        name: GroupName::parse(name).unwrap(),
        version: "1".into(),
        role,
        handles: categories.iter().map(|category| message(category)).collect(),
        sequential_by,
        options: vec![],
    }
}

/// A handler that leaves marks.
pub struct Marking {
    metadata: Metadata,
    redis: ConnectionManager,
}

impl Marking {
    /// The handler of this name, which marks over this connection.
    pub fn handler(name: &str, redis: ConnectionManager) -> Arc<dyn Handler> {
        Arc::new(Self { metadata: metadata(name), redis })
    }
}

#[async_trait]
impl Handler for Marking {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    async fn instantiate(&self, _: &str) -> Result<Box<dyn HandlerInstance>, InstantiateError> {
        Ok(Box::new(MarkingInstance { metadata: self.metadata.clone(), redis: self.redis.clone() }))
    }
}

struct MarkingInstance {
    metadata: Metadata,
    redis: ConnectionManager,
}

impl MarkingInstance {
    async fn tell(&mut self, what: &str, call: &Call<'_>, work: &Work) {
        let line = Line {
            what: what.into(),
            host: std::process::id(),
            group: self.metadata.name.to_string(),
            category: call.event.category.to_string(),
            key: work.client_id.clone(),
            n: work.n,
            generation: call.generation.0,
            attempt: call.attempt,
            at_ms: keyrail::clock::now_ms(),
        };
        let line = serde_json::to_string(&line).unwrap();
        let _: u64 = redis::cmd("RPUSH").arg(LOG).arg(line).query_async(&mut self.redis).await.unwrap();
    }

    /// Puts the mark, and tells if another event's is there.
    async fn mark(&mut self, event: &Event, name: &str) {
        let before: Option<String> =
            redis::cmd("SET").arg(name).arg(&*event.id).arg("GET").query_async(&mut self.redis).await.unwrap();
        if let Some(before) = before.filter(|before| *before != *event.id) {
            let line = format!("{name}: {} began while {before} was in progress", event.id);
            let _: u64 = redis::cmd("RPUSH").arg(OVERLAPS).arg(line).query_async(&mut self.redis).await.unwrap();
        }
    }

    /// Whether an event of a mode that goes wrong once comes for the first time.
    async fn is_first_time(&mut self, mode: &str, event: &Event) -> bool {
        if !matches!(mode, "hang-once" | "panic-once") {
            return false;
        }
        let name = format!("test:went-wrong:{}", event.id);
        let set: u64 = redis::cmd("SETNX").arg(name).arg(1).query_async(&mut self.redis).await.unwrap();
        set == 1
    }

    /// Takes the mark away, if it is still this event's.
    async fn unmark(&mut self, event: &Event, name: &str) {
        let script = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 0";
        let done: Result<i64, _> =
            redis::cmd("EVAL").arg(script).arg(1).arg(name).arg(&*event.id).query_async(&mut self.redis).await;
        done.unwrap();
    }
}

#[async_trait]
impl HandlerInstance for MarkingInstance {
    async fn call(&mut self, call: &Call<'_>, mut host: Box<dyn CallHost>) -> Answer {
        let work: Work = serde_json::from_slice(&call.event.data).unwrap();
        let ordered = self.metadata.sequential_by != SequentialBy::Unordered;
        let mark = format!("test:mark:{}:{}", self.metadata.name, work.client_id);
        if ordered {
            self.mark(call.event, &mark).await;
        }
        self.tell("begin", call, &work).await;
        tokio::time::sleep(std::time::Duration::from_millis(work.work_ms)).await;
        if self.is_first_time(&work.mode, call.event).await {
            match work.mode.as_str() {
                "hang-once" => std::future::pending().await,
                _ => panic!("asked to panic"),
            }
        }
        let mut effects = Effects::default();
        if ordered {
            let seen = match host.state("seen").await {
                Ok(seen) => seen,
                Err(why) => return Answer::Deferred(why),
            };
            let mut seen: Vec<String> = seen.map_or(vec![], |bytes| serde_json::from_slice(&bytes).unwrap());
            seen.push(format!("{}-{}", call.event.category, work.n));
            let value = Some(Bytes::from(serde_json::to_vec(&seen).unwrap()));
            effects.state.push(StateChange { name: "seen".into(), value });
        }
        self.tell("end", call, &work).await;
        if ordered {
            self.unmark(call.event, &mark).await;
        }
        let failed = |error: &str| Answer::Failed(Failure { kind: FailureKind::Trap, error: error.into() });
        match work.mode.as_str() {
            "poison" => failed("asked to be poison"),
            "flaky" if call.attempt < 3 => failed("asked to be flaky"),
            _ => Answer::Done(effects),
        }
    }

    fn is_spent(&self) -> bool {
        false
    }
}
