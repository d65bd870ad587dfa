//! One input line as an event: `{"category":…,"type":…,"data":{…}}` with optional `id`, `headers`, `version`, `lane`.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use keyrail_broker::Publication;
use keyrail_ordering::{Catalog, CategoryName, Event, EventError, Lane};
use schemars::JsonSchema;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::ids;
use super::lines::{LineText, RawLine};

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

/// A lane as it is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LaneName {
    /// The ordinary one.
    #[default]
    Primary,
    /// Served only while the primary lane of the key is empty.
    Backfill,
}

impl LaneName {
    /// The name as text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Backfill => "backfill",
        }
    }
}

impl From<Lane> for LaneName {
    fn from(lane: Lane) -> Self {
        match lane {
            Lane::Primary => Self::Primary,
            Lane::Backfill => Self::Backfill,
        }
    }
}

impl From<LaneName> for Lane {
    fn from(name: LaneName) -> Self {
        match name {
            LaneName::Primary => Self::Primary,
            LaneName::Backfill => Self::Backfill,
        }
    }
}

/// Why a line is bad.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LineError {
    /// Over the limit.
    #[error("the line has {bytes} bytes; at most {max} are allowed (publish.line_max_bytes)")]
    TooLong {
        /// Its size.
        bytes: u64,
        /// The limit.
        max: usize,
    },
    /// Not a JSON object of the form.
    #[error("not an event: {0}")]
    Form(String),
    /// The id.
    #[error("the id {0}")]
    Id(String),
    /// A header.
    #[error("the header {0:?} begins with \"keyrail-\", which is the host's")]
    HostHeader(String),
    /// The data.
    #[error("the data has {bytes} bytes; at most {max} are allowed (publish.payload_max_bytes)")]
    PayloadTooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// A lane that its category has not.
    #[error("{0} is not partitioned, so it has no backfill lane; leave the lane out")]
    NoBackfill(CategoryName),
    /// The catalog does not accept it.
    #[error(transparent)]
    Event(#[from] EventError),
}

