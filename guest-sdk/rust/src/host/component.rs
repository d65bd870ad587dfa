//! The component's side of the WIT world: imports, exports, and the conversions between its types and ours.
//!
//! The only module with generated code, and with `unsafe`.

use crate::error::Disposition;
use crate::event::FieldType;
use crate::host::Refusal;
use crate::log::Level;
use crate::{Context, Handler, Incoming, Metadata, Outgoing, Role, SequentialBy};

/// Bindings of the world `keyrail:handler/handler`.
#[allow(unsafe_code, reason = "the canonical ABI passes raw pointers; wit-bindgen writes this module")]
#[allow(missing_docs, unreachable_pub, clippy::pedantic, reason = "generated")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "wit",
        world: "handler",
        pub_export_macro: true,
        export_macro_name: "export_component",
    });
}

use bindings::exports::keyrail::handler::guest as wit;
use bindings::keyrail::handler::{logging, outbox, state, types};

/// The imports. They belong to the event that the host is waiting for.
pub(crate) struct Host;

#[allow(clippy::unused_self, reason = "the same methods as the recorder's")]
impl Host {
    pub(crate) fn get(&self, name: &str) -> Option<Vec<u8>> {
        state::get(name)
    }

    pub(crate) fn put(&mut self, name: &str, value: &[u8]) -> Result<(), Refusal> {
        state::put(name, value).map_err(of_state)
    }

    pub(crate) fn remove(&mut self, name: &str) -> Result<(), Refusal> {
        state::remove(name).map_err(of_state)
    }

    pub(crate) fn emit(&mut self, message: &Outgoing<'_>) -> Result<String, Refusal> {
        outbox::emit(&outbox::Outgoing {
            category: message.category.into(),
            name: message.name.into(),
            version: message.version,
            headers: message.headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            data: message.data.into(),
        })
        .map_err(|error| match error {
            outbox::EmitError::UnknownCategory(why) | outbox::EmitError::UnknownMessage(why) => Refusal::Unknown(why),
            outbox::EmitError::InvalidKey(why) | outbox::EmitError::InvalidData(why) => Refusal::Invalid(why),
            outbox::EmitError::TooLarge(limit) => Refusal::TooLarge(limit),
            outbox::EmitError::Other(why) => Refusal::Other(why),
        })
    }
}

pub(crate) fn log(level: Level, context: &str, message: &str) {
    let level = match level {
        Level::Trace => logging::Level::Trace,
        Level::Debug => logging::Level::Debug,
        Level::Info => logging::Level::Info,
        Level::Warn => logging::Level::Warn,
        Level::Error => logging::Level::Error,
        Level::Critical => logging::Level::Critical,
    };
    logging::log(level, context, message);
}

/// What `export!` answers to `describe`.
pub fn describe<H: Handler>() -> wit::Metadata {
    metadata(&H::metadata())
}

/// What `export!` does with an event.
pub fn handle<H: Handler>(handler: &H, event: wit::Event) -> wit::Disposition {
    match handler.handle(&mut Context::new(incoming(event), Host)).into() {
        Disposition::Done => wit::Disposition::Done,
        Disposition::Retry { reason, after_ms } => wit::Disposition::Retry(types::Retry { reason, after_ms }),
        Disposition::Reject(reason) => wit::Disposition::Reject(reason),
    }
}

fn of_state(error: state::StateError) -> Refusal {
    match error {
        state::StateError::InvalidName(why) => Refusal::Invalid(why),
        state::StateError::TooLarge(limit) => Refusal::TooLarge(limit),
        state::StateError::Other(why) => Refusal::Other(why),
    }
}

fn incoming(event: wit::Event) -> Incoming {
    Incoming {
        id: event.id,
        category: event.category,
        name: event.name,
        version: event.version,
        key: event.key,
        epoch: event.epoch,
        sequence: event.sequence,
        generation: event.generation,
        attempt: event.attempt,
        recorded_at_ms: event.recorded_at,
        headers: event.headers,
        data: event.data,
    }
}

fn metadata(declared: &Metadata) -> wit::Metadata {
    let handles = declared.handles.iter().map(|message| types::MessageType {
        category: message.category.into(),
        name: message.name.into(),
        version: message.version,
        fields: message.fields.iter().map(field).collect(),
    });
    wit::Metadata {
        name: declared.name.into(),
        version: declared.version.into(),
        role: match declared.role {
            Role::EventHandler => types::Role::EventHandler,
            Role::CommandHandler => types::Role::CommandHandler,
            Role::ProcessManager => types::Role::ProcessManager,
        },
        handles: handles.collect(),
        sequential_by: sequential_by(&declared.sequential_by),
        options: declared.options.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
    }
}

fn field(field: &crate::Field) -> types::Field {
    let kind = match field.kind {
        FieldType::Text => types::FieldType::Text,
        FieldType::Integer => types::FieldType::Integer,
        FieldType::Number => types::FieldType::Number,
        FieldType::Boolean => types::FieldType::Boolean,
        FieldType::Timestamp => types::FieldType::Timestamp,
        FieldType::List => types::FieldType::List,
        FieldType::Object => types::FieldType::Object,
        FieldType::Binary => types::FieldType::Binary,
    };
    types::Field { name: field.name.into(), kind, required: field.required }
}

fn sequential_by(declared: &SequentialBy) -> types::SequentialBy {
    match declared {
        SequentialBy::Unordered => types::SequentialBy::Unordered,
        SequentialBy::Field(field) => types::SequentialBy::Field((*field).into()),
        SequentialBy::Correlation(list) => {
            let list = list.iter().map(|correlation| types::Correlation {
                category: correlation.category.into(),
                message: correlation.message.into(),
                field: correlation.field.into(),
            });
            types::SequentialBy::Correlation(list.collect())
        }
    }
}
