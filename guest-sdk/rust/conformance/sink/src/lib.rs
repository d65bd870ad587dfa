//! Declares the category that the conformance handlers of every language emit to, and keeps what arrives there.

use keyrail_guest::{Context, Event, Result, export, handler};
use serde::{Deserialize, Serialize};

/// What a conformance handler emits.
#[derive(Debug, Clone, Event, Serialize, Deserialize)]
#[event(category = "conformance-out")]
pub struct Echo {
    /// The key of the step that it came from.
    pub key: String,
    /// The text of that step.
    pub text: String,
    /// Which of its emits, from 0.
    pub nth: i64,
}

/// The handler.
pub struct Sink;

#[handler(name = "conformance-sink", version = "1.0.0", sequential_by = "key")]
impl Sink {
    /// State `received`: a line each, with the header that the emit carried.
    fn echo(&self, echo: Echo, ctx: &mut Context) -> Result<()> {
        let mut received = ctx.state_bytes("received").unwrap_or_default();
        let header = ctx.header("conformance").unwrap_or("no header");
        received.extend_from_slice(format!("{} {} {header}\n", echo.nth, echo.text).as_bytes());
        ctx.put_state_bytes("received", received)
    }
}

export!(Sink);
