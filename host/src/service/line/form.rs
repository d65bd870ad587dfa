//! The JSON of a line, before anything of it is believed.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::LaneName;

/// The members of a line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form<'a> {
    #[serde(borrow)]
    pub(super) category: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) data: &'a RawValue,
    pub(super) id: Option<String>,
    pub(super) headers: Option<Headers>,
    pub(super) version: Option<u32>,
    pub(super) lane: Option<LaneName>,
}

/// An object of texts, in its order.
pub(super) struct Headers(Vec<(String, String)>);

impl Headers {
    pub(super) fn in_order(self) -> Vec<(String, String)> {
        self.0
    }
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

/// The parser counts lines of its own: ours is known, so only the column is kept.
pub(super) fn on_one_line(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at column ")
}
