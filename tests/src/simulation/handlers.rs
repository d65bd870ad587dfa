//! The handlers of the simulated world, in Rust: what each does with an event is written on the event.
//!
//! `orders` keeps a digest and emits into `audit`; `fulfil` correlates `order` with `payment`; `auditor` reads what was
//! emitted; `metrics` works on a category without partitions.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use keyrail::engine::{Handler, HandlerInstance};
use keyrail_ordering::{
    BatchLimits, CategoryName, Correlation, Effects, Failure, FailureKind, Field, FieldType, GroupName, MessageName,
    MessageType, Metadata, Outgoing, OwnerId, PartitionId, Role, Scope, SequentialBy, StateChange,
};
use keyrail_runtime::{Answer, Call, CallHost, Emit, InstantiateError};
use serde_json::json;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::fact::{CallEnd, CallNumber, Fact, Holder, On};
use super::notebook::Notebook;
use super::plan::{Behaviour, Plan};

/// The field that partitions everything here.
pub(super) const KEY_FIELD: &str = "client";
/// Longer than any worker may stand at one step.
const HANG: Duration = Duration::from_mins(10);

/// The events of one stream that a handler has seen, in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Digest {
    pub(super) count: u64,
    chain: u64,
}

impl Digest {
    pub(super) fn add(&mut self, event_id: &str) {
        self.count += 1;
        self.chain = xxh3_64_with_seed(event_id.as_bytes(), self.chain);
    }

    pub(super) fn to_bytes(self) -> Bytes {
        [self.count.to_le_bytes(), self.chain.to_le_bytes()].concat().into()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (count, chain) = bytes.split_at_checked(8)?;
        Some(Self {
            count: u64::from_le_bytes(count.try_into().ok()?),
            chain: u64::from_le_bytes(chain.try_into().ok()?),
        })
    }
}

/// Names are written out in this file and in `plan.rs`: they are valid.
pub(super) fn category(name: &str) -> CategoryName {
    CategoryName::parse(name).unwrap()
}

pub(super) fn group(name: &str) -> GroupName {
    GroupName::parse(name).unwrap()
}

/// A group that reads a category.
pub(super) struct Reader {
    pub(super) group: GroupName,
    /// As a process manager.
    pub(super) correlates: bool,
}

/// Who reads a category.
pub(super) fn readers(of: &CategoryName) -> Vec<Reader> {
    let reading = all().into_iter().filter(|metadata| metadata.categories().contains(&of));
    reading.map(|metadata| Reader { correlates: metadata.role == Role::ProcessManager, group: metadata.name }).collect()
}

/// What the handlers declare.
pub(super) fn all() -> Vec<Metadata> {
    let field = || SequentialBy::Field(KEY_FIELD.into());
    let correlation = |of: &str, message: &str| Correlation {
        category: category(of),
        message: MessageName::parse(message).unwrap(),
        field: KEY_FIELD.into(),
    };
    let correlations = vec![correlation("order", "placed"), correlation("payment", "paid")];
    vec![
        metadata("orders", Role::EventHandler, field(), &[("order", "placed")]),
        metadata(
            "fulfil",
            Role::ProcessManager,
            SequentialBy::Correlation(correlations),
            &[("order", "placed"), ("payment", "paid")],
        ),
        metadata("auditor", Role::EventHandler, field(), &[("audit", "noted")]),
        metadata("metrics", Role::EventHandler, SequentialBy::Unordered, &[("metric", "measured")]),
    ]
}

fn metadata(name: &str, role: Role, sequential_by: SequentialBy, handles: &[(&str, &str)]) -> Metadata {
    let message = |(of, name): &(&str, &str)| MessageType {
        category: category(of),
        name: MessageName::parse(name).unwrap(),
        version: 1,
        fields: vec![Field { name: KEY_FIELD.into(), kind: FieldType::Text, required: true }],
    };
    let handles = handles.iter().map(message).collect();
    Metadata { name: group(name), version: "1".into(), role, handles, sequential_by, options: vec![] }
}

/// One handler on one host.
pub(super) struct SimHandler {
    pub(super) metadata: Metadata,
    pub(super) owner: OwnerId,
    pub(super) notebook: Arc<Notebook>,
}

#[async_trait]
impl Handler for SimHandler {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Nothing of it reaches the world before the commit.
    fn batch(&self, host: &BatchLimits) -> BatchLimits {
        *host
    }

