//! An event on its way to a host.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, value};

use crate::Error;

/// An event to publish.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    category: String,
    #[serde(rename = "type")]
    name: String,
    pub(crate) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "is_primary")]
    lane: &'static str,
    data: Value,
}

impl Event {
    /// An event of this category and type. `data` must become a JSON object.
    pub fn new(category: &str, name: &str, data: &impl Serialize) -> Result<Self, Error> {
        let data = value::to_value(data).map_err(|error| Error::Data(error.to_string()))?;
        if !data.is_object() {
            return Err(Error::Data("the data is no JSON object".into()));
        }
        Ok(Self {
            category: category.into(),
            name: name.into(),
            id: fresh_id(),
            version: None,
            headers: BTreeMap::new(),
            lane: "primary",
            data,
        })
    }

    /// Up to 256 bytes of text. The same id again is the same event.
    pub fn id(mut self, id: &str) -> Self {
        self.id = id.into();
        self
    }

    /// The version of the type; without it, the newest that is registered.
    pub fn version(mut self, version: u32) -> Self {
        self.version = Some(version);
        self
    }

    /// A free text for handlers, and `traceparent` for whoever follows traces. Names that begin with `keyrail-` are the host's.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Into the lane that is served only while the primary lane of the key is empty.
    pub fn backfill(mut self) -> Self {
        self.lane = "backfill";
        self
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for it
fn is_primary(lane: &&'static str) -> bool {
    *lane == "primary"
}

fn fresh_id() -> String {
    format!("{:032x}", rand::random::<u128>())
}
