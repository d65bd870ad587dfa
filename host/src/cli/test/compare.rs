//! Comparing what came out with what a file expects.
//!
//! Of the kinds of lines that the file has, all must be there, in its order, and no others; a kind that it does not have is not
//! compared. Of a line only the members that it names are compared: what differs from build to build can be left out.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

use super::super::failure::{Exit, Refused, cannot_read, one_line, printed};
use super::super::numbers::count;

/// The member that says what a line is about.
const KIND: &str = "what";
/// Members that are themselves compared member by member.
const PARTIAL: [&str; 1] = ["emits"];
/// Pairs of lines that are compared at most, to find out which of them belong together.
const PAIRS_MAX: usize = 25_000_000;
/// Differences that are printed.
const SHOWN_MAX: usize = 200;

/// A file of expected lines.
#[derive(Debug)]
pub(crate) struct Expectation {
    path: PathBuf,
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    number: usize,
    text: String,
    value: Value,
}

/// A line that is on one side only.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Difference {
    Missing { number: usize, text: String },
    Unexpected(String),
}

impl Expectation {
    /// Reads it; lines that begin with `//` are comments.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(cannot_read(path, "--update writes what comes out there"))?;
        Ok(Self { path: path.into(), lines: parse(&text).map_err(|why| Refused(format!("{} {why}", path.display())))? })
    }

    /// The lines of a bundle that say what is expected; none if it has none.
    pub(crate) fn of_bundle(path: &Path, lines: &[(usize, String)]) -> Result<Option<Self>> {
        let lines = lines.iter().map(|(number, text)| line(*number, text)).collect::<Result<Vec<_>, _>>();
        let lines = lines.map_err(|why| Refused(format!("{} {why}", path.display())))?;
        Ok((!lines.is_empty()).then(|| Self { path: path.into(), lines }))
    }

    /// Prints what differs, to standard error, and finds the exit code.
    pub(crate) fn judge(&self, actual: &[String]) -> Result<Exit> {
        let differences = self.differences(actual)?;
        if differences.is_empty() {
            printed(
                writeln!(io::stdout(), "as expected: {}", count(self.lines.len() as u64, "line")).map_err(Into::into),
            )?;
            return Ok(Exit::Done);
        }
        eprintln!("{}", self.shown(&differences));
        Ok(Exit::Failed)
    }

    fn differences(&self, actual: &[String]) -> Result<Vec<Difference>> {
        let actual = actual.iter().map(|line| Ok((line.as_str(), serde_json::from_str(line)?)));
        let actual = actual.collect::<Result<Vec<(&str, Value)>>>()?;
        let mut kinds: Vec<&Value> = vec![];
        for line in &self.lines {
            if !kinds.contains(&&line.value[KIND]) {
                kinds.push(&line.value[KIND]);
            }
        }
        let mut differences = vec![];
        for kind in kinds {
            let expected: Vec<_> = self.lines.iter().filter(|line| line.value[KIND] == *kind).collect();
            let actual: Vec<_> = actual.iter().filter(|(_, value)| value[KIND] == *kind).collect();
            differences.extend(difference(&expected, &actual));
        }
        Ok(differences)
    }

    fn shown(&self, differences: &[Difference]) -> String {
        let mut text = format!("{} differs from what came out (- expected, + came out):", self.path.display());
        for difference in differences.iter().take(SHOWN_MAX) {
            // Writing to a String never fails.
            let _ = match difference {
                Difference::Missing { number, text: line } => write!(text, "\n- {line}    (line {number})"),
                Difference::Unexpected(line) => write!(text, "\n+ {line}"),
            };
        }
        if differences.len() > SHOWN_MAX {
            let _ = write!(text, "\nand {} more", differences.len() - SHOWN_MAX);
        }
        text + "\nif this is right, run it again with --update"
    }
}

fn parse(text: &str) -> Result<Vec<Line>, String> {
    let mut lines = vec![];
    for (index, line) in text.lines().enumerate() {
        let line = line.trim().trim_start_matches('\u{feff}');
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        lines.push(self::line(index + 1, line)?);
    }
    if lines.is_empty() {
        return Err("expects nothing: it has no line; --update writes what comes out there".into());
    }
    Ok(lines)
}

fn line(number: usize, text: &str) -> Result<Line, String> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("line {number}: {}", one_line(&error.to_string())))?;
    match value.get(KIND).and_then(Value::as_str) {
        Some("event" | "emit" | "state") => Ok(Line { number, text: text.into(), value }),
        _ => Err(format!("line {number}: it needs a member \"what\", which is \"event\", \"emit\" or \"state\"")),
    }
}

