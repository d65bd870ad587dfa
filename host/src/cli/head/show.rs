//! A head, for people.

use std::io::{self, Write};

use keyrail::service::{ContentView, EventView, HeadView, NextTry};
use keyrail_ordering::OwnerId;

use super::super::failure::one_line;
use super::super::numbers::{count, grouped};
use super::super::{table, text};

/// Of the data, unless all of it is wanted.
const DATA_SHOWN_MAX_CHARS: usize = 4_000;
/// Of an error in the list.
const ERROR_SHOWN_MAX_CHARS: usize = 60;

/// Everything that is known of a head, and what to type next.
pub(super) fn head(out: &mut impl Write, head: &HeadView, full: bool) -> io::Result<()> {
    let (category, key, group) = (head.category.as_str(), head.key.as_str(), head.group.as_str());
    let place = format!("{category}/{key} ({group})");
    match &head.halted {
        Some(halted) => writeln!(
            out,
            "{place} is halted at {}: {} after {}",
            head.entry,
            halted.cause,
            tries(halted.attempts, "failed try", "failed tries")
        )?,
        None => writeln!(out, "{place} is at {}", head.entry)?,
    }
    let mut field = |name: &str, value: String| writeln!(out, "  {name:<9} {value}");
    match &head.content {
        ContentView::Event(event) => {
            field("event", format!("{} version {}, id {}", event.name, event.version, one_line(&event.id)))?;
        }
        ContentView::Undecodable(why) => field("event", format!("cannot be read: {}", one_line(why)))?,
        ContentView::Missing => field("event", "is gone from the broker: deleted or trimmed by somebody else".into())?,
    }
    field("recorded", head.recorded_at.clone().unwrap_or_else(|| "unknown".into()))?;
    field("lane", head.lane.as_str().into())?;
    field("waiting", format!("{}, this one included", count(head.waiting, "event")))?;
    field("owner", head.owner.as_ref().map_or("nobody", OwnerId::as_str).into())?;
    let crashes = match head.crashes {
        0 => String::new(),
        crashes => format!("; {} died with it", count(u64::from(crashes), "host")),
    };
    field("tries", format!("{} failed{crashes}", grouped(u64::from(head.attempts))))?;
    field("next try", next_try(head))?;
    if let Some(halted) = &head.halted {
        field("handler", format!("version {} of {group} halted it", one_line(&halted.handler_version)))?;
    }
    if head.paused {
        field("paused", text::typed("yes; see keyrail paused"))?;
    }
    if let Some(error) = &head.last_error {
        writeln!(out, "  last error:\n{}", text::indented(&text::frames_apart(error)))?;
    }
    if let ContentView::Event(event) = &head.content {
        self::event(out, event, full)?;
    }
    next(out, head)
}

/// Headers and data of an event.
pub(crate) fn event(out: &mut impl Write, event: &EventView, full: bool) -> io::Result<()> {
    if !event.headers.0.is_empty() {
        writeln!(out, "  headers:")?;
        for (name, value) in &event.headers.0 {
            writeln!(out, "    {}: {}", one_line(name), one_line(value.get()))?;
        }
    }
    let data = text::pretty_json(event.data.get());
    let shown: String = if full { data.clone() } else { data.chars().take(DATA_SHOWN_MAX_CHARS).collect() };
    writeln!(out, "  data ({}):\n{}", count(event.data.get().len() as u64, "byte"), text::indented(&shown))?;
    if shown.len() < data.len() {
        writeln!(out, "    … cut; --full shows all of it")?;
    }
    Ok(())
}

fn next_try(head: &HeadView) -> String {
    match head.next_try {
        NextTry::Running => "under way, or about to be".into(),
        NextTry::Due => "as soon as a host takes the key".into(),
        NextTry::InMs(ms) => format!("in {:.1} s", ms as f64 / 1_000.0),
        NextTry::Never if head.halted.is_some() => "none, until you decide".into(),
        NextTry::Never => "none while it is paused".into(),
    }
}

fn next(out: &mut impl Write, head: &HeadView) -> io::Result<()> {
    if head.halted.is_none() && head.attempts == 0 {
        return Ok(());
    }
    let (category, key, group) = (head.category.as_str(), head.key.as_str(), head.group.as_str());
    writeln!(out, "\nnext, one of:")?;
    if matches!(head.content, ContentView::Event(_)) {
        let attempt = text::typed(&text::head_command("try", category, key, group));
        writeln!(
            out,
            "  {attempt} --with FIXED.wasm\n      see what another version would make of it; nothing is changed"
        )?;
    }
    for (verb, why) in [
        ("retry", "try it again, with all its tries, on the version that is deployed"),
        ("set-aside", "go on without it, and keep it"),
        ("skip", "go on without it, for good"),
    ] {
        let command = text::typed(&text::head_command(verb, category, key, group));
        writeln!(out, "  {command} --expect {} --reason TEXT\n      {why}", head.entry)?;
    }
    Ok(())
}

/// The heads of several groups.
pub(super) fn several(out: &mut impl Write, heads: &[HeadView]) -> io::Result<()> {
    let cells = |head: &HeadView| {
        let state = match &head.halted {
            Some(halted) => format!("halted: {}", halted.cause),
            None => next_try(head),
        };
        let error = head.last_error.as_deref().map(|error| text::gist(error, ERROR_SHOWN_MAX_CHARS));
        vec![
            head.group.to_string(),
            head.entry.clone(),
            head.waiting.to_string(),
            head.attempts.to_string(),
            state,
            error.unwrap_or_default(),
        ]
    };
    let header = ["handler", "head", "waiting", "attempts", "next try", "last error"];
    table::write(out, &header, &["waiting", "attempts"], &heads.iter().map(cells).collect::<Vec<_>>())
}

fn tries(number: u32, one: &str, many: &str) -> String {
    format!("{} {}", grouped(u64::from(number)), if number == 1 { one } else { many })
}
