//! The one trait of a handler.

use crate::{Context, Metadata, Result};

/// A handler: what it declares, and what it does with an event.
///
/// `#[handler]` on an `impl` block writes this from the block's methods. Write it by hand to take every event in one
/// place; [`Context::parse`] reads the event then.
///
/// `handle` takes `&self`: an instance serves one key for a while and is dropped without notice, so what must last
/// belongs into state.
pub trait Handler {
    /// What the handler declares. Called at load; it must not depend on anything.
    fn metadata() -> Metadata;

    /// Handles one event. Only `Ok` keeps its state writes and emits.
    fn handle(&self, ctx: &mut Context) -> Result<()>;
}
