//! What operators do to partitions, dead letters, categories; and what they look at before.
//!
//! Owns: finding what the operator means (a category, a key, a group, an entry as it was printed) and refusing what cannot
//! be meant. What an action does is the broker's: one atomic step that names what it expects.

mod entry_name;
mod error;
pub(super) mod find;
mod head;
mod letters;
mod overview;
#[cfg(test)]
mod tests;
mod views;

pub use entry_name::EntryName;
pub use error::OperationError;
pub use views::{
    AuditView, ContentView, DeadLetterView, EventView, HaltedRow, HeadView, NextTry, PausedView, WhoAndWhy,
};

pub(super) use views::{headers, timestamp};

use keyrail_broker::By;

/// Longest reason and longest name of who.
const REASON_MAX_BYTES: usize = 1_000;
const WHO_MAX_BYTES: usize = 200;

impl WhoAndWhy {
    /// For the broker, if it says something.
    pub(super) fn checked(&self) -> Result<By, OperationError> {
        for (what, text, max) in [("reason", &self.reason, REASON_MAX_BYTES), ("name of who", &self.who, WHO_MAX_BYTES)]
        {
            let refused = |why: String| Err(OperationError::Usage(format!("the {what} {why}")));
            if text.trim().is_empty() {
                return refused("is empty; it goes on record, so say something".into());
            }
            if text.len() > max {
                return refused(format!("has {} bytes; at most {max} are allowed", text.len()));
            }
            if text.chars().any(char::is_control) {
                return refused("has control characters; give one line of text".into());
            }
        }
        Ok(By { who: self.who.trim().into(), reason: self.reason.trim().into() })
    }
}
