//! Stream entries and what is known of a head, as the server stores them. The bytes of an event's data are moved, never
//! copied.
//!
//! Invariant: whatever lies in a stream becomes an [`Entry`]; bytes that are no event are that entry's failure
//! ([`Content::Undecodable`]), not the connection's.

use std::sync::Arc;

use bytes::Bytes;
use keyrail_ordering::{AttemptsRecord, Content, Entry, EntryId, EntryRef, Event, MessageName, StreamId};
use redis::Value;

use super::answer::{Answer, entry_id};
use crate::Error;

/// Entries of one stream that follow an id; those up to it are left out. Sequences are contiguous, so one that is not there was deleted or trimmed by others:
/// it is named, the first of each hole. Without an id before it, or with 0-0, the first one may be any.
pub(super) fn entries_after(
    before: Option<EntryId>,
    list: Answer,
    stream: &StreamId,
) -> Result<Vec<Arc<Entry>>, Error> {
    let mut all = Vec::with_capacity(list.len());
    let mut before = before.filter(|before| *before != EntryId::new(0, 0));
    for value in list.rest() {
        let entry = entry(stream, value)?;
        let id = entry.at.id;
        if before.is_some_and(|before| id <= before) {
            continue;
        }
        if let Some(before) = before.filter(|before| !before.is_followed_by(id)) {
            let sequence = if before.epoch == id.epoch { before.sequence + 1 } else { 0 };
            let at = EntryRef { stream: stream.clone(), id: EntryId::new(id.epoch, sequence) };
            all.push(Arc::new(Entry { at, recorded_at_ms: 0, content: Content::Missing }));
        }
        before = Some(id);
        all.push(entry);
    }
    Ok(all)
}

/// How far each of a partition's streams is settled.
pub(super) fn settled(mut answer: Answer) -> Result<Vec<EntryId>, Error> {
    let mut ids = Vec::with_capacity(answer.len());
    while !answer.is_empty() {
        let id = entry_id(&answer.text()?)?;
        ids.push(id.ok_or_else(|| Error::Corrupt("a lease does not tell how far a stream is settled".into()))?);
    }
    Ok(ids)
}

/// Entries of one stream.
pub(super) fn entries_into(all: &mut Vec<Arc<Entry>>, list: Answer, stream: &StreamId) -> Result<(), Error> {
    for value in list.rest() {
        all.push(entry(stream, value)?);
    }
    Ok(())
}

/// One entry: its id and its fields.
pub(super) fn entry(stream: &StreamId, value: Value) -> Result<Arc<Entry>, Error> {
    let mut row = Answer::of(value)?;
    let id = row.text()?;
    let id = entry_id(&id)?.ok_or_else(|| Error::Corrupt("an entry has no id".into()))?;
    let (recorded_at_ms, content) = match row.value()? {
        Value::Array(fields) if !fields.is_empty() => content(stream, fields),
        _ => (0, Content::Missing),
    };
    Ok(Arc::new(Entry { at: EntryRef { stream: stream.clone(), id }, recorded_at_ms, content }))
}

#[derive(Default)]
struct Fields {
    id: Option<Vec<u8>>,
    name: Option<Vec<u8>>,
    version: Option<Vec<u8>>,
    at: Option<Vec<u8>>,
    headers: Option<Vec<u8>>,
    data: Option<Vec<u8>>,
}

fn content(stream: &StreamId, values: Vec<Value>) -> (u64, Content) {
    let mut fields = Fields::default();
    let mut values = values.into_iter();
    while let (Some(Value::BulkString(name)), Some(Value::BulkString(value))) = (values.next(), values.next()) {
        let field = match name.as_slice() {
            b"id" => &mut fields.id,
            b"type" => &mut fields.name,
            b"version" => &mut fields.version,
            b"at" => &mut fields.at,
            b"headers" => &mut fields.headers,
            b"data" => &mut fields.data,
            // Later releases and others may add fields.
            _ => continue,
        };
        *field = Some(value);
    }
    let recorded_at_ms = fields.at.as_deref().and_then(as_number).unwrap_or(0);
    match event(stream, fields) {
        Ok(event) => (recorded_at_ms, Content::Event(event)),
        Err(why) => (recorded_at_ms, Content::Undecodable(why)),
    }
}

fn event(stream: &StreamId, fields: Fields) -> Result<Event, String> {
    let id = required(fields.id, "id")?;
    let id = utf8(&id, "id")?;
    if id.is_empty() {
        return Err("the field `id` is empty".into());
    }
    let name = required(fields.name, "type")?;
    let name = MessageName::parse(utf8(&name, "type")?).map_err(|error| error.to_string())?;
    let version = required(fields.version, "version")?;
    let version = as_number(&version)
        .and_then(|version| u32::try_from(version).ok())
        .ok_or_else(|| format!("the field `version` is {:?}, not a number", String::from_utf8_lossy(&version)))?;
    let headers = fields.headers.map_or_else(|| Ok(vec![]), |headers| decode_headers(&headers))?;
    let data = Bytes::from(required(fields.data, "data")?);
    Ok(Event {
        id: id.into(),
        category: stream.category.clone(),
        name,
        version,
        key: stream.key.clone(),
        headers,
        data,
    })
}

