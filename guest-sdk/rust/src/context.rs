//! What a handler has while it handles one event: the event, the key's state, the outbox.
//!
//! It knows nothing of where it runs: `host` is the component's imports on wasm32 and a recorder in tests.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::host::Host;
use crate::{Event, Incoming};

/// The event in hand, the state of its key, and the outbox.
pub struct Context {
    event: Incoming,
    pub(crate) host: Host,
}

/// A message to emit that has no Rust type.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// Its category.
    pub category: &'a str,
    /// The name of its type.
    pub name: &'a str,
    /// The version of its type.
    pub version: u32,
    /// Names that start with `keyrail-` are the host's.
    pub headers: &'a [(&'a str, &'a str)],
    /// A JSON object in UTF-8.
    pub data: &'a [u8],
}

impl Context {
    pub(crate) fn new(event: Incoming, host: Host) -> Self {
        Self { event, host }
    }

    /// The event as it came.
    pub fn event(&self) -> &Incoming {
        &self.event
    }

    /// The event's id: the same in every delivery, so the one to use for idempotency.
    pub fn event_id(&self) -> &str {
        &self.event.id
    }

    /// The validated key; none in a category that is not partitioned.
    pub fn key(&self) -> Option<&str> {
        self.event.key.as_deref()
    }

    /// The writer epoch. Epoch and sequence order, and only that.
    pub fn epoch(&self) -> u64 {
        self.event.epoch
    }

    /// The place in the epoch.
    pub fn sequence(&self) -> u64 {
        self.event.sequence
    }

    /// Grows each time the partition changes hands: what to fence external calls with.
    pub fn generation(&self) -> u64 {
        self.event.generation
    }

    /// 1 for the first try.
    pub fn attempt(&self) -> u32 {
        self.event.attempt
    }

    /// When the broker recorded it, in milliseconds since 1970.
    pub fn recorded_at_ms(&self) -> u64 {
        self.event.recorded_at_ms
    }

    /// The event's headers.
    pub fn headers(&self) -> &[(String, String)] {
        &self.event.headers
    }

    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.event.header(name)
    }

    /// Reads the event's data. Data that does not parse is rejected: no later try can read it.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.event.data).map_err(|error| {
            let mut reason = self.event_type();
            reason.push_str(" does not parse: ");
            reason.push_str(&error.to_string());
            Error::reject(reason)
        })
    }

    /// The rejection of an event that no method handles.
    pub fn unhandled(&self) -> Error {
        let mut reason = self.event_type();
        reason.push_str(" is not handled by this handler");
        Error::reject(reason)
    }

    fn event_type(&self) -> String {
        let version = self.event.version.to_string();
        [&self.event.category, "/", &self.event.name, " version ", &version].concat()
    }

    /// A value of this key's state; none if it was never written. Sees the call's own writes.
    pub fn state<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let Some(bytes) = self.state_bytes(name) else { return Ok(None) };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| Error::reject(["state ", name, " does not parse: ", &error.to_string()].concat()))
    }

    /// Writes a value as JSON. Names are 1 to 128 bytes of `[A-Za-z0-9_.:-]`.
    pub fn put_state<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<()> {
        let bytes = serde_json::to_vec(value).map_err(|error| unserialisable("state", name, &error))?;
        self.put_state_bytes(name, bytes)
    }

    /// Removes a value; no error if there is none.
    pub fn remove_state(&mut self, name: &str) -> Result<()> {
        self.host.remove(name).map_err(|refusal| refusal.of_state(name))
    }

    /// A value's bytes.
    pub fn state_bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.host.get(name)
    }

    /// Writes bytes that need not be JSON.
    pub fn put_state_bytes(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<()> {
        self.host.put(name, value.as_ref()).map_err(|refusal| refusal.of_state(name))
    }

    /// Emits an event: recorded in the same step as this event's acknowledgement, published after it, in order. Answers
    /// with its id, which is the same in every try.
    ///
    /// A refused emit fails this event, even if the error is swallowed.
    pub fn emit<E: Event + Serialize>(&mut self, event: &E) -> Result<String> {
        self.emit_with_headers(event, &[])
    }

    /// [`Self::emit`] with headers.
    pub fn emit_with_headers<E: Event + Serialize>(&mut self, event: &E, headers: &[(&str, &str)]) -> Result<String> {
        let data = serde_json::to_vec(event).map_err(|error| unserialisable("event", E::NAME, &error))?;
        self.emit_raw(Outgoing { category: E::CATEGORY, name: E::NAME, version: E::VERSION, headers, data: &data })
    }

    /// [`Self::emit`] for a message that has no Rust type.
    pub fn emit_raw(&mut self, message: Outgoing<'_>) -> Result<String> {
        self.host.emit(&message).map_err(|refusal| refusal.of_emit(&message))
    }
}

/// A value that serde cannot write as JSON: the next try would not either.
fn unserialisable(what: &str, name: &str, error: &serde_json::Error) -> Error {
    Error::reject([what, " ", name, " cannot be written as JSON: ", &error.to_string()].concat())
}
