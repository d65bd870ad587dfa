//! What a host exports: that it counts what happened and no more, with bounded labels, and that dashboard, alert rules and
//! pages speak of metrics that there are.
#![allow(clippy::unwrap_used, missing_docs)]

mod counted;
mod host;
mod pages;
mod stage;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

/// Each line of a page that is no comment: series and value.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.map(|line| line.rsplit_once(' ').unwrap_or_else(|| panic!("not a sample: {line:?}")));
    pairs.map(|(series, value)| (series.to_string(), value.parse().unwrap())).collect()
}

/// `{name="value",…}` of a series.
fn labels(series: &str) -> Vec<(String, String)> {
    let Some((_, inside)) = series.split_once('{') else { return vec![] };
    let inside = inside.strip_suffix('}').unwrap();
    let pairs = inside.split("\",").map(|pair| pair.split_once("=\"").unwrap());
    pairs.map(|(name, value)| (name.to_string(), value.trim_end_matches('"').to_string())).collect()
}

fn name(series: &str) -> &str {
    series.split('{').next().unwrap_or_default()
}

/// As Prometheus reads it.
fn check_format(text: &str) {
    let checked = promtool(&["check", "metrics"], text);
    assert!(checked.is_empty(), "{checked}\n{text}");
}

/// What promtool has to say; nothing if all is well.
fn promtool(args: &[&str], input: &str) -> String {
    let mut command = Command::new("promtool");
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn();
    let mut child = child.expect("promtool cannot be started; install Prometheus, e.g. apt-get install prometheus");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    if output.status.success() && args[..2] != ["check", "metrics"] { String::new() } else { said }
}
