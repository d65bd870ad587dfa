//! Answers of the server, read from raw values: one value after the other, each of the kind that is due there.
//! Bytes are moved, never copied.

use bytes::Bytes;
use keyrail_ordering::{EntryId, ParseEntryIdError};
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
    Paused,
    Dry,
    Released,
}

/// The values of an answer, one after the other.
pub(super) struct Answer(std::vec::IntoIter<Value>);

impl Answer {
    pub(super) fn of(value: Value) -> Result<Self, Error> {
        match value {
            Value::Array(values) => Ok(Self(values.into_iter())),
            // A status with nothing behind it: a list of one costs the server a microsecond.
            Value::Int(_) => Ok(Self(vec![value].into_iter())),
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
            6 => Status::Paused,
            7 => Status::Dry,
            8 => Status::Released,
            other => return Err(Error::Corrupt(format!("a function answered with the status {other}"))),
        })
    }

    /// What is left.
    pub(super) fn rest(self) -> std::vec::IntoIter<Value> {
        self.0
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

    /// A number, or none for an empty text.
    pub(super) fn optional_number(&mut self) -> Result<Option<u64>, Error> {
        match self.value()? {
            Value::BulkString(bytes) if bytes.is_empty() => Ok(None),
            value => number(&value).map(Some),
        }
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
    text.parse().map(Some).map_err(|error: ParseEntryIdError| Error::Corrupt(error.to_string()))
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
