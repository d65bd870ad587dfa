//! What settings there are: the documentation of the structs, as a JSON Schema and as a list.
//!
//! Nothing is written down twice: names, types and texts come from the structs, defaults from their `Default`, units from the
//! names.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::Config;
use super::layers::variable_of;

/// One setting, for people.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Its dotted name.
    pub name: String,
    /// Its variable of the environment.
    pub variable: String,
    /// What it is when nobody sets it.
    pub default: Value,
    /// The unit of a number: `ms` or `bytes`, after its name.
    pub unit: Option<&'static str>,
    /// The texts that it may be, if these are few.
    pub choices: Vec<String>,
    /// What it means.
    pub text: String,
}

/// The JSON Schema of `keyrail.toml`, for editors.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<Config>().to_value();
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".into(), "keyrail.toml".into());
    }
    schema
}

/// All settings, each section with what it is about: its dotted name (empty for the root), its text, its settings.
pub fn settings() -> Vec<(String, String, Vec<Setting>)> {
    // Our own structs of numbers and texts always serialize.
    let defaults = serde_json::to_value(Config::default()).unwrap_or_default();
    let mut sections = vec![];
    add_section(&mut sections, "", &schema(), &defaults);
    sections
}

fn add_section(sections: &mut Vec<(String, String, Vec<Setting>)>, at: &str, schema: &Value, defaults: &Value) {
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let path = |name: &str| if at.is_empty() { name.to_string() } else { format!("{at}.{name}") };
    let (inner, own): (Vec<_>, Vec<_>) = properties.iter().partition(|(name, _)| defaults[name.as_str()].is_object());
    let own = own.into_iter().map(|(name, property)| setting(path(name), property, &defaults[name.as_str()]));
    sections.push((at.into(), text_of(schema), own.collect()));
    for (name, property) in inner {
        add_section(sections, &path(name), property, &defaults[name.as_str()]);
    }
}

fn setting(name: String, property: &Value, default: &Value) -> Setting {
    let unit = match name.rsplit(['_', '.']).next() {
        Some("ms") => Some("ms"),
        Some("bytes") => Some("bytes"),
        _ => None,
    };
    let variable = variable_of(&name);
    Setting { name, variable, default: default.clone(), unit, choices: choices(property), text: text_of(property) }
}

/// Of an enumeration, whether its cases are documented (`oneOf`) or not (`enum`).
fn choices(property: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(String::from);
    let plain = property["enum"].as_array().into_iter().flatten().filter_map(text);
    let cases = property["oneOf"].as_array().into_iter().flatten();
    let cases = cases.flat_map(|case| match &case["const"] {
        Value::Null => case["enum"].as_array().into_iter().flatten().filter_map(text).collect(),
        one => text(one).into_iter().collect::<Vec<_>>(),
    });
    plain.chain(cases).collect()
}

/// The first documentation that there is, on one line. A section's own text wins over that of its type.
fn text_of(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::layers::{leaves, table_of};
    use super::*;

    #[test]
    fn every_setting_is_there_with_its_text() {
        let sections = settings();
        let all: Vec<_> = sections.iter().flat_map(|(.., settings)| settings).collect();
        let mut names: Vec<_> = all.iter().map(|setting| setting.name.clone()).collect();
        let mut expected = leaves(&table_of(&Config::default()));
        names.sort();
        expected.sort();
        assert_eq!(names, expected);
        for (name, text, _) in &sections {
            assert!(!text.is_empty(), "section {name:?} has no text");
        }
        for setting in all {
            assert!(!setting.text.is_empty(), "{} has no text", setting.name);
        }
    }

    #[test]
    fn defaults_units_and_choices_are_those_of_the_code() {
        let sections = settings();
        let find = |name: &str| sections.iter().flat_map(|(.., all)| all).find(|s| s.name == name).unwrap().clone();
        let lease = find("engine.lease_ttl_ms");
        assert_eq!((lease.default, lease.unit), (Value::from(3_000), Some("ms")));
        assert_eq!(lease.variable, "KEYRAIL_ENGINE_LEASE_TTL_MS");
        assert_eq!(find("log.format").choices, ["text", "json"]);
        assert_eq!(find("engine.retry.attempts_max").default, Value::from(5));
        assert_eq!(find("engine.retry.attempts_max").unit, None);
        assert_eq!(find("runtime.ceiling.memory_max_bytes").unit, Some("bytes"));
        assert_eq!(find("broker").default, Value::from("embedded:keyrail.redb"));
    }

    #[test]
    fn the_schema_refuses_unknown_names() {
        let schema = schema();
        assert_eq!(schema["additionalProperties"], Value::Bool(false));
        assert_eq!(schema["properties"]["engine"]["additionalProperties"], Value::Bool(false));
    }
}
