//! The TOML text of a manifest. Read by hand and not by serde, so that every problem is listed at once, with its line.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{HostPattern, HttpGrant, HttpMethod, Manifest, ManifestError, SecretSource};
use crate::limits::{Limits, OPERATORS};

type Place = Range<usize>;
type Value<'a> = Spanned<DeValue<'a>>;

/// The longest name of a configuration value.
const NAME_MAX_BYTES: usize = 256;

pub(super) fn parse(text: &str) -> Result<Manifest, ManifestError> {
    let mut reader = Reader { text, problems: Vec::new() };
    let mut manifest = Manifest::default();
    match DeTable::parse(text) {
        Ok(table) => reader.manifest(table.get_ref(), &mut manifest),
        Err(error) => reader.problem(&error.span().unwrap_or_default(), error.message()),
    }
    if reader.problems.is_empty() { Ok(manifest) } else { Err(ManifestError(reader.problems)) }
}

struct Reader<'a> {
    text: &'a str,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn problem(&mut self, place: &Place, what: impl AsRef<str>) {
        // A place within the text, or its end.
        let before = self.text.get(..place.start).unwrap_or(self.text);
        let line = before.split('\n').count();
        let what = what.as_ref().split_whitespace().collect::<Vec<_>>().join(" ");
        self.problems.push(format!("line {line}: {what}"));
    }

    fn unknown(&mut self, place: &Place, section: &str, name: &str, known: &[&str]) {
        let at = if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
        let hint = match nearest(name, known) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("there are: {}", known.join(", ")),
        };
        self.problem(place, format!("no such name: {at}; {hint}"));
    }

    fn wrong(&mut self, value: &Value<'_>, name: &str, wanted: &str) {
        let is = value.get_ref().type_str();
        self.problem(&value.span(), format!("{name} is {is}; it must be {wanted}"));
    }

    fn table<'a, 'b>(&mut self, value: &'a Value<'b>, name: &str, example: &str) -> Option<&'a DeTable<'b>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong(value, name, &format!("a table, like {example}"));
        }
        table
    }

    fn text<'a>(&mut self, value: &'a Value<'_>, name: &str) -> Option<&'a str> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong(value, name, "a text");
        }
        text
    }

    fn manifest(&mut self, table: &DeTable<'_>, manifest: &mut Manifest) {
        for (name, value) in table {
            match name.get_ref().as_ref() {
                "limits" => self.limits(value, manifest),
                "grants" => self.grants(value, manifest),
                other => self.unknown(&name.span(), "", other, &["limits", "grants"]),
            }
        }
    }

    fn limits(&mut self, value: &Value<'_>, manifest: &mut Manifest) {
        let Some(table) = self.table(value, "limits", "[limits]") else { return };
        for (name, value) in table {
            let (place, name) = (name.span(), name.get_ref().as_ref());
            if OPERATORS.contains(&name) {
                self.problem(
                    &place,
                    format!("limits.{name} holds for the whole host, so only its operator sets it, as runtime.{name}"),
                );
                continue;
            }
            let digits = |value: &Value<'_>| {
                let integer = value.get_ref().as_integer()?;
                u64::from_str_radix(integer.as_str(), integer.radix()).ok()
            };
            match digits(value) {
                Some(number) if manifest.limits.set(name, number) => {}
                Some(_) => self.unknown(&place, "limits", name, Limits::NAMES),
                None if Limits::NAMES.contains(&name) => {
                    self.wrong(value, &format!("limits.{name}"), "a whole number, not negative");
                }
                None => self.unknown(&place, "limits", name, Limits::NAMES),
            }
        }
    }

    fn grants(&mut self, value: &Value<'_>, manifest: &mut Manifest) {
        let Some(table) = self.table(value, "grants", "[grants]") else { return };
        let grants = &mut manifest.grants;
        for (name, value) in table {
            match name.get_ref().as_ref() {
                "http" => self.http(value, &mut grants.http),
                "config" => {
                    for (name, value) in self.table(value, "grants.config", "[grants.config]").into_iter().flatten() {
                        let shown = format!("grants.config.{}", name.get_ref());
                        self.name(name);
                        if let Some(text) = self.text(value, &shown) {
                            grants.config.insert(name.get_ref().to_string(), text.into());
                        }
                    }
                }
                "secrets" => {
                    for (name, value) in self.table(value, "grants.secrets", "[grants.secrets]").into_iter().flatten() {
                        self.name(name);
                        if let Some(source) = self.secret(name.get_ref(), value) {
                            grants.secrets.insert(name.get_ref().to_string(), source);
                        }
                    }
                }
                "clock" => self.switch(value, "grants.clock", &mut grants.clock),
                "random" => self.switch(value, "grants.random", &mut grants.random),
                other => {
                    let known = ["http", "config", "secrets", "clock", "random"];
                    self.unknown(&name.span(), "grants", other, &known);
                }
            }
        }
        let both: Vec<_> = grants.secrets.keys().filter(|name| grants.config.contains_key(*name)).cloned().collect();
        for name in both {
            self.problem(
                &value.span(),
                format!("{name} is both in grants.config and in grants.secrets; handlers read one name"),
            );
        }
    }

    fn name(&mut self, name: &Spanned<std::borrow::Cow<'_, str>>) {
        let text = name.get_ref();
        if text.is_empty() || text.len() > NAME_MAX_BYTES || text.chars().any(char::is_control) {
            self.problem(
                &name.span(),
                format!("{text:?} is no name: 1 to {NAME_MAX_BYTES} bytes without control characters"),
            );
        }
    }

    fn switch(&mut self, value: &Value<'_>, name: &str, switch: &mut bool) {
        match value.get_ref().as_bool() {
            Some(is_on) => *switch = is_on,
            None => self.wrong(value, name, "true or false"),
        }
    }

    fn secret(&mut self, name: &str, value: &Value<'_>) -> Option<SecretSource> {
        let name = format!("grants.secrets.{name}");
        const EXAMPLE: &str = "{ env = \"VARIABLE\" } or { file = \"PATH\" }";
        // A text here might be the secret itself, so no value is ever shown.
        let table = self.table(value, &name, EXAMPLE)?;
        let mut sources = Vec::new();
        for (kind, source) in table {
            match kind.get_ref().as_ref() {
                "env" => sources.push(SecretSource::Env(self.text(source, &format!("{name}.env"))?.into())),
                "file" => sources.push(SecretSource::File(self.text(source, &format!("{name}.file"))?.into())),
                other => self.unknown(&kind.span(), &name, other, &["env", "file"]),
            }
        }
        if sources.len() != 1 {
            self.problem(&value.span(), format!("{name} needs one place to be read from: {EXAMPLE}"));
        }
        sources.pop()
    }

    fn http(&mut self, value: &Value<'_>, grants: &mut Vec<HttpGrant>) {
        let Some(list) = value.get_ref().as_array() else {
            return self.wrong(value, "grants.http", "a list; begin each with [[grants.http]]");
        };
        for value in list {
            let Some(table) = self.table(value, "grants.http", "[[grants.http]]") else { continue };
            let mut grant = HttpGrant { hosts: vec![], methods: vec![] };
            for (name, value) in table {
                match name.get_ref().as_ref() {
                    "hosts" => grant.hosts = self.list(value, "grants.http.hosts", HostPattern::parse),
                    "methods" => grant.methods = self.list(value, "grants.http.methods", HttpMethod::parse),
                    other => self.unknown(&name.span(), "grants.http", other, &["hosts", "methods"]),
                }
            }
            for (name, example) in [("hosts", "hosts = [\"api.example.org\"]"), ("methods", "methods = [\"GET\"]")] {
                if table.get(name).is_none() {
                    self.problem(&value.span(), format!("grants.http lacks {name}; add {example}"));
                }
            }
            grants.push(grant);
        }
    }

    fn list<T>(&mut self, value: &Value<'_>, name: &str, read: fn(&str) -> Result<T, String>) -> Vec<T> {
        let Some(list) = value.get_ref().as_array() else {
            self.wrong(value, name, "a list of texts");
            return vec![];
        };
        let mut read_all = Vec::new();
        for value in list {
            match self.text(value, name).map(read) {
                Some(Ok(item)) => read_all.push(item),
                Some(Err(why)) => self.problem(&value.span(), format!("{name}: {why}")),
                None => {}
            }
        }
        if list.is_empty() {
            self.problem(&value.span(), format!("{name} is empty"));
        }
        read_all
    }
}

