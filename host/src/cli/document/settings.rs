//! The page of all settings.

use std::fmt::Write as _;

use keyrail::config::Setting;
use serde_json::Value;

use crate::cli::numbers::grouped;

const INTRODUCTION: &str = "\
# Settings

<!-- Made by `keyrail config reference`. Change the documentation of host/src/config, then run `cargo xtask reference`. -->

Four layers, each over the one before: defaults, `keyrail.toml` in the working folder (or `--config FILE`), variables of the environment,
flags (`--set NAME=VALUE`). `keyrail config show` tells what is in force and which layer it comes from; a name that does not exist is
refused everywhere, with the names that do. `keyrail config schema` prints a JSON Schema for editors. Settings are read once, at the start.

A name ends with its unit: `_ms` are milliseconds, `_bytes` bytes; what has neither is a number of things. `_max` is a limit.
A name in a section stands under `[SECTION]` in the file:

```toml
broker = \"redis://10.0.0.5\"

[engine]
lease_ttl_ms = 5_000
```
";

/// All of them, in Markdown.
pub(super) fn markdown(sections: &[(String, String, Vec<Setting>)]) -> String {
    let mut page = String::from(INTRODUCTION);
    for (name, text, settings) in sections {
        if name.is_empty() {
            page.push('\n');
        } else {
            put(&mut page, format_args!("\n## `[{name}]`\n\n{}\n\n", escaped(text)));
        }
        page.push_str("| setting, variable | default | |\n|---|---|---|\n");
        for setting in settings {
            let Setting { name, variable, .. } = setting;
            let (default, text) = (default(setting), told(setting));
            put(&mut page, format_args!("| `{name}`<br>`{variable}` | {default} | {text} |\n"));
        }
    }
    page
}

fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    // A String takes all that is written to it.
    let _ = page.write_fmt(text);
}

fn told(setting: &Setting) -> String {
    let text = escaped(&setting.text);
    if setting.choices.is_empty() {
        return text;
    }
    let choices: Vec<_> = setting.choices.iter().map(|choice| format!("`{choice}`")).collect();
    format!("{text} One of {}.", choices.join(", "))
}

/// What ends a cell of a table, or would be taken for a tag.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

fn default(setting: &Setting) -> String {
    match &setting.default {
        Value::String(text) if text.is_empty() => "empty".into(),
        Value::String(text) => format!("`{text}`"),
        Value::Number(number) => match (number.as_u64(), setting.unit) {
            (Some(ms), Some("ms")) => with_words(ms, "ms", duration(ms)),
            (Some(bytes), Some("bytes")) => with_words(bytes, "bytes", size(bytes)),
            (Some(count), _) => grouped(count),
            (None, _) => number.to_string(),
        },
        other => other.to_string(),
    }
}

fn with_words(number: u64, unit: &str, words: Option<String>) -> String {
    let number = grouped(number);
    words.map_or_else(|| format!("{number} {unit}"), |words| format!("{number} {unit} ({words})"))
}

/// In the largest unit of time that leaves no rest.
fn duration(ms: u64) -> Option<String> {
    const UNITS: [(u64, &str); 4] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    whole(ms, &UNITS)
}

/// In the largest unit of size that leaves no rest.
fn size(bytes: u64) -> Option<String> {
    whole(bytes, &[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")])
}

fn whole(number: u64, units: &[(u64, &str)]) -> Option<String> {
    let (unit, name) = units.iter().find(|(unit, _)| number > 0 && number.is_multiple_of(*unit))?;
    Some(format!("{} {name}", grouped(number / unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_in_words_where_nothing_is_rounded() {
        assert_eq!(duration(86_400_000).as_deref(), Some("1 d"));
        assert_eq!(duration(90_000).as_deref(), Some("90 s"));
        assert_eq!(duration(750), None);
        assert_eq!(duration(0), None);
        assert_eq!(size(16 << 20).as_deref(), Some("16 MiB"));
        assert_eq!(size(1_000), None);
    }

    #[test]
    fn a_cell_stays_a_cell() {
        assert_eq!(escaped("a|b <c>"), "a\\|b &lt;c>");
    }
}
