//! What a publishing request holds: bytes in one of several forms, as a list of events still to be checked.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::cloud_event;
use super::line::{EventParts, LineError};
use super::lines::{LineSplitter, LineText, RawLine};

/// The form of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// One event, or an array of them.
    Json,
    /// One event a line.
    Lines,
    /// One CloudEvent in JSON.
    CloudEvent,
    /// An array of CloudEvents in JSON.
    CloudEvents,
    /// A CloudEvent whose attributes are headers: those, without their prefix.
    Binary(Vec<(String, String)>),
}

/// An event of a request.
#[derive(Debug)]
pub enum Incoming {
    /// In our own form.
    Line(RawLine),
    /// In its parts.
    Parts(Box<EventParts>),
    /// That cannot be read.
    Bad(LineError),
}

/// Why a request holds no list of events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// It cannot be read.
    #[error("the body is not what its content type says: {0}")]
    Unreadable(String),
    /// It holds none.
    #[error("the body holds no event")]
    Empty,
    /// It holds too many.
    #[error("the body holds more than {max} events (http.events_max); send them in several requests")]
    TooMany {
        /// The limit.
        max: usize,
    },
}

/// The events of a body, in order.
pub fn events(form: &Form, body: &Bytes, events_max: usize, line_max_bytes: usize) -> Result<Vec<Incoming>, FormError> {
    let incoming = match form {
        Form::Lines => {
            let mut splitter = LineSplitter::new(1, line_max_bytes);
            let mut lines = splitter.push(body);
            lines.extend(splitter.finish());
            lines.into_iter().map(Incoming::Line).collect()
        }
        Form::Json if body.trim_ascii_start().first() == Some(&b'[') => {
            let lines = elements(body, events_max)?.into_iter().zip(1..);
            lines.map(|(text, number)| Incoming::Line(raw(text, number, line_max_bytes))).collect()
        }
        Form::Json if body.trim_ascii().is_empty() => vec![],
        Form::Json => vec![Incoming::Line(raw(body.clone(), 1, line_max_bytes))],
        Form::CloudEvent => vec![read(cloud_event::structured(body))],
        Form::CloudEvents => {
            elements(body, events_max)?.iter().map(|text| read(cloud_event::structured(text))).collect()
        }
        Form::Binary(headers) => vec![read(cloud_event::binary(headers.iter().cloned(), body.clone()))],
    };
    let incoming: Vec<Incoming> = incoming;
    match incoming.len() {
        0 => Err(FormError::Empty),
        n if n > events_max => Err(FormError::TooMany { max: events_max }),
        _ => Ok(incoming),
    }
}

/// The elements of an array, each as it stands there.
fn elements(body: &Bytes, max: usize) -> Result<Vec<Bytes>, FormError> {
    let elements: Vec<&RawValue> =
        serde_json::from_slice(body).map_err(|error| FormError::Unreadable(error.to_string()))?;
    if elements.len() > max {
        return Err(FormError::TooMany { max });
    }
    Ok(elements.iter().map(|element| body.slice_ref(element.get().as_bytes())).collect())
}

fn raw(text: Bytes, number: u64, max_bytes: usize) -> RawLine {
    let bytes = text.len();
    let text = if bytes > max_bytes { LineText::TooLong { bytes: bytes as u64 } } else { LineText::Whole(text) };
    RawLine { number, text }
}

fn read(parts: Result<EventParts, LineError>) -> Incoming {
    parts.map_or_else(Incoming::Bad, |parts| Incoming::Parts(Box::new(parts)))
}