/// The known name that looks most like this one, if any does.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let with_distance = known.iter().map(|known| (distance(name, known), *known));
    let (distance, near) = with_distance.min()?;
    (distance <= near.len().max(name.len()) / 3).then_some(near)
}

/// Characters to add, drop or change to make one text of the other (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<_> = other.chars().collect();
    let mut row: Vec<_> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
[limits]
memory_max_bytes = 0x4000000
cpu_max_ms = 2_000

[[grants.http]]
hosts = ["api.example.org", "*.example.net:8443"]
methods = ["GET", "POST"]

[grants]
clock = true
random = true

[grants.config]
currency = "EUR"

[grants.secrets]
token = { env = "KEYRAIL_SECRET_TOKEN" }
password = { file = "password" }
"#;

    fn problems(text: &str) -> Vec<String> {
        Manifest::parse(text).unwrap_err().0
    }

    #[test]
    fn a_whole_manifest_is_read_and_survives_json() {
        let manifest = Manifest::parse(WHOLE).unwrap();
        assert_eq!((manifest.limits.memory_max_bytes, manifest.limits.cpu_max_ms), (Some(64 << 20), Some(2_000)));
        assert_eq!(manifest.grants.http[0].hosts[1].to_string(), "*.example.net:8443");
        assert_eq!(manifest.grants.config["currency"], "EUR");
        assert_eq!(manifest.grants.secrets["token"], SecretSource::Env("KEYRAIL_SECRET_TOKEN".into()));
        assert!(manifest.grants.clock && manifest.grants.random);
        let json = serde_json::to_string(&manifest).unwrap();
        assert_eq!(serde_json::from_str::<Manifest>(&json).unwrap(), manifest);
        assert_eq!(Manifest::parse("").unwrap(), Manifest::default());
    }

    #[test]
    fn every_problem_is_listed_with_its_line_and_the_nearest_name() {
        let text = "[limits]\ncpu_max = 1\nwall_max_ms = \"x\"\nemits_max = -1\nstack_max_bytes = 1\n[grant]\n[grants]\nhtpp = []\nclock = 1\n";
        let problems = problems(text);
        let expected = [
            "line 2: no such name: limits.cpu_max; did you mean cpu_max_ms?",
            "line 3: limits.wall_max_ms is string; it must be a whole number",
            "line 4: limits.emits_max is integer; it must be a whole number, not negative",
            "line 5: limits.stack_max_bytes holds for the whole host",
            "line 6: no such name: grant; did you mean grants?",
            "line 8: no such name: grants.htpp; did you mean http?",
            "line 9: grants.clock is integer; it must be true or false",
        ];
        assert_eq!(problems.len(), expected.len(), "{problems:#?}");
        for part in expected {
            assert!(problems.iter().any(|problem| problem.starts_with(part)), "{part:?} is not in {problems:#?}");
        }
    }

    #[test]
    fn bad_grants_are_told_and_secrets_never_shown() {
        let http = problems(
            "[[grants.http]]\nhosts = [\"*\", 5]\nmethods = [\"get\", \"CONNECT\"]\n[[grants.http]]\nhosts = []",
        );
        assert_eq!(http.len(), 6, "{http:#?}");
        let secrets = problems(
            "[grants]\nconfig = { a = \"1\" }\n[grants.secrets]\na = { env = \"A\" }\nb = \"hunter2\"\nc = { env = \"A\", file = \"B\" }\nd = {}\n",
        );
        assert_eq!(secrets.len(), 4, "{secrets:#?}");
        assert!(!secrets.join(" ").contains("hunter2"));
    }

    #[test]
    fn what_is_no_toml_is_told_in_one_line() {
        let problems = problems("[limits\ncpu_max_ms = 1");
        assert!(problems.len() == 1 && problems[0].starts_with("line 1: "), "{problems:?}");
        assert!(!problems[0].contains('\n'));
    }

    #[test]
    fn json_with_an_unknown_name_is_refused() {
        for json in
            [r#"{"limit":{}}"#, r#"{"limits":{"cpu":1}}"#, r#"{"grants":{"http":[{"hosts":["*"],"methods":[]}]}}"#]
        {
            assert!(serde_json::from_str::<Manifest>(json).is_err(), "{json}");
        }
    }
}
