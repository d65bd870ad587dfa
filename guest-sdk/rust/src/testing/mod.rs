//! Handlers tested natively, in an ordinary `#[test]`: no wasm, no host, no broker.
//!
//! [`Harness`] is the inline broker: single-threaded, in submission order, so `sequential-by` is accepted and has
//! nothing to do. State is kept per key, and a call's effects only when it is done, as on a real host.

mod harness;
mod submission;

pub use harness::{Delivery, Harness};
pub use submission::Submission;

use crate::log::Level;

/// A line that a handler logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Its level.
    pub level: Level,
    /// What groups lines: the macros give the module's path.
    pub context: String,
    /// The line.
    pub message: String,
}

/// An event that was emitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted {
    /// Its id.
    pub id: String,
    /// Its category.
    pub category: String,
    /// The name of its type.
    pub name: String,
    /// The version of its type.
    pub version: u32,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// A JSON object in UTF-8.
    pub data: Vec<u8>,
}
