//! The file of a bundle: lines of JSON, so that a change is a line in a diff. Each says what it is:
//!
//! - `bundle`: the first; version of the form, handler, partition;
//! - `category`: what was registered of one;
//! - `state-before`: a value of the key's state before the first event;
//! - `entry`: an event, in order;
//! - `http-call`: an HTTP call of an event and its answer, if `keyrail replay --live` kept any (`calls.rs`);
//! - `event`, `emit`, `state`: what is expected, as `keyrail test` prints it.
//!
//! Invariant: what was written is read back byte for byte: values that are no JSON on one line are text or base64.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Result;
use keyrail::service::{RecordedEntry, Recording, Value};
use keyrail::trial::HttpCall;
use keyrail_ordering::{CategoryEntry, CategoryName, GroupName, KeyRules, Scope};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::super::failure::{Refused, cannot_read, one_line};
use super::super::test;
use super::calls::{self, CallLine};

/// Of the form of the file.
const VERSION: u32 = 1;

/// A bundle in memory.
pub(super) struct Bundle {
    pub(super) recording: Recording,
    /// The HTTP calls that each event made, by its number from 1.
    pub(super) calls: BTreeMap<usize, Vec<HttpCall>>,
    /// Lines that say what is expected, with their numbers.
    pub(super) expected: Vec<(usize, String)>,
}

#[derive(Serialize, Deserialize)]
struct What {
    what: String,
}

#[derive(Serialize, Deserialize)]
struct Header {
    what: String,
    version: u32,
    handler: GroupName,
    handler_version: String,
    scope: Scope,
    key_rules: KeyRules,
    #[serde(default)]
    failed_tries: u32,
}

#[derive(Serialize, Deserialize)]
struct Category {
    what: String,
    name: CategoryName,
    #[serde(rename = "is")]
    entry: CategoryEntry,
}

#[derive(Serialize, Deserialize)]
struct StateBefore {
    what: String,
    name: String,
    value: Value,
}

#[derive(Serialize, Deserialize)]
struct EntryLine {
    what: String,
    #[serde(rename = "is")]
    entry: RecordedEntry,
}

impl Bundle {
    /// Of what was recorded; nothing is expected of it yet.
    pub(super) fn new(recording: Recording) -> Self {
        Self { recording, calls: BTreeMap::new(), expected: vec![] }
    }

    /// These lines are what is expected.
    pub(super) fn expect(&mut self, lines: Vec<String>) {
        self.expected = lines.into_iter().map(|line| (0, line)).collect();
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let Recording { group, handler_version, scope, key_rules, categories, state, entries, failed_tries } =
            &self.recording;
        let header = Header {
            what: "bundle".into(),
            version: VERSION,
            handler: group.clone(),
            handler_version: handler_version.clone(),
            scope: scope.clone(),
            key_rules: key_rules.clone(),
            failed_tries: *failed_tries,
        };
        let mut lines = vec![serde_json::to_string(&header)?];
        for (name, entry) in categories {
            let line = Category { what: "category".into(), name: name.clone(), entry: entry.clone() };
            lines.push(serde_json::to_string(&line)?);
        }
        for (name, value) in state {
            let line = StateBefore { what: "state-before".into(), name: name.clone(), value: value.clone() };
            lines.push(serde_json::to_string(&line)?);
        }
        for entry in entries {
            lines.push(serde_json::to_string(&EntryLine { what: "entry".into(), entry: entry.clone() })?);
        }
        for (event, calls) in &self.calls {
            for call in calls {
                lines.push(serde_json::to_string(&CallLine::new(*event, call))?);
            }
        }
        lines.extend(self.expected.iter().map(|(_, line)| line.clone()));
        test::write_lines(path, &lines)
    }

    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)
            .map_err(cannot_read(path, "keyrail record CATEGORY KEY -o FILE writes a bundle"))?;
        Ok(parse(&text).map_err(|why| Refused(format!("{} {why}", path.display())))?)
    }
}

fn parse(text: &str) -> Result<Bundle, String> {
    let mut lines =
        text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())).filter(|(_, line)| !line.is_empty());
    let no_bundle = "is no bundle: its first line is not that of keyrail record";
    let header: Header = match lines.next() {
        Some((number, line)) if of::<What>(number, line).is_ok_and(|what| what.what == "bundle") => of(number, line)?,
        _ => return Err(no_bundle.into()),
    };
    if header.version != VERSION {
        return Err(format!(
            "is a bundle of form {}, of a newer keyrail; this one reads form {VERSION}",
            header.version
        ));
    }
    let mut recording = Recording {
        group: header.handler,
        handler_version: header.handler_version,
        scope: header.scope,
        key_rules: header.key_rules,
        categories: BTreeMap::new(),
        state: vec![],
        entries: vec![],
        failed_tries: header.failed_tries,
    };
    let mut calls: BTreeMap<usize, Vec<HttpCall>> = BTreeMap::new();
    let mut expected = vec![];
    for (number, line) in lines {
        match of::<What>(number, line)?.what.as_str() {
            "category" => {
                let Category { name, entry, .. } = of(number, line)?;
                recording.categories.insert(name, entry);
            }
            "state-before" => {
                let StateBefore { name, value, .. } = of(number, line)?;
                recording.state.push((name, value));
            }
            "entry" => recording.entries.push(of::<EntryLine>(number, line)?.entry),
            calls::WHAT => {
                let line: CallLine = of(number, line)?;
                let events = recording.entries.len();
                if !(1..=events).contains(&line.event) {
                    return Err(format!(
                        "line {number}: a call of event {}, and the lines before it have {events}",
                        line.event
                    ));
                }
                calls.entry(line.event).or_default().push(line.into_call());
            }
            "event" | "emit" | "state" => expected.push((number, line.into())),
            other => return Err(format!("line {number}: {other:?} is no kind of line of a bundle")),
        }
    }
    Ok(Bundle { recording, calls, expected })
}

fn of<T: DeserializeOwned>(number: usize, line: &str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|error| format!("line {number}: {}", one_line(&error.to_string())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_no_bundle_is_refused() {
        let header = r#"{"what":"bundle","version":1,"handler":"h","handler_version":"1","scope":{"Key":{"category":"c","key":"k"}},"key_rules":{"backfill_word":"backfill"}}"#;
        assert!(parse(header).is_ok());
        let call = r#"{"what":"http-call","event":1,"try":1,"asks":{"method":"GET","url":"http://a/","headers":[]},"answer":"unanswered"}"#;
        for (text, says) in [
            ("", "is no bundle"),
            ("nonsense", "is no bundle"),
            (r#"{"what":"entry"}"#, "is no bundle"),
            (&header.replace("\"version\":1", "\"version\":2"), "newer"),
            (&format!("{header}\n{{\"what\":\"thing\"}}"), "line 2: \"thing\""),
            (&format!("{header}\n\nnonsense"), "line 3"),
            (&format!("{header}\n{{\"what\":\"http-call\",\"event\":1}}"), "line 2: missing field"),
            (&format!("{header}\n{call}"), "line 2: a call of event 1, and the lines before it have 0"),
        ] {
            let why = parse(text).err().unwrap();
            assert!(why.contains(says), "{text}: {why}");
        }
    }
}
