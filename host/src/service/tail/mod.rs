//! Events as they are published, for somebody who watches.
//!
//! Nothing is written for it. Bells tell which keys have work; streams of those keys are read from where this follower is. A
//! key that is busy rings no bell, so as soon as the count of published events says that some were not seen, keys that
//! have work are gone through.
//!
//! Invariants: events of a key come in their order and each once. An event that is gone before it was read (handled and
//! dropped, which takes a busy host a moment), or that the follower was too slow for, is counted as missed. A follower
//! costs bounded memory, and the broker bounded work a second.
//!
//! What it cannot see: a category that no handler reads rings no bell; its events are counted as missed.

mod follower;
mod places;
mod queue;

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use keyrail_ordering::{CategoryName, Content, Entry, Key};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::operate::{find, headers, timestamp};
use super::rows::{Values, as_json};
use super::{EntryName, OperationError, Service};
use follower::{Follower, Scope};
use queue::Receiving;

/// What is followed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Following {
    /// Only this category.
    pub category: Option<String>,
    /// Only this key of it.
    pub key: Option<String>,
    /// With headers and data.
    pub data: bool,
}

/// What a follower is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tailed {
    /// An event.
    Entry(Box<TailedEntry>),
    /// Events that were not seen.
    Missed {
        /// How many.
        count: u64,
    },
}

/// An event that was published.
#[derive(Debug, Serialize, Deserialize)]
pub struct TailedEntry {
    /// When it was recorded, by the broker's clock; none if that is not known.
    pub at: Option<String>,
    /// Its category.
    pub category: CategoryName,
    /// Its key; none in a category that is not partitioned.
    pub key: Option<Key>,
    /// Its place in its stream; `backfill/…` in the backfill lane.
    pub entry: String,
    /// The message type; empty if the entry cannot be read.
    #[serde(rename = "type")]
    pub name: String,
    /// The event's own id; empty likewise.
    pub id: String,
    /// The version of the message type.
    pub version: u32,
    /// Free headers, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Values>,
    /// Its data, if it was asked for: JSON as it is, anything else as `{"base64":…}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
    /// Why the entry cannot be read, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

impl TailedEntry {
    fn new(entry: &Entry, with_data: bool) -> Self {
        let stream = &entry.at.stream;
        let mut shown = Self {
            at: (entry.recorded_at_ms > 0).then(|| timestamp(entry.recorded_at_ms)),
            category: stream.category.clone(),
            key: stream.key.clone(),
            entry: EntryName::in_stream(stream, false, entry.at.id).to_string(),
            name: String::new(),
            id: String::new(),
            version: 0,
            headers: None,
            data: None,
            unreadable: None,
        };
        match &entry.content {
            Content::Event(event) => {
                (shown.name, shown.id) = (event.name.to_string(), event.id.to_string());
                shown.version = event.version;
                shown.headers = with_data.then(|| headers(&event.headers));
                shown.data = with_data.then(|| as_json(&event.data));
            }
            Content::Undecodable(why) => shown.unreadable = Some(why.clone()),
            Content::Missing => shown.unreadable = Some("it is gone".into()),
        }
        shown
    }
}

/// Events as they come. Ends only with the broker.
pub struct Tail {
    receiving: Receiving,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Stream for Tail {
    type Item = Tailed;
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Tailed>> {
        self.receiving.poll(context)
    }
}

impl Service {
    /// Follows what is published from now on. `queue_max_bytes` of it wait for a caller that is slow.
    pub async fn tail(&self, following: &Following, queue_max_bytes: usize) -> Result<Tail, OperationError> {
        let (catalog, _) = self.broker.catalog().await?;
        let scope = match (&following.category, &following.key) {
            (None, None) => Scope::All,
            (Some(category), None) => Scope::Category(find::category(&catalog, category)?),
            (Some(category), Some(key)) => match find::place(&catalog, category, Some(key))? {
                (category, Some(key)) => Scope::Key(category, key),
                (category, None) => Scope::Category(category),
            },
            (None, Some(_)) => {
                return Err(OperationError::Usage("a key is of a category: give that too".into()));
            }
        };
        let (queue, receiving) = queue::bounded(queue_max_bytes);
        let follower = Follower::begin(self.broker.clone(), scope, following.data, queue).await?;
        Ok(Tail { receiving, task: tokio::spawn(follower.run()) })
    }
}
