//! Whether an event is a handler's business.
//!
//! A host may still serve an older version than the one that is registered, and may know an older catalog than the
//! publisher did. An event is passed over only when neither can be the reason.

use keyrail_broker::REDRIVEN_FOR;
use keyrail_ordering::{Catalog, Event, Metadata};

/// What to do with an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wants {
    /// Call the handler.
    Yes,
    /// Another handler's: settled without a call.
    No,
    /// The version that is registered takes it; the one that this host has does not. It waits for the other.
    NotYet,
    /// The catalog does not know the type: it is an old one, or the type is gone. To be asked again with a new one.
    Unknown,
    /// Its type, in a version that it does not declare. Passing over it would lose it.
    OtherVersion(String),
}

pub(super) fn wants(handler: &Metadata, catalog: &Catalog, event: &Event) -> Wants {
    if is_redriven_for_another(handler, event) {
        return Wants::No;
    }
    if declares(handler, event) {
        return Wants::Yes;
    }
    if catalog.handlers.get(&handler.name).is_some_and(|registered| declares(&registered.metadata, event)) {
        return Wants::NotYet;
    }
    let messages = catalog.categories.get(&event.category).map(|entry| &entry.messages);
    let known =
        messages.and_then(|messages| messages.get(&event.name)).is_some_and(|it| it.contains_key(&event.version));
    if known { without_catalog(handler, event) } else { Wants::Unknown }
}

/// The same where this version is the only one: nothing is waited for.
pub(crate) fn wants_alone(handler: &Metadata, event: &Event) -> Wants {
    if is_redriven_for_another(handler, event) {
        return Wants::No;
    }
    if declares(handler, event) { Wants::Yes } else { without_catalog(handler, event) }
}

fn is_redriven_for_another(handler: &Metadata, event: &Event) -> bool {
    let redriven_for = event.headers.iter().find(|(name, _)| name == REDRIVEN_FOR);
    redriven_for.is_some_and(|(_, group)| group != handler.name.as_str())
}

/// What becomes of an event that the handler as registered does not declare either.
pub(super) fn without_catalog(handler: &Metadata, event: &Event) -> Wants {
    let of_type =
        |message: &&keyrail_ordering::MessageType| message.category == event.category && message.name == event.name;
    let declared: Vec<_> = handler.handles.iter().filter(of_type).map(|message| message.version.to_string()).collect();
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

fn declares(handler: &Metadata, event: &Event) -> bool {
    handler.handles.iter().any(|message| {
        message.category == event.category && message.name == event.name && message.version == event.version
    })
}
