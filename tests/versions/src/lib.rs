//! A handler that counts, and keeps which of its versions handled what: `counter`, in the versions that the features name.

use keyrail_guest::{Context, Error, Event, Handler, Metadata, Result, export};
use serde::{Deserialize, Serialize};

/// One more.
#[derive(Debug, Clone, Event, Serialize, Deserialize)]
#[event(category = "count")]
pub struct Counted {
    /// The key.
    pub key: String,
    /// Version 3.0.0 rejects 13.
    #[serde(default)]
    pub n: u64,
}

/// From the start again.
#[derive(Debug, Clone, Event, Serialize, Deserialize)]
#[event(category = "count")]
pub struct Cleared {
    /// The key.
    pub key: String,
}

/// The handler.
pub struct Counter;

const VERSION: &str = if cfg!(feature = "broken") {
    "3.0.0"
} else if cfg!(feature = "v2") {
    "2.0.0"
} else {
    "1.0.0"
};

// By hand, because what it handles depends on its version.
impl Handler for Counter {
    fn metadata() -> Metadata {
        let metadata = Metadata::event_handler("counter", VERSION).handles::<Counted>().sequential_by("key");
        if cfg!(feature = "v2") { metadata.handles::<Cleared>() } else { metadata }
    }

    fn handle(&self, ctx: &mut Context) -> Result<()> {
        if ctx.event().name == "Cleared" {
            return ctx.put_state("count", &0_u64);
        }
        let counted: Counted = ctx.parse()?;
        if cfg!(feature = "broken") && counted.n == 13 {
            return Err(Error::reject("13 is too much for 3.0.0"));
        }
        let count: u64 = ctx.state("count")?.unwrap_or(0);
        ctx.put_state("count", &(count + 1))?;
        let mut by: Vec<String> = ctx.state("by")?.unwrap_or_default();
        by.push(VERSION.into());
        ctx.put_state("by", &by)
    }
}

export!(Counter);
