//! The layers of a configuration: defaults ← file ← environment ← flags.
//!
//! A setting is named by its place in the tree: `engine.lease_ttl_ms` in flags, `KEYRAIL_ENGINE_LEASE_TTL_MS` in the
//! environment. Which settings there are, and of which type, follows from the defaults, so no list can be out of date.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::{Config, ConfigError, Token};

/// The file that is read from the working folder when none is named.
pub const FILE_NAME: &str = "keyrail.toml";

const PREFIX: &str = "KEYRAIL_";
/// Variables that the command line reads itself.
const OWN_VARIABLES: [&str; 3] = ["KEYRAIL_CONFIG", "KEYRAIL_HOST", TOKEN_VARIABLE];
/// A token for a host: never a setting, so that it is never shown as one.
const TOKEN_VARIABLE: &str = "KEYRAIL_TOKEN";

/// What may change the defaults, lowest first.
#[derive(Debug, Default)]
pub struct Layers {
    /// A file that must exist; without one, `keyrail.toml` in the working folder if it is there.
    pub file: Option<PathBuf>,
    /// All variables of the environment.
    pub environment: Vec<(String, String)>,
    /// Settings from flags: the flag as shown in errors, the setting, the value.
    pub flags: Vec<(String, String, String)>,
}

/// The configuration of these layers.
pub fn load(layers: &Layers) -> Result<Config, ConfigError> {
    let mut config = match file_of(layers) {
        Some(path) => read_file(&path)?,
        None => Config::default(),
    };
    let names = leaves(&table_of(&Config::default()));
    for (variable, value) in &layers.environment {
        let Some(name) = setting_of(variable, &names)? else { continue };
        config = with(&config, &name, value)
            .map_err(|message| ConfigError::Setting { place: format!("variable {variable}"), message })?;
    }
    for (flag, name, value) in &layers.flags {
        config = with(&config, name, value).map_err(|message| ConfigError::Setting { place: flag.clone(), message })?;
    }
    let token = layers.environment.iter().find(|(variable, value)| variable == TOKEN_VARIABLE && !value.is_empty());
    config.client.token = token.map(|(_, token)| Token::new(token));
    let problems = config.problems();
    if problems.is_empty() { Ok(config) } else { Err(ConfigError::Problems(problems)) }
}

/// Where settings that are not defaults come from, lowest layer first: the file, variables, flags.
pub fn origins(layers: &Layers) -> Vec<String> {
    let file = file_of(layers).map(|path| path.display().to_string());
    let names = leaves(&table_of(&Config::default()));
    let variables = layers.environment.iter().filter(|(name, _)| matches!(setting_of(name, &names), Ok(Some(_))));
    let variables = variables.map(|(name, _)| format!("variable {name}"));
    let flags = layers.flags.iter().map(|(flag, ..)| flag.clone());
    file.into_iter().chain(variables).chain(flags).collect()
}

/// The file of these layers, if there is one.
pub(super) fn file_of(layers: &Layers) -> Option<PathBuf> {
    let usual = || Path::new(FILE_NAME).exists().then(|| PathBuf::from(FILE_NAME));
    layers.file.clone().or_else(usual)
}

fn read_file(path: &Path) -> Result<Config, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable { path: path.into(), error })?;
    toml::from_str(&text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.get(..at).map_or(0, |before| before.matches('\n').count()) + 1;
        let message = in_plain_words(error.message());
        ConfigError::File { path: path.into(), line, field: field_at(&text, line), message }
    })
}

/// The setting that a line is about: the last `[section]` above it and what stands before its `=`.
fn field_at(text: &str, line: usize) -> Option<String> {
    let lines: Vec<_> = text.lines().take(line).map(str::trim).collect();
    let name = lines.last()?.split_once('=')?.0.trim();
    let header = lines.iter().rev().find_map(|l| l.strip_prefix('[')?.split(']').next());
    Some(header.map_or_else(|| name.to_string(), |section| format!("{}.{name}", section.trim())))
}

