//! CloudEvents 1.0 as events of ours, and nothing else: structured JSON, one or many, and the binary mode of HTTP.
//!
//! `type` is `CATEGORY.TYPE`, or `TYPE` with the extension `category`. The id of an event is `SOURCE#ID`, since an id is unique
//! within its source only. What else a CloudEvent says becomes headers: `ce-subject`, `ce-time`, one for each extension;
//! `traceparent` and `tracestate` keep their names.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::value::RawValue;

use super::line::{EventParts, LineError};

/// Extensions whose names are headers everywhere.
const TRACE: [&str; 2] = ["traceparent", "tracestate"];

/// One CloudEvent in JSON.
pub(super) fn structured(body: &Bytes) -> Result<EventParts, LineError> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_slice(body)
        .map_err(|error| LineError::Form(format!("it is no CloudEvent in JSON: {error}")))?;
    let mut attributes = Attributes::default();
    let mut data = None;
    for (name, value) in members {
        match name.as_str() {
            "data" => data = Some(body.slice_ref(value.get().as_bytes())),
            "data_base64" => {
                let text: String = serde_json::from_str(value.get()).map_err(|_| form("data_base64 is no text"))?;
                let bytes = STANDARD.decode(text).map_err(|_| form("data_base64 is not base64"))?;
                data = Some(bytes.into());
            }
            _ => attributes.add(name, text_of(value)?),
        }
    }
    attributes.event(data.ok_or_else(|| form("it has no data"))?)
}

/// A CloudEvent whose attributes are headers, without their prefix `ce-`, and whose data is the body.
pub(super) fn binary(
    headers: impl IntoIterator<Item = (String, String)>,
    data: Bytes,
) -> Result<EventParts, LineError> {
    let mut attributes = Attributes::default();
    for (name, value) in headers {
        attributes.add(name, value);
    }
    attributes.event(data)
}

#[derive(Default)]
struct Attributes(BTreeMap<String, String>);

impl Attributes {
    fn add(&mut self, name: String, value: String) {
        self.0.insert(name, value);
    }

    fn event(mut self, data: Bytes) -> Result<EventParts, LineError> {
        let mut required = |name: &str| {
            let value = self.0.remove(name).filter(|value| !value.is_empty());
            value.ok_or_else(|| form(&format!("the CloudEvent has no {name}")))
        };
        let version = required("specversion")?;
        if version != "1.0" {
            return Err(form(&format!("specversion is {version:?}; 1.0 is understood")));
        }
        let (id, source, kind) = (required("id")?, required("source")?, required("type")?);
        if let Some(media) = self.0.remove("datacontenttype")
            && !is_json(&media)
        {
            return Err(form(&format!("datacontenttype is {media:?}; data must be a JSON object")));
        }
        let (category, name) = match self.0.remove("category") {
            Some(category) => (category, kind),
            None => match kind.rsplit_once('.') {
                Some((category, name)) => (category.to_string(), name.to_string()),
                None => {
                    return Err(form(&format!(
                        "type is {kind:?}; give CATEGORY.TYPE, or name the category in the extension category"
                    )));
                }
            },
        };
        let headers = self.0.into_iter().map(|(name, value)| {
            if TRACE.contains(&name.as_str()) { (name, value) } else { (format!("ce-{name}"), value) }
        });
        Ok(EventParts {
            category,
            name,
            version: None,
            id: Some(format!("{source}#{id}")),
            lane: None,
            headers: headers.collect(),
            data,
        })
    }
}

/// `application/json` and its kin.
pub(super) fn is_json(media: &str) -> bool {
    let media = media.split(';').next().unwrap_or_default().trim();
    media.eq_ignore_ascii_case("application/json") || media.to_ascii_lowercase().ends_with("+json")
}

/// Attributes are texts, numbers or booleans.
fn text_of(value: &RawValue) -> Result<String, LineError> {
    let value: serde_json::Value =
        serde_json::from_str(value.get()).map_err(|error| LineError::Form(error.to_string()))?;
    match value {
        serde_json::Value::String(text) => Ok(text),
        serde_json::Value::Number(number) => Ok(number.to_string()),
        serde_json::Value::Bool(yes) => Ok(yes.to_string()),
        serde_json::Value::Null => Ok(String::new()),
        other => Err(form(&format!("the attribute {other} is neither text, number nor boolean"))),
    }
}

fn form(text: &str) -> LineError {
    LineError::Form(text.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(text: &str) -> Result<EventParts, String> {
        structured(&Bytes::from(text.to_string())).map_err(|error| error.to_string())
    }

    #[test]
    fn a_structured_event_keeps_its_data_as_it_is() {
        let text = r#"{"specversion":"1.0","id":"7","source":"/shop/1","type":"order.OrderPlaced","subject":"x",
            "datacontenttype":"application/json; charset=utf-8","traceparent":"00-1-2-01","retries":3,
            "data":{ "client":"k1","n":1.50}}"#;
        let parts = read(text).unwrap();
        assert_eq!((parts.category.as_str(), parts.name.as_str()), ("order", "OrderPlaced"));
        assert_eq!(parts.id.as_deref(), Some("/shop/1#7"));
        assert_eq!(&parts.data[..], br#"{ "client":"k1","n":1.50}"#);
        let headers: Vec<_> = parts.headers.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(headers, ["ce-retries=3", "ce-subject=x", "traceparent=00-1-2-01"]);
    }

    #[test]
    fn the_category_may_be_an_extension() {
        let parts =
            read(r#"{"specversion":"1.0","id":"7","source":"s","type":"a.b","category":"order","data_base64":"e30="}"#);
        let parts = parts.unwrap();
        assert_eq!((parts.category.as_str(), parts.name.as_str(), &parts.data[..]), ("order", "a.b", &b"{}"[..]));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let good = r#"{"specversion":"1.0","id":"7","source":"s","type":"a.b","data":{}}"#;
        assert!(read(good).is_ok());
        for (from, to, what) in [
            (r#""id":"7","#, "", "has no id"),
            (r#""id":"7""#, r#""id":"""#, "has no id"),
            ("1.0", "0.3", "specversion"),
            ("a.b", "ab", "CATEGORY.TYPE"),
            (r#","data":{}"#, "", "no data"),
            (r#""data":{}"#, r#""data_base64":"%""#, "base64"),
            (r#""data":{}"#, r#""data":{},"datacontenttype":"text/xml""#, "datacontenttype"),
            (r#""data":{}"#, r#""data":{},"x":[1]"#, "neither"),
            (r#"{"spec"#, r#"["spec"#, "no CloudEvent"),
        ] {
            let error = read(&good.replacen(from, to, 1)).map(|_| ()).unwrap_err();
            assert!(error.contains(what), "{to}: {error}");
        }
    }
}
