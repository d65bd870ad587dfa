//! What a test hands to the harness: an event, and what the host would say about it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Emitted;
use crate::event::{Event, FieldType};

/// An event to deliver. `&event` becomes one by itself; the methods set what the test cares about.
#[derive(Debug, Clone)]
pub struct Submission {
    pub(super) id: Option<String>,
    pub(super) category: String,
    pub(super) name: String,
    pub(super) version: u32,
    pub(super) key: Option<String>,
    pub(super) attempt: Option<u32>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) data: Vec<u8>,
}

impl Submission {
    /// An event of a type.
    ///
    /// Panics if it does not serialise to an object with the fields that its type declares: publishing would refuse it.
    pub fn of<E: Event + Serialize>(event: &E) -> Self {
        let data = serde_json::to_value(event).expect("the event serialises to JSON");
        check_fields::<E>(&data);
        Self::json(E::CATEGORY, E::NAME, &data).version(E::VERSION)
    }

    /// Any data, also what does not fit the type.
    pub fn json(category: &str, name: &str, data: &serde_json::Value) -> Self {
        Self::bytes(category, name, data.to_string())
    }

    /// Any bytes, also what is not JSON.
    pub fn bytes(category: &str, name: &str, data: impl Into<Vec<u8>>) -> Self {
        Self {
            id: None,
            category: category.to_owned(),
            name: name.to_owned(),
            version: 1,
            key: None,
            attempt: None,
            headers: Vec::new(),
            data: data.into(),
        }
    }

    /// A line as `keyrail publish` takes it: `{"category":…, "type":…, "data":{…}, "id":…, "headers":{…}}`.
    pub fn from_line(line: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Line<'a> {
            category: String,
            #[serde(rename = "type")]
            name: String,
            version: Option<u32>,
            id: Option<String>,
            #[serde(default)]
            headers: std::collections::BTreeMap<String, String>,
            #[serde(borrow)]
            data: &'a RawValue,
        }
        let line: Line<'_> = serde_json::from_str(line)?;
        let mut submission = Self::bytes(&line.category, &line.name, line.data.get());
        submission.version = line.version.unwrap_or(1);
        submission.id = line.id;
        submission.headers = line.headers.into_iter().collect();
        Ok(submission)
    }

    /// Sets the event's id; otherwise it is `event-1`, `event-2`, and so on.
    pub fn id(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    /// Sets the version of the type.
    pub fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// Sets the key; otherwise it is the value of the field that the handler is sequential by.
    pub fn key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// Sets which try it is; otherwise 1, or one more than the last try of this id that failed.
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.attempt = Some(attempt);
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

impl<E: Event + Serialize> From<&E> for Submission {
    fn from(event: &E) -> Self {
        Self::of(event)
    }
}

impl From<Emitted> for Submission {
    fn from(emitted: Emitted) -> Self {
        Self {
            id: Some(emitted.id),
            version: emitted.version,
            headers: emitted.headers,
            ..Self::bytes(&emitted.category, &emitted.name, emitted.data)
        }
    }
}

/// The check of publishing: fields present, and of their type.
fn check_fields<E: Event>(data: &serde_json::Value) {
    let what = E::NAME;
    let object = data.as_object().unwrap_or_else(|| panic!("{what} serialises to {data}, which is not an object"));
    for field in E::FIELDS {
        let name = field.name;
        let value = match object.get(name) {
            None | Some(serde_json::Value::Null) if !field.required => continue,
            None => panic!("{what} declares a field {name:?}, but does not serialise it; make it optional"),
            Some(value) => value,
        };
        let fits = match field.kind {
            FieldType::Text | FieldType::Timestamp | FieldType::Binary => value.is_string(),
            FieldType::Integer => value.is_i64() || value.is_u64(),
            FieldType::Number => value.is_number(),
            FieldType::Boolean => value.is_boolean(),
            FieldType::List => value.is_array(),
            FieldType::Object => value.is_object(),
        };
        let kind = format!("{:?}", field.kind).to_lowercase();
        assert!(
            fits,
            "{what} declares {name:?} as {kind}, but it serialises to {value}; see `keyrail_guest::FieldKind`"
        );
    }
}