/// One setting replaced.
fn with(config: &Config, name: &str, text: &str) -> Result<Config, String> {
    let mut table = table_of(config);
    let known = leaves(&table);
    let unknown = || {
        let section = name.rsplit_once('.').map_or("", |(section, _)| section);
        let near: Vec<_> =
            known.iter().filter(|leaf| leaf.rsplit_once('.').map_or("", |(s, _)| s) == section).collect();
        let near = if near.is_empty() { known.iter().collect() } else { near };
        let near: Vec<_> = near.into_iter().map(String::as_str).collect();
        format!("unknown setting {name:?}; there are: {}", near.join(", "))
    };
    if !known.iter().any(|leaf| leaf == name) {
        return Err(unknown());
    }
    let mut parts: Vec<_> = name.split('.').collect();
    let last = parts.pop().ok_or_else(unknown)?;
    let mut place = &mut table;
    for part in parts {
        place = place.get_mut(part).and_then(Value::as_table_mut).ok_or_else(unknown)?;
    }
    let value = place.get_mut(last).ok_or_else(unknown)?;
    *value = typed(value, text)?;
    table.try_into().map_err(|error: toml::de::Error| in_plain_words(error.message()))
}

fn typed(like: &Value, text: &str) -> Result<Value, String> {
    match like {
        Value::Integer(_) => {
            let digits = text.trim().replace('_', "");
            digits.parse().map(Value::Integer).map_err(|_| format!("{text:?} is not a whole number"))
        }
        Value::Float(_) => text.trim().parse().map(Value::Float).map_err(|_| format!("{text:?} is not a number")),
        Value::Boolean(_) => {
            text.trim().parse().map(Value::Boolean).map_err(|_| format!("{text:?} is neither true nor false"))
        }
        _ => Ok(Value::String(text.into())),
    }
}

/// The setting that a variable names. A variable that begins like a section of ours and is none is refused; others
/// with our prefix are somebody else's (Kubernetes sets `KEYRAIL_SERVICE_HOST` for a service of that name).
pub(super) fn setting_of(variable: &str, names: &[String]) -> Result<Option<String>, ConfigError> {
    if !variable.starts_with(PREFIX) || OWN_VARIABLES.contains(&variable) {
        return Ok(None);
    }
    if let Some(name) = names.iter().find(|name| variable_of(name) == variable) {
        return Ok(Some(name.clone()));
    }
    let section = names.iter().filter_map(|name| name.split_once('.')).map(|(section, _)| section);
    let ours: Option<&str> = section.into_iter().find(|section| variable.starts_with(&(variable_of(section) + "_")));
    match ours {
        None => Ok(None),
        Some(section) => {
            let known = names.iter().filter(|name| name.starts_with(&format!("{section}.")));
            let known: Vec<_> = known.map(|name| variable_of(name)).collect();
            let message = format!("no such setting; there are: {}", known.join(", "));
            Err(ConfigError::Setting { place: format!("variable {variable}"), message })
        }
    }
}

/// The variable of a setting: `KEYRAIL_ENGINE_LEASE_TTL_MS` for `engine.lease_ttl_ms`.
pub(super) fn variable_of(name: &str) -> String {
    format!("{PREFIX}{}", name.replace('.', "_").to_ascii_uppercase())
}

pub(super) fn table_of(config: &Config) -> Table {
    // Our own structs of numbers and texts; limits above i64 are refused when they are read.
    Table::try_from(config).unwrap_or_default()
}

/// The dotted names of all values.
pub(super) fn leaves(table: &Table) -> Vec<String> {
    let mut names = vec![];
    for (name, value) in table {
        match value {
            Value::Table(inner) => names.extend(leaves(inner).into_iter().map(|leaf| format!("{name}.{leaf}"))),
            _ => names.push(name.clone()),
        }
    }
    names
}