/// Whether the actual line has every member that the expected one names.
fn agrees(expected: &Value, actual: &Value) -> bool {
    let (Some(expected), Some(actual)) = (expected.as_object(), actual.as_object()) else { return expected == actual };
    expected.iter().all(|(name, value)| match actual.get(name) {
        Some(other) if PARTIAL.contains(&name.as_str()) => agrees(value, other),
        Some(other) => value == other,
        None => value.is_null(),
    })
}

/// What is on one side only, by the longest sequence that both have.
fn difference(expected: &[&Line], actual: &[&(&str, Value)]) -> Vec<Difference> {
    let same = |(line, (_, value)): (&&Line, &&(&str, Value))| agrees(&line.value, value);
    let head = expected.iter().zip(actual).take_while(|pair| same(*pair)).count();
    let (expected, actual) = (&expected[head..], &actual[head..]);
    let tail = expected.iter().rev().zip(actual.iter().rev()).take_while(|pair| same(*pair)).count();
    let (expected, actual) = (&expected[..expected.len() - tail], &actual[..actual.len() - tail]);

    let missing = |line: &&Line| Difference::Missing { number: line.number, text: line.text.clone() };
    let unexpected = |line: &&(&str, Value)| Difference::Unexpected(line.0.into());
    if expected.len().saturating_mul(actual.len()) > PAIRS_MAX {
        return expected.iter().map(missing).chain(actual.iter().map(unexpected)).collect();
    }
    // `common[i][j]`: how many lines the rest of `expected` from i and of `actual` from j have in common.
    let mut common = vec![vec![0_u32; actual.len() + 1]; expected.len() + 1];
    for i in (0..expected.len()).rev() {
        for j in (0..actual.len()).rev() {
            common[i][j] = if agrees(&expected[i].value, &actual[j].1) {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut found) = (0, 0, vec![]);
    while i < expected.len() || j < actual.len() {
        if i < expected.len() && j < actual.len() && agrees(&expected[i].value, &actual[j].1) {
            (i, j) = (i + 1, j + 1);
        } else if j == actual.len() || (i < expected.len() && common[i + 1][j] >= common[i][j + 1]) {
            found.push(missing(&expected[i]));
            i += 1;
        } else {
            found.push(unexpected(&actual[j]));
            j += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn differences(expected: &str, actual: &[&str]) -> Vec<String> {
        let expectation = Expectation { path: "x".into(), lines: parse(expected).unwrap() };
        let actual: Vec<_> = actual.iter().map(|line| (*line).to_string()).collect();
        let shown = expectation.differences(&actual).unwrap().into_iter().map(|difference| match difference {
            Difference::Missing { number, .. } => format!("-{number}"),
            Difference::Unexpected(line) => format!("+{line}"),
        });
        shown.collect()
    }

    const A: &str = r#"{"what":"state","key":"a","value":1}"#;
    const B: &str = r#"{"what":"state","key":"b","value":2}"#;
    const EMIT: &str = r#"{"what":"emit","key":"a","emits":{"category":"x","version":1,"data":{"n":1,"m":2}}}"#;

    #[test]
    fn only_what_a_line_names_is_compared_and_only_kinds_that_are_there() {
        let none: [&str; 0] = [];
        assert_eq!(differences(&format!("{A}\n// a note\n\n{B}"), &[EMIT, A, B]), none);
        assert_eq!(differences("{\"what\":\"state\",\"key\":\"a\"}\n{\"what\":\"state\"}", &[A, B]), none);
        let partial = r#"{"what":"emit","emits":{"data":{"m":2,"n":1}}}"#;
        assert_eq!(differences(partial, &[EMIT]), none);
        let less = r#"{"what":"emit","emits":{"data":{"n":1}}}"#;
        assert_eq!(differences(less, &[EMIT]), ["-1".to_string(), format!("+{EMIT}")], "data is compared whole");
    }

    #[test]
    fn a_line_too_many_or_too_few_or_in_another_place_is_a_difference() {
        assert_eq!(differences(A, &[A, B]), [format!("+{B}")]);
        assert_eq!(differences(&format!("{A}\n{B}"), &[B]), ["-1"]);
        assert_eq!(differences(&format!("{A}\n{B}"), &[B, A]), ["-1".to_string(), format!("+{A}")]);
        assert_eq!(differences(A, &[]), ["-1"]);
    }

    #[test]
    fn a_file_that_expects_nothing_or_is_none_is_refused() {
        for (text, says) in [("", "no line"), ("nonsense", "line 1"), ("\n{\"key\":\"a\"}", "line 2: it needs")] {
            assert!(parse(text).unwrap_err().contains(says), "{text}");
        }
    }
}
