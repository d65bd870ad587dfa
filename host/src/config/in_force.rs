//! The settings that are in force, each with the layer that it comes from.
//!
//! Shows no password: what is an address with one in it is shown without.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use toml::{Table, Value};

use super::address::without_password;
use super::layers::{file_of, leaves, setting_of, table_of};
use super::{Config, ConfigError, Layers, load};

/// A setting and where its value comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InForce {
    /// Its dotted name.
    pub name: String,
    /// Its value; passwords in addresses are left out.
    pub value: Value,
    /// Who set it last.
    pub origin: Origin,
}

/// The layer that set a value last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Nobody did.
    Default,
    /// The configuration file.
    File(PathBuf),
    /// This variable of the environment.
    Variable(String),
    /// This flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => write!(f, "default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Variable(name) | Self::Flag(name) => write!(f, "{name}"),
        }
    }
}

/// Every setting of these layers, by name.
pub fn in_force(layers: &Layers) -> Result<Vec<InForce>, ConfigError> {
    let table = table_of(&load(layers)?);
    let names = leaves(&table_of(&Config::default()));
    let in_file = names_in_file(layers);
    let mut from_environment = vec![];
    for (variable, _) in &layers.environment {
        if let Some(name) = setting_of(variable, &names)? {
            from_environment.push((name, variable));
        }
    }
    let origin = |name: &String| {
        if let Some((flag, ..)) = layers.flags.iter().rev().find(|(_, setting, _)| setting == name) {
            return Origin::Flag(flag.clone());
        }
        if let Some((_, variable)) = from_environment.iter().find(|(setting, _)| setting == name) {
            return Origin::Variable((*variable).clone());
        }
        match &in_file {
            Some((path, names)) if names.contains(name) => Origin::File(path.clone()),
            _ => Origin::Default,
        }
    };
    let settings = names.iter().filter_map(|name| {
        let value = value_at(&table, name)?;
        Some(InForce { name: name.clone(), value: shown(value), origin: origin(name) })
    });
    Ok(settings.collect())
}

/// The file, and what it sets. It was read and found right a moment ago.
fn names_in_file(layers: &Layers) -> Option<(PathBuf, Vec<String>)> {
    let path = file_of(layers)?;
    let table: Table = toml::from_str(&std::fs::read_to_string(&path).ok()?).ok()?;
    Some((path, leaves(&table)))
}

fn value_at<'a>(table: &'a Table, name: &str) -> Option<&'a Value> {
    let mut parts = name.split('.');
    let mut value = table.get(parts.next()?)?;
    for part in parts {
        value = value.get(part)?;
    }
    Some(value)
}

fn shown(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(without_password(text)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;

    #[test]
    fn each_setting_tells_who_set_it_last_and_no_password() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"[engine]\nlease_ttl_ms = 9000\nlinger_ms = 7\n[engine.retry]\nattempts_max = 2\n").unwrap();
        let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
        let layers = Layers {
            file: Some(file.path().into()),
            environment: vec![pair("KEYRAIL_ENGINE_LINGER_MS", "8"), pair("KEYRAIL_BROKER", "redis://u:s3cret@h")],
            flags: vec![("--set log.format".into(), "log.format".into(), "json".into())],
        };
        let all = in_force(&layers).unwrap();
        let find = |name: &str| all.iter().find(|setting| setting.name == name).unwrap();
        assert_eq!(find("engine.lease_ttl_ms").origin, Origin::File(file.path().into()));
        assert_eq!(find("engine.lease_ttl_ms").value, Value::Integer(9_000));
        assert_eq!(find("engine.retry.attempts_max").origin, Origin::File(file.path().into()));
        assert_eq!(find("engine.retry.crashes_max").origin, Origin::Default);
        assert_eq!(find("engine.linger_ms").origin, Origin::Variable("KEYRAIL_ENGINE_LINGER_MS".into()));
        assert_eq!(find("log.format").origin, Origin::Flag("--set log.format".into()));
        assert_eq!(find("broker").value, Value::String("redis://u:***@h".into()));
        assert_eq!(all.len(), leaves(&table_of(&Config::default())).len());
    }
}
