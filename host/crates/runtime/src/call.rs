//! What a call is given and what it answers.

use async_trait::async_trait;
use bytes::Bytes;
use keyrail_ordering::{Effects, EntryRef, Event, Failure, Generation, Outgoing};

/// One event for a handler.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Where the event stands.
    pub entry: &'a EntryRef,
    /// The event.
    pub event: &'a Event,
    /// When it was recorded, in milliseconds since 1970: the time that the guest's wall clock shows.
    pub recorded_at_ms: u64,
    /// The owner's generation.
    pub generation: Generation,
    /// 1 for the first try.
    pub attempt: u32,
    /// The trace that the event is part of, for the guest's log lines.
    pub trace_id: Option<u128>,
}

/// What a call asks of the host.
#[async_trait]
pub trait CallHost: Send {
    /// The committed value of the key's state, before this call's own writes. An error is the broker's trouble: it ends the
    /// call and uses no try.
    async fn state(&mut self, name: &str) -> Result<Option<Bytes>, String>;

    /// Checks an emit and makes the event of it. `nth` counts the call's emits from 0: the same number gives the same event
    /// id in every try.
    fn accept(&mut self, emit: Emit, nth: u32) -> Result<Outgoing, EmitRefusal>;
}

/// An event as a guest emits it: nothing is checked but its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emit {
    /// The category.
    pub category: String,
    /// The message type.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// Free headers.
    pub headers: Vec<(String, String)>,
    /// Perhaps a JSON object.
    pub data: Bytes,
}

/// Why an emit was refused; the guest is told, and the event fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmitRefusal {
    /// No such category.
    #[error("{0}")]
    UnknownCategory(String),
    /// No such message type, or not in this version.
    #[error("{0}")]
    UnknownMessage(String),
    /// The key is not one.
    #[error("{0}")]
    InvalidKey(String),
    /// The data does not fit the type.
    #[error("{0}")]
    InvalidData(String),
    /// Over this limit, in bytes.
    #[error("the event has more than {0} bytes")]
    TooLarge(u64),
    /// Any other reason.
    #[error("{0}")]
    Other(String),
}

/// What a call comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Handled, with what it changes.
    Done(Effects),
    /// The try failed; nothing of it is kept.
    Failed(Failure),
    /// The host could not serve the call: no try is used.
    Deferred(String),
}
