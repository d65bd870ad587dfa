//! `keyrail dlq list` and `show`.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use keyrail::access::Access;
use keyrail::service::DeadLetterView;

use super::super::failure::{Exit, one_line};
use super::super::head::show_event;
use super::super::numbers::{count, grouped};
use super::super::{table, text};
use super::{List, Show, walk};

/// Errors and reasons are cut to this in the table; keyrail dlq show has all of them.
const TEXT_SHOWN_MAX_CHARS: usize = 40;

pub(super) async fn list(args: List, access: &Access) -> Result<Exit> {
    let mut out = BufWriter::new(io::stdout().lock());
    let (mut rows, mut found, mut more) = (vec![], 0, false);
    walk(access, args.category.as_deref(), args.key.as_deref(), |letter| {
        more = found >= args.limit;
        if more {
            return Ok(false);
        }
        found += 1;
        if args.json {
            serde_json::to_writer(&mut out, &letter).map_err(io::Error::from)?;
            out.write_all(b"\n")?;
        } else {
            rows.push((cells(&letter), show_command(&letter)));
        }
        Ok(true)
    })
    .await?;
    if !args.json {
        table(&mut out, &rows, more)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn cells(letter: &DeadLetterView) -> Vec<String> {
    vec![
        letter.category.to_string(),
        letter.key.as_ref().map_or("-".into(), ToString::to_string),
        letter.id.clone(),
        letter.group.to_string(),
        if letter.event.name.is_empty() { "(unreadable)".into() } else { letter.event.name.clone() },
        letter.at.clone(),
        one_line(&letter.who),
        text::cut(&letter.reason, TEXT_SHOWN_MAX_CHARS),
        text::cut(&letter.error, TEXT_SHOWN_MAX_CHARS),
    ]
}

fn table(out: &mut impl Write, rows: &[(Vec<String>, String)], more: bool) -> io::Result<()> {
    let Some((_, command)) = rows.first() else { return writeln!(out, "no event was set aside") };
    let header = ["category", "key", "id", "handler", "event", "set aside", "who", "reason", "error"];
    table::write(out, &header, &[], &rows.iter().map(|(cells, _)| cells.clone()).collect::<Vec<_>>())?;
    let more = if more { ", and more: raise --limit" } else { "" };
    writeln!(out, "\n{}{more}; see {}", count(rows.len() as u64, "event"), text::typed(command))
}

fn place(letter: &DeadLetterView) -> String {
    let key = letter.key.as_ref().map(|key| format!("{} ", text::word(key.as_str()))).unwrap_or_default();
    format!("{} {key}{}", text::word(letter.category.as_str()), letter.id)
}

fn show_command(letter: &DeadLetterView) -> String {
    format!("keyrail dlq show {}", place(letter))
}

pub(super) async fn one(args: Show, access: &Access) -> Result<Exit> {
    let (key, id) = args.letter.letter()?;
    let letter = access.dead_letter(&args.category, key.as_deref(), &id).await?;
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&letter)?)?;
        return Ok(Exit::Done);
    }
    let name = letter.key.as_ref().map_or(letter.category.to_string(), |key| format!("{}/{key}", letter.category));
    writeln!(out, "dead letter {} of {name} ({})", letter.id, letter.group)?;
    let mut field = |name: &str, value: String| writeln!(out, "  {name:<9} {value}");
    if letter.event.name.is_empty() {
        field("event", "could not be read".into())?;
    } else {
        let event = &letter.event;
        field("event", format!("{} version {}, id {}", event.name, event.version, one_line(&event.id)))?;
    }
    field("stood at", letter.origin.clone())?;
    field("tries", format!("{} failed", grouped(u64::from(letter.attempts))))?;
    field("set aside", format!("{} by {}: {}", letter.at, one_line(&letter.who), one_line(&letter.reason)))?;
    if !letter.error.is_empty() {
        writeln!(out, "  last error:\n{}", text::indented(&text::frames_apart(&letter.error)))?;
    }
    show_event(&mut out, &letter.event, args.full)?;
    let place = place(&letter);
    writeln!(out, "\nnext, one of:")?;
    let typed = |command: &str| text::typed(&format!("keyrail dlq {command} {place} --reason TEXT"));
    writeln!(out, "  {}\n      publish it again, at the end of its stream", typed("redrive"))?;
    writeln!(out, "  {}\n      drop it for good", typed("purge"))?;
    Ok(Exit::Done)
}
