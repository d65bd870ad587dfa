//! Lines, good and bad.
#![allow(clippy::unwrap_used)]

use keyrail_ordering::{
    Capabilities, CategoryName, Field, FieldType, GroupName, Lane, MessageName, MessageType, Metadata, Role,
    SequentialBy,
};

use super::*;

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
    let text =
        r#"{"id":"e1","category":"order","type":"OrderPlaced","data":{ "client":"k1" },"headers":{"b":"2","a":"1"}}"#;
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
        (r#"{"category":"order","type":"OrderPlaced","version":7,"data":{"client":"k"}}"#.into(), "unknown version 7"),
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