/// What serde says, without the names of Rust types.
fn in_plain_words(message: &str) -> String {
    let mut text = message.trim().replace('\n', "; ");
    for unsigned in ["u64", "u32", "usize"] {
        text = text.replace(&format!("expected {unsigned}"), "expected a whole number of 0 or more");
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn load_from(text: &str, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Result<Config, String> {
        let file = file(text);
        let owned = |(a, b): &(&str, &str)| ((*a).to_string(), (*b).to_string());
        let layers = Layers {
            file: Some(file.path().into()),
            environment: environment.iter().map(owned).collect(),
            flags: flags.iter().map(owned).map(|(name, value)| (format!("--set {name}"), name, value)).collect(),
        };
        load(&layers).map_err(|error| error.to_string())
    }

    #[test]
    fn a_later_layer_replaces_single_values() {
        let text =
            "broker = \"memory\"\n[engine]\nlease_ttl_ms = 9000\nlinger_ms = 7\n[engine.retry]\nattempts_max = 2\n";
        let environment = [("KEYRAIL_ENGINE_LEASE_TTL_MS", "8_000"), ("KEYRAIL_BROKER", "embedded:x"), ("HOME", "/x")];
        let config = load_from(text, &environment, &[("broker", "redis://h"), ("log.format", "json")]).unwrap();
        assert_eq!((config.engine.lease_ttl_ms, config.engine.linger_ms), (8_000, 7));
        assert_eq!((config.engine.retry.attempts_max, config.engine.retry.crashes_max), (2, 5));
        assert_eq!(config.broker.to_string(), "redis://h");
        assert_eq!(config.log.format, super::super::LogFormat::Json);
    }

    #[test]
    fn a_wrong_file_names_line_field_and_what_is_allowed() {
        let cases = [
            ("[engine]\nlease_ttl_ms = \"x\"\n", &["line 2", "engine.lease_ttl_ms", "a whole number"][..]),
            ("[engine]\n\nlease_ttl = 1\n", &["line 3", "unknown field `lease_ttl`", "lease_ttl_ms"]),
            ("[engine]\nlease_ttl_ms = -1\n", &["line 2", "a whole number of 0 or more"]),
            ("[log]\nformat = \"xml\"\n", &["line 2", "log.format", "`text`", "`json`"]),
            ("[logs]\n", &["line 1", "unknown field `logs`"]),
            ("broker = \"kafka:x\"\n", &["line 1", "broker", "embedded:PATH"]),
            ("[engine\n", &["line 1"]),
            ("[engine.retry]\nattempts = 1\n", &["line 2", "unknown field `attempts`", "attempts_max"]),
        ];
        for (text, parts) in cases {
            let error = load_from(text, &[], &[]).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)) && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn a_wrong_variable_or_flag_is_named() {
        let wrong =
            |environment: &[(&str, &str)], flags: &[(&str, &str)]| load_from("", environment, flags).unwrap_err();
        let error = wrong(&[("KEYRAIL_ENGINE_LEASE_TTL_MS", "soon")], &[]);
        assert_eq!(error, "variable KEYRAIL_ENGINE_LEASE_TTL_MS: \"soon\" is not a whole number");
        assert!(wrong(&[("KEYRAIL_ENGINE_LEASE", "1")], &[]).contains("KEYRAIL_ENGINE_LEASE_TTL_MS"));
        assert!(wrong(&[], &[("engine.x", "1")]).contains("there are: engine."));
        assert!(wrong(&[], &[("engine", "1")]).contains("unknown setting"));
        assert!(wrong(&[], &[("engine.lease_ttl_ms", "-5")]).contains("a whole number of 0 or more"));
        assert!(load_from("", &[("KEYRAIL_SERVICE_HOST", "10.0.0.1"), ("KEYRAIL_CONFIG", "x")], &[]).is_ok());
    }

    #[test]
    fn the_origins_are_those_that_set_something() {
        let environment = [("HOME", "/x"), ("KEYRAIL_CONFIG", "x"), ("KEYRAIL_LOG_FORMAT", "json")];
        let layers = Layers {
            file: Some("k.toml".into()),
            environment: environment.map(|(a, b)| (a.to_string(), b.to_string())).to_vec(),
            flags: vec![("--broker".into(), "broker".into(), "memory".into())],
        };
        assert_eq!(origins(&layers), ["k.toml", "variable KEYRAIL_LOG_FORMAT", "--broker"]);
    }

    #[test]
    fn a_named_file_must_exist() {
        let layers = Layers { file: Some("/nonexistent/k.toml".into()), ..Layers::default() };
        assert!(
            load(&layers).unwrap_err().to_string().starts_with("cannot read the configuration /nonexistent/k.toml")
        );
    }
}
