//! Whether an event is a handler's business.

use keyrail_broker::REDRIVEN_FOR;
use keyrail_ordering::{Event, Metadata};

/// What to do with an event.
pub(crate) enum Wants {
    /// Call the handler.
    Yes,
    /// Another handler's: settled without a call.
    No,
    /// Its type, in a version that it does not declare. Passing over it would lose it.
    OtherVersion(String),
}

pub(crate) fn wants(handler: &Metadata, event: &Event) -> Wants {
    let redriven_for = event.headers.iter().find(|(name, _)| name == REDRIVEN_FOR);
    if redriven_for.is_some_and(|(_, group)| group != handler.name.as_str()) {
        return Wants::No;
    }
    let mut declared = vec![];
    for message in &handler.handles {
        if message.category == event.category && message.name == event.name {
            if message.version == event.version {
                return Wants::Yes;
            }
            declared.push(message.version.to_string());
        }
    }
    if declared.is_empty() {
        return Wants::No;
    }
    Wants::OtherVersion(format!(
        "the event is version {} of {}/{}; handler {} declares {}",
        event.version,
        event.category,
        event.name,
        handler.name,
        declared.join(", ")
    ))
}
