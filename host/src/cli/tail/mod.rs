//! `keyrail tail`: events as they are published.

use std::io::{self, Write};

use anyhow::Result;
use futures::StreamExt;
use keyrail::access::{self, Access, Need};
use keyrail::config::{BrokerAddress, Config};
use keyrail::service::{Following, Tailed, TailedEntry};
use keyrail_ordering::Key;
use serde_json::json;

use super::failure::{Exit, Usage, one_line};
use super::numbers::count;
use super::text;

/// Data is cut to this on a line for people; --json has all of it.
const DATA_SHOWN_MAX_CHARS: usize = 2_000;

/// Show events as they are published, of all categories, of one, of one key
///
/// Begins with what is published from now on. Watching takes nothing from the handlers and slows nobody. An event that a
/// handler settled before it could be read is gone, since nothing is kept that all have settled, unless retention.entries or
/// retention.age_ms say so; such events are counted and said to be missed, and so are those that come faster than they
/// can be printed.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail tail\n  keyrail tail order client-7 --data\n  \
    keyrail tail order --json --data | jq .data\n  keyrail tail order --count 1 && echo something came")]
pub(crate) struct Args {
    /// Only this category
    category: Option<String>,
    /// Only this key
    #[arg(allow_hyphen_values = true)]
    key: Option<String>,
    /// Show headers and data too
    #[arg(long)]
    data: bool,
    /// End after so many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print one JSON object an event, and {"missed":N} for events that were not seen
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args, config: &Config) -> Result<Exit> {
    let access = access::open(config, Need::Existing).await?;
    refuse_to_hold(&access, config)?;
    let following = Following { category: args.category.clone(), key: args.key.clone(), data: args.data };
    let mut events = access.tail(&following, config.api.follower_queue_max_bytes).await?;
    eprintln!("keyrail: following {}; Ctrl-C ends it", place(&args));
    let mut left = args.count;
    while left != Some(0) {
        let Some(tailed) = events.next().await else { break };
        let tailed = tailed?;
        if let (Tailed::Entry(_), Some(left)) = (&tailed, &mut left) {
            *left -= 1;
        }
        // Each by itself: whoever reads this waits for it.
        let mut out = io::stdout().lock();
        writeln!(out, "{}", if args.json { as_json(&tailed)? } else { as_text(&tailed) })?;
        out.flush()?;
    }
    Ok(Exit::Done)
}

/// While this process has an embedded file open nobody can publish to it, nor serve it.
pub(crate) fn refuse_to_hold(access: &Access, config: &Config) -> Result<(), Usage> {
    match (access, &config.broker) {
        (Access::Direct(_), BrokerAddress::Embedded(path)) => Err(Usage(format!(
            "no host serves {}, so nothing happens there that could be watched; start one with keyrail run",
            path.display()
        ))),
        _ => Ok(()),
    }
}

fn place(args: &Args) -> String {
    match (&args.category, &args.key) {
        (None, _) => "all categories".into(),
        (Some(category), None) => one_line(category),
        (Some(category), Some(key)) => one_line(&format!("{category}/{key}")),
    }
}

fn as_json(tailed: &Tailed) -> Result<String, serde_json::Error> {
    match tailed {
        Tailed::Entry(entry) => serde_json::to_string(entry),
        Tailed::Missed { count } => serde_json::to_string(&json!({ "missed": count })),
    }
}

fn as_text(tailed: &Tailed) -> String {
    let entry = match tailed {
        Tailed::Entry(entry) => entry,
        Tailed::Missed { count: missed } => {
            return format!("({} not seen: settled and dropped before, or too fast)", count(*missed, "event"));
        }
    };
    // The day is the one of the clock on the wall.
    let time = entry.at.as_deref().map_or("-", |at| at.split_once('T').map_or(at, |(_, time)| time));
    let key = entry.key.as_ref().map(|key: &Key| format!("/{key}")).unwrap_or_default();
    let what = match &entry.unreadable {
        Some(why) => format!("cannot be read: {why}"),
        None => format!("{} {}", entry.name, entry.id),
    };
    let line = format!("{time}  {}{key}  {}  {what}{}", entry.category, entry.entry, content(entry));
    one_line(&line)
}

fn content(entry: &TailedEntry) -> String {
    let mut text = String::new();
    if let Some(headers) = entry.headers.as_ref().filter(|headers| !headers.0.is_empty()) {
        let shown: Vec<_> = headers.0.iter().map(|(name, value)| format!("{name}={}", value.get())).collect();
        text = format!("  [{}]", shown.join(" "));
    }
    if let Some(data) = &entry.data {
        text = format!("{text}  {}", text::cut(data.get(), DATA_SHOWN_MAX_CHARS));
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_it_holds() {
        let entry: TailedEntry = serde_json::from_value(json!({
            "at": "2026-11-30T14:22:03.120Z", "category": "order", "key": "it's k", "entry": "backfill/3-41",
            "type": "Placed", "id": "e\u{1b}[1m7", "version": 2, "headers": {"traceparent": "00-1"}, "data": {"n": "a\nb"}
        }))
        .unwrap();
        let tailed = Tailed::Entry(Box::new(entry));
        let line = as_text(&tailed);
        let expected =
            "14:22:03.120Z  order/it's k  backfill/3-41  Placed e [1m7  [traceparent=\"00-1\"]  {\"n\":\"a\\nb\"}";
        assert_eq!(line, expected);
        let json: serde_json::Value = serde_json::from_str(&as_json(&tailed).unwrap()).unwrap();
        assert_eq!((&json["id"], &json["data"]["n"]), (&"e\u{1b}[1m7".into(), &"a\nb".into()));
        assert_eq!(as_json(&Tailed::Missed { count: 3 }).unwrap(), "{\"missed\":3}");
        assert!(as_text(&Tailed::Missed { count: 1 }).contains("1 event not seen"));
    }
}