    async fn instantiate(&self, _: &str) -> Result<Box<dyn HandlerInstance>, InstantiateError> {
        Ok(Box::new(SimInstance {
            group: self.metadata.name.clone(),
            correlates: self.metadata.role == Role::ProcessManager,
            owner: self.owner.clone(),
            notebook: self.notebook.clone(),
        }))
    }
}

struct SimInstance {
    group: GroupName,
    correlates: bool,
    owner: OwnerId,
    notebook: Arc<Notebook>,
}

/// Notes the end of a call, however it ends.
struct Running<'a> {
    call: CallNumber,
    how: CallEnd,
    notebook: &'a Notebook,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.notebook.note(Fact::CallEnded { call: self.call, how: self.how });
    }
}

#[async_trait]
impl HandlerInstance for SimInstance {
    async fn call(&mut self, call: &Call<'_>, host: Box<dyn CallHost>) -> Answer {
        let number = self.notebook.next_call();
        let (entry, event_id) = (call.entry.clone(), call.event.id.clone());
        self.notebook.note(Fact::CallBegan { call: number, on: self.on(call), entry, event_id, attempt: call.attempt });
        let mut running = Running { call: number, how: CallEnd::Cancelled, notebook: &self.notebook };
        let answer = self.handle(call, host).await;
        running.how = match &answer {
            Answer::Done(_) => CallEnd::Done,
            Answer::Failed(_) => CallEnd::Failed,
            Answer::Deferred(_) => CallEnd::Deferred,
        };
        answer
    }

    fn is_spent(&self) -> bool {
        false
    }
}

impl SimInstance {
    fn on(&self, call: &Call<'_>) -> On {
        let (group, stream) = (self.group.clone(), &call.entry.stream);
        let Some(key) = stream.key.clone() else { return On::Shared { owner: self.owner.clone(), group } };
        let partition = if self.correlates {
            PartitionId { group, scope: Scope::Correlation { value: key } }
        } else {
            PartitionId::of_key(group, stream.category.clone(), key)
        };
        On::Lease(Holder { partition, owner: self.owner.clone(), generation: call.generation })
    }

    async fn handle(&self, call: &Call<'_>, mut host: Box<dyn CallHost>) -> Answer {
        let plan = Plan::of(call.event).filter(|plan| plan.group == self.group.as_str());
        let failed = |kind| Answer::Failed(Failure { kind, error: "as planned".into() });
        match plan.map(|plan| plan.behaviour) {
            None => {}
            Some(Behaviour::Slow { ms }) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Some(Behaviour::Fail { tries }) if call.attempt <= tries => {
                let after_ms = call.attempt.is_multiple_of(2).then_some(300);
                return failed(FailureKind::Retry { after_ms });
            }
            Some(Behaviour::Reject) => return failed(FailureKind::Rejected),
            Some(Behaviour::Hang) if self.notebook.is_first_time(&call.event.id) => tokio::time::sleep(HANG).await,
            Some(Behaviour::Fail { .. } | Behaviour::Hang) => {}
        }
        match self.effects(call, host.as_mut()).await {
            Ok(effects) => Answer::Done(effects),
            Err(answer) => answer,
        }
    }

    async fn effects(&self, call: &Call<'_>, host: &mut dyn CallHost) -> Result<Effects, Answer> {
        let mut effects = Effects::default();
        if call.entry.stream.key.is_some() {
            let name = call.entry.stream.to_string();
            let before = host.state(&name).await.map_err(Answer::Deferred)?;
            let mut digest = before.and_then(|bytes| Digest::from_bytes(&bytes)).unwrap_or_default();
            digest.add(&call.event.id);
            effects.state.push(StateChange { name, value: Some(digest.to_bytes()) });
        }
        if matches!(self.group.as_str(), "orders" | "metrics") {
            effects.emits.push(emit(call, host)?);
        }
        Ok(effects)
    }
}

fn emit(call: &Call<'_>, host: &mut dyn CallHost) -> Result<Outgoing, Answer> {
    let client = call.event.key.as_ref().map_or("metrics", |key| key.as_str());
    let data = json!({ KEY_FIELD: client, "of": &*call.event.id }).to_string();
    let emit = Emit {
        category: "audit".into(),
        name: "noted".into(),
        version: 1,
        headers: vec![],
        data: data.into_bytes().into(),
    };
    host.accept(emit, 0)
        .map_err(|refusal| Answer::Failed(Failure { kind: FailureKind::Refused, error: refusal.to_string() }))
}
