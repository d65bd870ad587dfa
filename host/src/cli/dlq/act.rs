//! `keyrail dlq redrive` and `purge`, of one event or of all.

use std::io::{self, Write};

use anyhow::{Context, Result};
use keyrail::access::Access;
use serde::Serialize;

use super::super::failure::{Exit, Usage, printed};
use super::super::numbers::count;
use super::super::text;
use super::{Act, Letter, walk};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Redrive,
    Purge,
}

#[derive(Serialize)]
struct Report<'a> {
    action: &'a str,
    category: &'a str,
    key: Option<&'a str>,
    id: &'a str,
    /// Where it is now, if it was published again.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
}

pub(super) async fn run(action: Action, args: Act, access: &Access) -> Result<Exit> {
    let letters = if args.all { all(&args, access).await? } else { vec![args.letter.letter()?] };
    let verb = if action == Action::Redrive { "redrive" } else { "purge" };
    if letters.is_empty() {
        // Nothing to do, and nothing printed for a program that reads.
        if !args.json {
            printed(writeln!(io::stdout(), "no event is set aside there").map_err(Into::into))?;
        }
        return Ok(Exit::Done);
    }
    if args.all && !args.yes {
        let found = count(letters.len() as u64, "event");
        let place: Vec<_> =
            std::iter::once(&args.category).chain(&args.letter.first).map(|part| text::word(part)).collect();
        let command = format!("keyrail dlq {verb} {} --all --yes --reason TEXT", place.join(" "));
        return Err(
            Usage(format!("{found} would go; nothing was changed: see keyrail dlq list, then {command}")).into()
        );
    }
    let by = args.by.who_and_why();
    for (done, (key, id)) in letters.iter().enumerate() {
        let letter = (args.category.as_str(), key.as_deref(), id.as_str());
        let entry = match action {
            Action::Redrive => access.redrive(letter, &by).await.map(Some),
            Action::Purge => access.purge(letter, &by).await.map(|()| None),
        };
        // One error type goes through, so the exit code stays that of its cause.
        let entry = match letters.len() {
            1 => entry?,
            all => entry.with_context(|| format!("{done} of {all} done"))?,
        };
        printed(report(verb, &args, key.as_deref(), id, entry))?;
    }
    if args.all && !args.json {
        let did = if action == Action::Redrive { "published again" } else { "dropped" };
        printed(writeln!(io::stdout(), "{} {did}", count(letters.len() as u64, "event")).map_err(Into::into))?;
    }
    Ok(Exit::Done)
}

/// Which are there, oldest first within a key.
async fn all(args: &Act, access: &Access) -> Result<Vec<Letter>> {
    let key = args.letter.key()?;
    let mut letters = vec![];
    walk(access, Some(&args.category), key, |letter| {
        letters.push((letter.key.map(|key| key.to_string()), letter.id));
        Ok(true)
    })
    .await?;
    Ok(letters)
}

fn report(verb: &str, args: &Act, key: Option<&str>, id: &str, entry: Option<String>) -> Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        let report = Report { action: verb, category: &args.category, key, id, entry };
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
        return Ok(());
    }
    let place = key.map_or_else(|| args.category.clone(), |key| format!("{}/{key}", args.category));
    match entry {
        Some(entry) => {
            writeln!(out, "{id} of {place} is published again, as {entry}: it runs after what is there now")?;
        }
        None => writeln!(out, "{id} of {place} is dropped")?,
    }
    Ok(())
}
