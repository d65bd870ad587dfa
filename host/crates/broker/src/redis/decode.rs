//! Answers of the server, read from raw values. The bytes of an event's data are moved, never copied.
//!
//! Invariant: whatever lies in a stream becomes an [`Entry`]; bytes that are no event are that entry's failure
//! ([`Content::Undecodable`]), not the connection's.

use std::sync::Arc;

use bytes::Bytes;
use keyrail_ordering::{AttemptsRecord, Content, Entry, EntryId, EntryRef, Event, MessageName, StreamId};
use redis::Value;

use crate::Error;

/// How an owner's function answered; `common.lua` has the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    Fenced,
    NotHead,
    Refused,
    Held,
    Halted,
}

/// The values of an answer, one after the other.
pub(super) struct Answer(std::vec::IntoIter<Value>);

impl Answer {
    pub(super) fn of(value: Value) -> Result<Self, Error> {
        match value {
            Value::Array(values) => Ok(Self(values.into_iter())),
            Value::Nil => Ok(Self(vec![].into_iter())),
            other => Err(unexpected("a list", &other)),
        }
    }

    /// The first value of an owner's function.
    pub(super) fn status(&mut self) -> Result<Status, Error> {
        Ok(match self.number()? {
            0 => Status::Ok,
            1 => Status::Fenced,
            2 => Status::NotHead,
            3 => Status::Refused,
            4 => Status::Held,
            5 => Status::Halted,
            other => return Err(Error::Corrupt(format!("a function answered with the status {other}"))),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn value(&mut self) -> Result<Value, Error> {
        self.0.next().ok_or_else(|| Error::Corrupt("a function's answer is too short".into()))
    }

    pub(super) fn number(&mut self) -> Result<u64, Error> {
        number(&self.value()?)
    }

    pub(super) fn flag(&mut self) -> Result<bool, Error> {
        Ok(self.number()? == 1)
    }

    pub(super) fn text(&mut self) -> Result<String, Error> {
        text(self.value()?)
    }

    pub(super) fn bytes(&mut self) -> Result<Bytes, Error> {
        let value = self.value()?;
        bytes(value)?.ok_or_else(|| unexpected("bytes", &Value::Nil))
    }

    pub(super) fn list(&mut self) -> Result<Self, Error> {
        Self::of(self.value()?)
    }

    pub(super) fn optional_list(&mut self) -> Result<Option<Self>, Error> {
        match self.value()? {
            Value::Nil => Ok(None),
            other => Self::of(other).map(Some),
        }
    }
}

pub(super) fn number(value: &Value) -> Result<u64, Error> {
    match value {
        Value::Int(number) => u64::try_from(*number).map_err(|_| unexpected("a count", value)),
        Value::BulkString(bytes) => std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| unexpected("a count", value)),
        other => Err(unexpected("a count", other)),
    }
}

pub(super) fn text(value: Value) -> Result<String, Error> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes)
            .map_err(|_| Error::Corrupt("the server answered with text that is not UTF-8".into())),
        Value::SimpleString(text) => Ok(text),
        Value::Okay => Ok("OK".into()),
        Value::Int(number) => Ok(number.to_string()),
        other => Err(unexpected("text", &other)),
    }
}

/// The bytes of a value; none for nil.
pub(super) fn bytes(value: Value) -> Result<Option<Bytes>, Error> {
    match value {
        Value::Nil => Ok(None),
        Value::BulkString(bytes) => Ok(Some(Bytes::from(bytes))),
        other => Err(unexpected("bytes", &other)),
    }
}

/// An id, or none for an empty text.
pub(super) fn entry_id(text: &str) -> Result<Option<EntryId>, Error> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error: keyrail_ordering::ParseEntryIdError| Error::Corrupt(error.to_string()))
}

fn unexpected(wanted: &str, value: &Value) -> Error {
    let kind = match value {
        Value::Nil => "nothing",
        Value::Int(_) => "a number",
        Value::BulkString(_) => "bytes",
        Value::Array(_) => "a list",
        Value::SimpleString(_) | Value::Okay => "a status",
        _ => "something else",
    };
    Error::Corrupt(format!("the server answered with {kind} where {wanted} was due"))
}

/// Pairs of a stream's place and its entries.
pub(super) fn segments(mut answer: Answer, streams: &[StreamId]) -> Result<Vec<Arc<Entry>>, Error> {
    let mut all = vec![];
    while !answer.is_empty() {
        let place = answer.number()?;
        let list = answer.list()?;
        let stream = place.checked_sub(1).and_then(|place| streams.get(place as usize));
        let stream =
            stream.ok_or_else(|| Error::Corrupt(format!("the server answered with the stream number {place}")))?;
        if all.is_empty() {
            all.reserve_exact(list.len());
        }
        entries_into(&mut all, list, stream)?;
    }
    Ok(all)
}

/// Entries of one stream.
pub(super) fn entries_into(all: &mut Vec<Arc<Entry>>, list: Answer, stream: &StreamId) -> Result<(), Error> {
    for value in list.0 {
        let mut row = Answer::of(value)?;
        let id = row.text()?;
        let id = entry_id(&id)?.ok_or_else(|| Error::Corrupt("an entry has no id".into()))?;
        let (recorded_at_ms, content) = match row.value()? {
            Value::Array(fields) if !fields.is_empty() => content(stream, fields),
            _ => (0, Content::Missing),
        };
        all.push(Arc::new(Entry { at: EntryRef { stream: stream.clone(), id }, recorded_at_ms, content }));
    }
    Ok(())
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
fn decode_headers(json: &[u8]) -> Result<Vec<(String, String)>, String> {
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
