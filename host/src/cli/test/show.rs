//! What came of a rehearsal, for people.

use std::io::{self, Write};

use anyhow::Result;
use keyrail::trial::{Ending, Handled, Happened, LogLine, State, shown_value};
use keyrail_ordering::{HaltCause, PartitionId, Scope};

use super::super::failure::one_line;
use super::super::numbers::count;
use super::super::text;

/// Of a value, an emit, a line that was logged.
const SHOWN_MAX_CHARS: usize = 200;

/// Each event with what came of it, then the state of each key.
pub(crate) fn all<'a>(
    happened: &[(u64, Happened)],
    states: impl Iterator<Item = (&'a PartitionId, &'a State)>,
) -> Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for (line, one) in happened {
        event(&mut out, *line, one)?;
    }
    let mut states = states.filter(|(_, state)| !state.is_empty()).peekable();
    if states.peek().is_some() {
        writeln!(out, "\nstate:")?;
    }
    for (partition, state) in states {
        writeln!(out, "  {} ({})", place(partition), partition.group)?;
        for (name, value) in state {
            writeln!(out, "    {name} = {}", short(shown_value(value).get()))?;
        }
    }
    writeln!(out, "\n{}", summary(happened))?;
    Ok(out.flush()?)
}

fn event(out: &mut impl Write, line: u64, one: &Happened) -> io::Result<()> {
    let event = &one.event;
    let key = event.key.as_ref().map(|key| format!("/{key}")).unwrap_or_default();
    let by = one.emitted_by.as_ref().map(|by| format!(", emitted by {by}")).unwrap_or_default();
    writeln!(
        out,
        "{line:>4}  {}{} {}{by} → {}: {}",
        event.category,
        one_line(&key),
        event.name,
        one.handler,
        ending(&one.handled, one.partition.is_some())
    )?;
    failure_lines(out, &one.handled)?;
    for outgoing in one.handled.emits() {
        let data = String::from_utf8_lossy(&outgoing.event.data).into_owned();
        writeln!(out, "        emits {} {} {}", outgoing.event.category, outgoing.event.name, short(&data))?;
    }
    for note in &one.handled.notes {
        writeln!(out, "        note: {}", one_line(note))?;
    }
    indented_logs(out, &one.handled.logs)
}

fn ending(handled: &Handled, has_key: bool) -> String {
    let tries = handled.failures.len();
    let stands = if has_key { "the key stands still" } else { "the event is set aside" };
    match &handled.ending {
        Ending::Done(_) if tries == 0 => "done".into(),
        Ending::Done(_) => format!("done at try {}", tries + 1),
        Ending::NotHandled => "not its business".into(),
        Ending::Behind => "not run: its key stands still on an earlier event".into(),
        Ending::GivenUp(HaltCause::Rejected) => format!("rejected: {stands}"),
        Ending::GivenUp(cause) => format!("{cause} after {}: {stands}", failed(tries)),
    }
}

fn failed(tries: usize) -> String {
    if tries == 1 { "1 failed try".into() } else { format!("{tries} failed tries") }
}

/// A line for each try that failed.
fn failure_lines(out: &mut impl Write, handled: &Handled) -> io::Result<()> {
    let mut number = 1;
    // Most tries of an event fail alike.
    for alike in handled.failures.chunk_by(|one, other| one == other) {
        let tries = match alike.len() {
            1 => format!("try {number}"),
            more => format!("tries {number} to {}", number + more - 1),
        };
        number += alike.len();
        writeln!(out, "        {tries}: {}: {}", alike[0].kind.as_str(), one_line(&alike[0].error))?;
    }
    Ok(())
}

/// A line for each that was logged.
pub(crate) fn indented_logs(out: &mut impl Write, logs: &[LogLine]) -> io::Result<()> {
    for line in logs {
        writeln!(out, "        log {} {}: {}", line.level, one_line(&line.context), short(&line.message))?;
    }
    Ok(())
}

/// The begin of a text, on one line.
pub(crate) fn short(value: &str) -> String {
    text::cut(value, SHOWN_MAX_CHARS)
}

fn place(partition: &PartitionId) -> String {
    match &partition.scope {
        Scope::Key { category, key } => format!("{category}/{key}"),
        Scope::Correlation { value } => value.to_string(),
    }
}

fn summary(happened: &[(u64, Happened)]) -> String {
    let number = |wanted: fn(&Ending) -> bool| happened.iter().filter(|(_, one)| wanted(&one.handled.ending)).count();
    let parts = [
        (number(|ending| matches!(ending, Ending::Done(_))), "done"),
        (number(|ending| matches!(ending, Ending::GivenUp(_))), "given up"),
        (number(|ending| matches!(ending, Ending::Behind)), "not run"),
        (number(|ending| matches!(ending, Ending::NotHandled)), "not handled"),
    ];
    let parts: Vec<_> =
        parts.iter().filter(|(number, _)| *number > 0).map(|(number, what)| format!("{number} {what}")).collect();
    let handled = count(happened.len() as u64, "event");
    if parts.is_empty() { handled } else { format!("{handled}: {}", parts.join(", ")) }
}