impl LineError {
    /// Whether a catalog that is newer could accept the line.
    pub(super) fn may_be_an_old_catalog(&self) -> bool {
        matches!(
            self,
            Self::Event(
                EventError::UnknownCategory { .. }
                    | EventError::UnknownMessage { .. }
                    | EventError::UnknownVersion { .. }
            )
        )
    }
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form<'a> {
    #[serde(borrow)]
    category: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    name: Cow<'a, str>,
    #[serde(borrow)]
    data: &'a RawValue,
    id: Option<String>,
    headers: Option<Headers>,
    version: Option<u32>,
    lane: Option<LaneName>,
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

/// An object of texts, in its order.
struct Headers(Vec<(String, String)>);

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
        let form: Form<'_> = serde_json::from_slice(text).map_err(|error| LineError::Form(on_one_line(&error)))?;
        let parts = EventParts {
            category: form.category.into_owned(),
            name: form.name.into_owned(),
            version: form.version,
            id: form.id,
            lane: form.lane,
            headers: form.headers.map(|headers| headers.0).unwrap_or_default(),
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

/// The parser counts lines of its own: ours is known, so only the column is kept.
fn on_one_line(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at column ")
}

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Headers;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("headers as an object of texts")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
                let mut headers = vec![];
                while let Some(header) = map.next_entry()? {
                    headers.push(header);
                }
                Ok(Headers(headers))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use bytes::Bytes;
    use keyrail_ordering::{
        Capabilities, Field, FieldType, GroupName, MessageName, MessageType, Metadata, Role, SequentialBy,
    };

    pub(in crate::service) const LIMITS: LineLimits =
        LineLimits { payload_max_bytes: 400, line_max_bytes: 1_000, dedupe_window_ms: 60_000, lane: LaneName::Primary };

    pub(in crate::service) fn metadata(key_field: &str) -> Metadata {
        let field = |name: &str, required| Field { name: name.into(), kind: FieldType::Text, required };
        Metadata {
            name: GroupName::parse("billing").unwrap(),
            version: "1".into(),
            role: Role::EventHandler,
            handles: vec![MessageType {
                category: CategoryName::parse("order").unwrap(),
                name: MessageName::parse("OrderPlaced").unwrap(),
                version: 1,
                fields: vec![field("client", true), field("note", false)],
            }],
            sequential_by: SequentialBy::Field(key_field.into()),
            options: vec![],
        }
    }

    pub(crate) fn catalog() -> Catalog {
        let capabilities = Capabilities { stream_partitioning: true };
        Catalog::default().register(&metadata("client"), "00", capabilities).unwrap()
    }

    fn read(text: &str) -> Result<Draft, String> {
        let line = RawLine { number: 1, text: LineText::Whole(Bytes::from(text.to_string())) };
        Draft::read(&line, &catalog(), &LIMITS).map_err(|error| error.to_string())
    }

    #[test]
    fn a_good_line_is_an_event() {
        let text = r#"{"id":"e1","category":"order","type":"OrderPlaced","data":{ "client":"k1" },"headers":{"b":"2","a":"1"}}"#;
        let Draft { publication, .. } = read(text).unwrap();
        let event = publication.event;
        assert_eq!((&*event.id, event.key.unwrap().as_str()), ("e1", "k1"));
        assert_eq!(&event.data[..], br#"{ "client":"k1" }"#);
        assert_eq!(event.headers, [("b".into(), "2".into()), ("a".into(), "1".into())]);
        assert_eq!((event.version, publication.key_field.as_deref()), (1, Some("client")));
        let marked = format!("\u{feff}{text}\r");
        assert!(read(&marked).is_ok());
    }

    #[test]
    fn a_line_may_name_its_lane_and_else_has_that_of_the_run() {
        let line = |lane: &str| RawLine {
            number: 1,
            text: LineText::Whole(Bytes::from(format!(
                r#"{{"category":"order","type":"OrderPlaced","data":{{"client":"k1"}}{lane}}}"#
            ))),
        };
        let backfill = LineLimits { lane: LaneName::Backfill, ..LIMITS };
        let lane = |text: &str, limits: &LineLimits| {
            Draft::read(&line(text), &catalog(), limits).map(|draft| draft.publication.lane).map_err(|e| e.to_string())
        };
        assert_eq!(lane("", &LIMITS), Ok(Lane::Primary));
        assert_eq!(lane("", &backfill), Ok(Lane::Backfill));
        assert_eq!(lane(r#","lane":"backfill""#, &LIMITS), Ok(Lane::Backfill));
        assert_eq!(lane(r#","lane":"primary""#, &backfill), Ok(Lane::Primary));
        assert!(lane(r#","lane":"fast""#, &LIMITS).unwrap_err().contains("`primary` or `backfill`"));
        let mut shared = metadata("client");
        shared.sequential_by = SequentialBy::Unordered;
        let shared = Catalog::default().register(&shared, "00", Capabilities { stream_partitioning: true }).unwrap();
        assert!(matches!(Draft::read(&line(""), &shared, &backfill), Err(LineError::NoBackfill(_))));
        assert!(Draft::read(&line(""), &shared, &LIMITS).is_ok());
    }

    #[test]
    fn an_event_without_id_gets_one() {
        let text = r#"{"category":"order","type":"OrderPlaced","data":{"client":"k1"}}"#;
        assert_ne!(read(text).unwrap().publication.event.id, read(text).unwrap().publication.event.id);
    }

    #[test]
    fn a_bad_line_says_what_is_wrong() {
        let event = |data: &str| format!(r#"{{"category":"order","type":"OrderPlaced","data":{data}}}"#);
        let long = format!(r#"{{"client":"{}"}}"#, "x".repeat(500));
        let cases = [
            ("nonsense".to_string(), "not a JSON object"),
            ("[1]".into(), "not a JSON object"),
            ("{".into(), "EOF while parsing"),
            (r#"{"category":"order","type":"OrderPlaced"}"#.into(), "missing field `data`"),
            (r#"{"category":"order","type":"OrderPlaced","data":{},"key":"k"}"#.into(), "unknown field `key`"),
            (r#"{"category":"nope","type":"OrderPlaced","data":{}}"#.into(), "unknown category \"nope\"; known: order"),
            (r#"{"category":"order","type":"Nope","data":{}}"#.into(), "unknown message type \"Nope\""),
            (
                r#"{"category":"order","type":"OrderPlaced","version":7,"data":{"client":"k"}}"#.into(),
                "unknown version 7",
            ),
            (r#"{"id":"","category":"order","type":"OrderPlaced","data":{"client":"k"}}"#.into(), "the id is empty"),
            (r#"{"id":7,"category":"order","type":"OrderPlaced","data":{"client":"k"}}"#.into(), "invalid type"),
            (
                r#"{"category":"order","type":"OrderPlaced","data":{"client":"k"},"headers":{"keyrail-x":"1"}}"#.into(),
                "the host's",
            ),
            (
                r#"{"category":"order","type":"OrderPlaced","data":{"client":"k"},"headers":[1]}"#.into(),
                "headers as an object of texts",
            ),
            (event(r#"{"client":"a:b"}"#), "contains ':'"),
            (event(r#"{"client":""}"#), "the key is empty"),
            (event(r#"{"client":null}"#), "the key is null"),
            (event("{}"), "the key is missing"),
            (event(r#"{"client":"dlq"}"#), "reserved word"),
            (event(r#"{"client":"__x__"}"#), "reserved word"),
            (event(&format!(r#"{{"client":"{}"}}"#, "x".repeat(300))), "300 bytes"),
            (event(r#"{"client":1.5}"#), "only text and integers"),
            (event("{\"client\":\"e\u{301}\"}"), "normalization form C"),
            (event(r#"{"client":"k","note":7}"#), "field \"note\" of order/OrderPlaced is not text"),
            (event("[]"), "not a JSON object"),
            (event(&long), "publish.payload_max_bytes"),
        ];
        for (text, part) in cases {
            let error = read(&text).unwrap_err();
            assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
        }
        let bytes = Bytes::from_static(b"{\"category\":\"\xff\"}");
        let line = RawLine { number: 1, text: LineText::Whole(bytes) };
        assert!(Draft::read(&line, &catalog(), &LIMITS).is_err());
        let line = RawLine { number: 1, text: LineText::TooLong { bytes: 5_000 } };
        assert!(Draft::read(&line, &catalog(), &LIMITS).unwrap_err().to_string().contains("5000 bytes"));
    }
}
