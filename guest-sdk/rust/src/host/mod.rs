//! The host behind a [`Context`](crate::Context): the component's imports on wasm32, a recorder elsewhere.
//!
//! Both have the same methods: `get`, `put`, `remove`, `emit`, and the free function `log`.

use crate::Outgoing;
use crate::error::Error;

#[cfg(target_arch = "wasm32")]
pub mod component;
#[cfg(not(target_arch = "wasm32"))]
mod recorder;

#[cfg(target_arch = "wasm32")]
pub(crate) use component::{Host, log};
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use recorder::{Host, capture, log};

/// Why the host refused a state write or an emit.
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "wasm32"), expect(dead_code, reason = "the recorder knows no catalog and no limits"))]
pub(crate) enum Refusal {
    /// The name, key or data is wrong; no later try changes that.
    Invalid(String),
    /// Above the limit, in bytes.
    TooLarge(u64),
    /// Not known to the catalog, yet.
    Unknown(String),
    /// Anything else; may pass.
    Other(String),
}

impl Refusal {
    pub(crate) fn of_state(self, name: &str) -> Error {
        self.into_error(&["state ", name].concat())
    }

    pub(crate) fn of_emit(self, message: &Outgoing<'_>) -> Error {
        self.into_error(&["emit of ", message.category, "/", message.name].concat())
    }

    fn into_error(self, what: &str) -> Error {
        match self {
            Self::Invalid(why) => Error::reject([what, " was refused: ", &why].concat()),
            Self::TooLarge(limit) => {
                Error::reject([what, " was refused: larger than ", &limit.to_string(), " bytes"].concat())
            }
            Self::Unknown(why) => Error::retry([what, " was refused: ", &why].concat()),
            Self::Other(why) => Error::retry([what, " failed: ", &why].concat()),
        }
    }
}