fn required(field: Option<Vec<u8>>, name: &str) -> Result<Vec<u8>, String> {
    field.ok_or_else(|| format!("the entry has no field `{name}`"))
}

fn utf8<'a>(bytes: &'a [u8], name: &str) -> Result<&'a str, String> {
    std::str::from_utf8(bytes).map_err(|_| format!("the field `{name}` is not UTF-8"))
}

fn as_number(bytes: &[u8]) -> Option<u64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// Headers as JSON: a list of pairs, since a name may occur twice; nothing for none.
pub(super) fn encode_headers(headers: &[(String, String)]) -> String {
    if headers.is_empty() {
        return String::new();
    }
    serde_json::to_string(headers).expect("pairs of text always serialize")
}

/// Reads a list of pairs, or an object from another publisher.
pub(super) fn decode_headers(json: &[u8]) -> Result<Vec<(String, String)>, String> {
    if let Ok(pairs) = serde_json::from_slice::<Vec<(String, String)>>(json) {
        return Ok(pairs);
    }
    serde_json::from_slice::<std::collections::BTreeMap<String, String>>(json)
        .map(|map| map.into_iter().collect())
        .map_err(|error| format!("the field `headers` is neither a list of pairs nor an object of texts: {error}"))
}

/// The record of the head's failures. None when it names a stream that is none of the partition's.
pub(super) fn attempts(
    answer: Option<Answer>,
    streams: &[StreamId],
    names: &[String],
) -> Result<Option<AttemptsRecord>, Error> {
    let Some(mut answer) = answer else { return Ok(None) };
    let stream = answer.text()?;
    let id = answer.text()?;
    let attempts = answer.number()?;
    let crashes = answer.number()?;
    let wait_ms = answer.number()?;
    let last_error = String::from_utf8_lossy(&answer.bytes()?).into_owned();
    let place = names.iter().position(|name| *name == stream);
    let (Some(place), Some(id)) = (place, entry_id(&id)?) else { return Ok(None) };
    let head = EntryRef { stream: streams[place].clone(), id };
    Ok(Some(AttemptsRecord { head, attempts: attempts as u32, crashes: crashes as u32, wait_ms, last_error }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyrail_ordering::{CategoryName, Key, KeyRules};

    fn decode(fields: &[(&str, &str)]) -> Content {
        let stream = StreamId::primary(
            CategoryName::parse("order").unwrap(),
            Key::parse("client-1", &KeyRules::default()).unwrap(),
        );
        let bulk = |text: &str| Value::BulkString(text.into());
        content(&stream, fields.iter().flat_map(|(name, value)| [bulk(name), bulk(value)]).collect()).1
    }

    #[test]
    fn an_event_is_read_whatever_the_order_and_further_fields() {
        let fields = [
            ("data", "{}"),
            ("x", "?"),
            ("version", "3"),
            ("type", "Placed"),
            ("id", "e1"),
            ("headers", r#"[["a","b"]]"#),
        ];
        let Content::Event(event) = decode(&fields) else { panic!("not an event") };
        assert_eq!((&*event.id, event.name.as_str(), event.version), ("e1", "Placed", 3));
        assert_eq!(event.headers, [("a".to_string(), "b".to_string())]);
        assert_eq!(event.key.unwrap().as_str(), "client-1");
    }

    #[test]
    fn what_is_no_event_says_why() {
        let good = [("id", "e1"), ("type", "Placed"), ("version", "1"), ("data", "{}")];
        for (at, bad, why) in [(0, ("id", ""), "id"), (1, ("type", "1"), "type"), (2, ("version", "x"), "version")] {
            let mut fields = good;
            fields[at] = bad;
            let Content::Undecodable(text) = decode(&fields) else { panic!("decoded") };
            assert!(text.contains(why), "{text}");
        }
        for at in 0..good.len() {
            let mut fields = good.to_vec();
            fields.remove(at);
            assert!(matches!(decode(&fields), Content::Undecodable(why) if why.contains("no field")));
        }
        assert!(matches!(decode(&[("a", "b")]), Content::Undecodable(_)));
    }

    #[test]
    fn headers_round_trip_and_objects_are_understood() {
        let headers = vec![("a".to_string(), "1".to_string()), ("a".to_string(), "\"2\"".to_string())];
        assert_eq!(decode_headers(encode_headers(&headers).as_bytes()).unwrap(), headers);
        assert_eq!(decode_headers(br#"{"a":"1"}"#).unwrap(), headers[..1]);
        assert!(decode_headers(b"7").is_err());
    }
}
