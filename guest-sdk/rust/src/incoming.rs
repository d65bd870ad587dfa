//! One event, as the host hands it over.

use crate::Event;

/// An event with everything that the host says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The event's own id, the same in every delivery: what to use for idempotency.
    pub id: String,
    /// Its category.
    pub category: String,
    /// The name of its type.
    pub name: String,
    /// The version of its type.
    pub version: u32,
    /// The validated key, for a partitioned category.
    pub key: Option<String>,
    /// Writer epoch: with `sequence` the place in the stream. They order, and only that.
    pub epoch: u64,
    /// The place within the epoch.
    pub sequence: u64,
    /// Grows each time the partition changes hands.
    pub generation: u64,
    /// 1 for the first try.
    pub attempt: u32,
    /// Milliseconds since 1970, by the broker's clock.
    pub recorded_at_ms: u64,
    /// Names that start with `keyrail-` are the host's.
    pub headers: Vec<(String, String)>,
    /// A JSON object in UTF-8.
    pub data: Vec<u8>,
}

impl Incoming {
    /// Whether it is of the type of `E`, version included.
    pub fn is<E: Event>(&self) -> bool {
        self.name == E::NAME && self.category == E::CATEGORY && self.version == E::VERSION
    }

    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
