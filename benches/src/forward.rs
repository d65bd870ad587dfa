//! Handlers in Rust: one that hands every event on through the outbox, one that counts, one that takes its time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use keyrail::engine::{Handler, HandlerInstance};
use keyrail_ordering::{
    BatchLimits, CategoryName, Effects, Failure, FailureKind, Field, FieldType, GroupName, MessageName, MessageType,
    Metadata, Role, SequentialBy,
};
use keyrail_runtime::{Answer, Call, CallHost, Emit, InstantiateError};

/// Told of every event before it is handled: its key and its id.
pub type Seen = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// See the module.
#[derive(Clone)]
pub struct Native {
    metadata: Metadata,
    /// Into which category an event goes on.
    to: Option<&'static str>,
    work: Duration,
    seen: Option<Seen>,
}

impl Native {
    /// Handles `flight` or another category of flights by aircraft.
    pub fn new(name: &str, category: &'static str) -> Self {
        let handles = ["FlightDeparted", "FlightArrived"].map(|name| MessageType {
            category: CategoryName::parse(category).expect("a valid name"),
            name: MessageName::parse(name).expect("a valid name"),
            version: 1,
            fields: vec![Field { name: "tail_number".into(), kind: FieldType::Text, required: true }],
        });
        let metadata = Metadata {
            name: GroupName::parse(name).expect("a valid name"),
            version: "1".into(),
            role: Role::EventHandler,
            handles: handles.to_vec(),
            sequential_by: SequentialBy::Field("tail_number".into()),
            options: vec![],
        };
        Self { metadata, to: None, work: Duration::ZERO, seen: None }
    }

    /// Emits every event into another category.
    pub fn into(self, to: &'static str) -> Self {
        Self { to: Some(to), ..self }
    }

    /// Takes so long for each.
    pub fn taking(self, work: Duration) -> Self {
        Self { work, ..self }
    }

    /// Tells of each.
    pub fn telling(self, seen: Seen) -> Self {
        Self { seen: Some(seen), ..self }
    }

    /// As something to be served.
    pub fn served(self) -> Arc<dyn Handler> {
        Arc::new(self)
    }
}

#[async_trait]
impl Handler for Native {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn batch(&self, host: &BatchLimits) -> BatchLimits {
        *host
    }

    async fn instantiate(&self, _: &str) -> Result<Box<dyn HandlerInstance>, InstantiateError> {
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl HandlerInstance for Native {
    async fn call(&mut self, call: &Call<'_>, mut host: Box<dyn CallHost>) -> Answer {
        if let (Some(seen), Some(key)) = (&self.seen, &call.event.key) {
            seen(key.as_str(), &call.event.id);
        }
        if !self.work.is_zero() {
            tokio::time::sleep(self.work).await;
        }
        let Some(to) = self.to else { return Answer::Done(Effects::default()) };
        let emit = Emit {
            category: to.into(),
            name: call.event.name.as_str().into(),
            version: 1,
            headers: vec![],
            data: call.event.data.clone(),
        };
        match host.accept(emit, 0) {
            Ok(outgoing) => Answer::Done(Effects { state: vec![], emits: vec![outgoing] }),
            Err(refusal) => Answer::Failed(Failure { kind: FailureKind::Refused, error: refusal.to_string() }),
        }
    }

    fn is_spent(&self) -> bool {
        false
    }
}
