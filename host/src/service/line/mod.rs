//! One input line as an event: `{"category":…,"type":…,"data":{…}}` with optional `id`, `headers`, `version`, `lane`.

mod error;
mod form;
mod lane;
#[cfg(test)]
pub(crate) mod tests;

use bytes::Bytes;
use keyrail_broker::Publication;
use keyrail_ordering::{Catalog, Event, EventError};

use super::ids;
use super::lines::{LineText, RawLine};
pub use error::LineError;
use form::Form;
pub use lane::LaneName;

const ID_MAX_BYTES: usize = 256;
/// Header names that start so are the host's.
const HOST_HEADER_PREFIX: &str = "keyrail-";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What a line may be.
#[derive(Debug, Clone, Copy)]
pub struct LineLimits {
    /// Size of the data.
    pub payload_max_bytes: usize,
    /// Size of the line.
    pub line_max_bytes: usize,
    /// How long the id is remembered; 0 for not at all.
    pub dedupe_window_ms: u64,
    /// The lane of a line that names none.
    pub lane: LaneName,
}

/// One line as an event that the catalog accepts; `fresh_id` names it if the line does not.
pub fn read_line(
    line: &RawLine,
    catalog: &Catalog,
    limits: &LineLimits,
    fresh_id: impl FnOnce() -> String,
) -> Result<Publication, LineError> {
    Draft::read_with_id(line, catalog, limits, fresh_id).map(|draft| draft.publication)
}

/// An event that was read from a line and accepted.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    /// Its line.
    pub(super) line: u64,
    /// The version that the line asks for; without one, the newest is meant.
    version: Option<u32>,
    pub(super) publication: Publication,
}

/// An event in its parts, still to be checked.
#[derive(Debug, Clone)]
pub struct EventParts {
    /// The category.
    pub category: String,
    /// The message type.
    pub name: String,
    /// Its version; the newest if there is none.
    pub version: Option<u32>,
    /// Its id; a fresh one if there is none.
    pub id: Option<String>,
    /// Its lane.
    pub lane: Option<LaneName>,
    /// Free headers, in their order.
    pub headers: Vec<(String, String)>,
    /// A JSON object in UTF-8.
    pub data: Bytes,
}

impl Draft {
    /// The event of a line.
    pub(super) fn read(line: &RawLine, catalog: &Catalog, limits: &LineLimits) -> Result<Self, LineError> {
        Self::read_with_id(line, catalog, limits, ids::fresh)
    }

    fn read_with_id(
        line: &RawLine,
        catalog: &Catalog,
        limits: &LineLimits,
        fresh_id: impl FnOnce() -> String,
    ) -> Result<Self, LineError> {
        let bytes = match &line.text {
            LineText::Whole(bytes) => bytes,
            LineText::TooLong { bytes } => {
                return Err(LineError::TooLong { bytes: *bytes, max: limits.line_max_bytes });
            }
        };
        let start = if line.number == 1 && bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let text = &bytes[start..];
        if text.trim_ascii_start().first() != Some(&b'{') {
            return Err(LineError::Form("the line is not a JSON object".into()));
        }
        let form: Form<'_> =
            serde_json::from_slice(text).map_err(|error| LineError::Form(form::on_one_line(&error)))?;
        let parts = EventParts {
            category: form.category.into_owned(),
            name: form.name.into_owned(),
            version: form.version,
            id: form.id,
            lane: form.lane,
            headers: form.headers.map(form::Headers::in_order).unwrap_or_default(),
            // `data` borrows from the line, so this shares its bytes.
            data: bytes.slice_ref(form.data.get().as_bytes()),
        };
        Self::accept(parts, line.number, catalog, limits, fresh_id)
    }

    /// The event of these parts. `line` is what it is called in reports.
    pub(super) fn accept(
        parts: EventParts,
        line: u64,
        catalog: &Catalog,
        limits: &LineLimits,
        fresh_id: impl FnOnce() -> String,
    ) -> Result<Self, LineError> {
        let EventParts { category, name, version, id, lane, headers, data } = parts;
        if data.len() > limits.payload_max_bytes {
            return Err(LineError::PayloadTooLarge { bytes: data.len(), max: limits.payload_max_bytes });
        }
        if let Some((name, _)) = headers.iter().find(|(name, _)| name.starts_with(HOST_HEADER_PREFIX)) {
            return Err(LineError::HostHeader(name.clone()));
        }
        let accepted = catalog.accept(&category, &name, version, &data)?;
        let lane = lane.unwrap_or(limits.lane);
        if lane == LaneName::Backfill && accepted.key.is_none() {
            return Err(LineError::NoBackfill(accepted.category));
        }
        let id = match id {
            Some(id) => checked(id)?,
            None => fresh_id(),
        };
        let event = Event {
            id: id.into(),
            category: accepted.category,
            name: accepted.name,
            version: accepted.version,
            key: accepted.key,
            headers,
            data,
        };
        let publication = Publication {
            event,
            key_field: accepted.key_field,
            lane: lane.into(),
            dedupe_window_ms: limits.dedupe_window_ms,
        };
        Ok(Self { line, version, publication })
    }

    /// The same event under a newer catalog: its key may come from another field.
    pub(super) fn accept_again(mut self, catalog: &Catalog) -> Result<Self, (u64, EventError)> {
        let event = &mut self.publication.event;
        let accepted = catalog
            .accept(event.category.as_str(), event.name.as_str(), self.version, &event.data)
            .map_err(|error| (self.line, error))?;
        event.version = accepted.version;
        event.key = accepted.key;
        self.publication.key_field = accepted.key_field;
        Ok(self)
    }

    /// What it counts for in the queue.
    pub(super) fn bytes(&self) -> usize {
        let headers: usize = self.publication.event.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.publication.event.data.len() + headers + size_of::<Self>()
    }
}

fn checked(id: String) -> Result<String, LineError> {
    if id.is_empty() {
        return Err(LineError::Id("is empty; leave it out, or give 1 to 256 bytes of text".into()));
    }
    if id.len() > ID_MAX_BYTES {
        return Err(LineError::Id(format!("has {} bytes; at most {ID_MAX_BYTES} are allowed", id.len())));
    }
    if id.chars().any(char::is_control) {
        return Err(LineError::Id(format!("{id:?} has control characters")));
    }
    Ok(id)
}
