//! Why a line is bad.

use keyrail_ordering::{CategoryName, EventError};

/// Why a line is bad.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LineError {
    /// Over the limit.
    #[error("the line has {bytes} bytes; at most {max} are allowed (publish.line_max_bytes)")]
    TooLong {
        /// Its size.
        bytes: u64,
        /// The limit.
        max: usize,
    },
    /// Not a JSON object of the form.
    #[error("not an event: {0}")]
    Form(String),
    /// The id.
    #[error("the id {0}")]
    Id(String),
    /// A header.
    #[error("the header {0:?} begins with \"keyrail-\", which is the host's")]
    HostHeader(String),
    /// The data.
    #[error("the data has {bytes} bytes; at most {max} are allowed (publish.payload_max_bytes)")]
    PayloadTooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// A lane that its category has not.
    #[error("{0} is not partitioned, so it has no backfill lane; leave the lane out")]
    NoBackfill(CategoryName),
    /// The catalog does not accept it.
    #[error(transparent)]
    Event(#[from] EventError),
}

impl LineError {
    /// Whether a catalog that is newer could accept the line.
    pub(in crate::service) fn may_be_an_old_catalog(&self) -> bool {
        matches!(
            self,
            Self::Event(
                EventError::UnknownCategory { .. }
                    | EventError::UnknownMessage { .. }
                    | EventError::UnknownVersion { .. }
            )
        )
    }
}
