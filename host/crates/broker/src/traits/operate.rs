//! What operators do. Every action names what it expects, is one atomic step, and is on record with who and why.
//!
//! An action on a partition takes it away from whoever owns it, so that none runs beside an event of the partition: the
//! event that was running is fenced, and run again by the next owner unless the action settled it.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use keyrail_ordering::{
    AttemptsRecord, CategoryName, Entry, EntryId, EntryRef, GroupName, HaltRecord, Key, OwnerId, PartitionId,
    PartitionSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, ReadySource};

/// Of an event that was redriven: the group it is meant for. The others settle it without a call.
pub const REDRIVEN_FOR: &str = "keyrail-redriven-for";

/// Who does something, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct By {
    /// Free text: a name, an address.
    pub who: String,
    /// Free text.
    pub reason: String,
}

/// The oldest unsettled entry of a partition, with everything that is known of it.
#[derive(Debug, Clone)]
pub struct Head {
    /// The entry; its content may be missing or undecodable.
    pub entry: Arc<Entry>,
    /// Its failed tries, if there were any and it is not halted yet.
    pub attempts: Option<AttemptsRecord>,
    /// Why the partition stands still on it, if it does.
    pub halted: Option<HaltRecord>,
    /// Who holds the partition now.
    pub owner: Option<OwnerId>,
    /// Entries that wait, this one included.
    pub waiting: u64,
    /// Whether the partition is paused.
    pub paused: bool,
}

/// What to do with a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeadAction {
    /// Try it again at once, with all its tries.
    Retry,
    /// Settle it without its effects.
    Skip,
    /// Settle it without its effects, and keep it with the key's dead letters.
    SetAside,
}

/// Why an action was not taken.
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    /// The entry is not the head any more. Nothing was changed.
    #[error("{named} is not the head{}", .head.as_ref().map(|head| format!("; the head is {head}")).unwrap_or_default())]
    NotHead {
        /// The entry that was named.
        named: EntryRef,
        /// The head, if there is one.
        head: Option<EntryRef>,
    },
    /// No such dead letter. Nothing was changed.
    #[error("there is no dead letter {id} in {place}")]
    NoDeadLetter {
        /// The category, with the key if it has one.
        place: String,
        /// The id that was named.
        id: EntryId,
    },
    /// Any other.
    #[error(transparent)]
    Broker(#[from] Error),
}

/// An event that was set aside: one of a key's dead letters, or of a category that is not partitioned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// Its id among the dead letters of this category and key.
    pub id: EntryId,
    /// The category.
    pub category: CategoryName,
    /// The key; none in a category that is not partitioned.
    pub key: Option<Key>,
    /// The group that did not handle it.
    pub group: GroupName,
    /// Where it stood.
    pub origin: EntryRef,
    /// The event's id; empty if the entry could not be read.
    pub event_id: String,
    /// The message type; empty likewise.
    pub name: String,
    /// The version of the message type; 0 likewise.
    pub version: u32,
    /// Free headers.
    pub headers: Vec<(String, String)>,
    /// The event's data, or what there was of it.
    pub data: Bytes,
    /// Failed tries.
    pub attempts: u32,
    /// What the last one said.
    pub error: String,
    /// Who set it aside, and why; the host itself in a category that is not partitioned.
    pub by: By,
    /// When, in milliseconds since 1970 by the broker's clock.
    pub at_ms: u64,
}

/// What was paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Paused {
    /// The category.
    pub category: CategoryName,
    /// The key; none for the whole category.
    pub key: Option<Key>,
    /// Who, and why.
    pub by: By,
    /// When, in milliseconds since 1970 by the broker's clock.
    pub at_ms: u64,
}

/// One action on record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRow {
    /// When, in milliseconds since 1970 by the broker's clock.
    pub at_ms: u64,
    /// What: `retry`, `skip`, `set-aside`, `redrive`, `purge`, `pause`, `resume`, `deploy`, `promote`, …
    pub action: String,
    /// On what: a partition, a category, a dead letter.
    pub target: String,
    /// The entry that it named; empty for none.
    pub entry: String,
    /// Who, and why.
    pub by: By,
}

/// A page of rows, and where to go on.
pub type Rows<T> = Result<(Vec<T>, Option<u64>), Error>;

/// What operators do and look at. Pages: `cursor` 0 is the start; the answer's cursor is none at the end.
#[async_trait]
pub trait Operate: Send + Sync {
    /// The head; none if everything is settled. Changes nothing.
    async fn head(&self, partition: &PartitionSpec) -> Result<Option<Head>, Error>;

    /// Does this with the head, if it still is the head: lease, attempts and halt record go, the partition is ready again
    /// with a full budget, a bell rings.
    async fn act_on_head(
        &self,
        partition: &PartitionSpec,
        head: &EntryRef,
        action: HeadAction,
        by: &By,
    ) -> Result<(), OperateError>;

    /// Partitions of this source that stand still, in no promised order.
    async fn halted(&self, source: &ReadySource, cursor: u64, limit: usize) -> Rows<(PartitionId, HaltRecord)>;

    /// Lets nobody take partitions of this category, or of one key of it, until it is resumed; a process manager's that
    /// read from it neither. Takes them away from their owners: once this has answered, nothing of them commits. False if
    /// it was paused already.
    async fn pause(&self, category: &CategoryName, key: Option<&Key>, by: &By) -> Result<bool, Error>;

    /// Ends a pause of exactly this. False if it was not paused.
    async fn resume(&self, category: &CategoryName, key: Option<&Key>, by: &By) -> Result<bool, Error>;

    /// What is paused in a category.
    async fn paused(&self, category: &CategoryName) -> Result<Vec<Paused>, Error>;

    /// Dead letters of a category, or of one key of it, oldest first within a key.
    async fn dead_letters(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        cursor: u64,
        limit: usize,
    ) -> Rows<DeadLetter>;

    /// One dead letter of a key, or of a category without keys.
    async fn dead_letter(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
    ) -> Result<Option<DeadLetter>, Error>;

    /// Publishes a dead letter again at the end of its stream, for the group that did not handle it alone (see
    /// [`REDRIVEN_FOR`]), and drops it from the dead letters. Answers with its new entry.
    async fn redrive(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        id: EntryId,
        by: &By,
    ) -> Result<EntryId, OperateError>;

    /// Drops one dead letter for good.
    async fn purge(&self, category: &CategoryName, key: Option<&Key>, id: EntryId, by: &By)
    -> Result<(), OperateError>;

    /// Puts an action on record that changed something elsewhere, in the catalog.
    async fn record(&self, action: &str, target: &str, by: &By) -> Result<(), Error>;

    /// The last actions, newest first. At least the last 10,000 are kept.
    async fn audit(&self, cursor: u64, limit: usize) -> Rows<AuditRow>;
}
