//! `keyrail pause`, `resume`, `paused`: keys that nobody may take for a while.

use std::io::{self, Write};

use anyhow::Result;
use keyrail::access::{self, Access, Need};
use keyrail::config::Config;
use keyrail::service::{PausedView, Search};
use serde::Serialize;

use super::failure::{Exit, one_line, printed};
use super::{by, partitions, table, text};

/// Let nothing of a category, or of one key, run until it is resumed
///
/// Keys are taken away from their owners: once this has answered, nothing of them is settled any more. An event that was
/// running has no effects, and runs again later. Publishing goes on. Process managers that read the category wait as well.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail pause order --reason 'the database moves'\n  \
    keyrail pause order client-7 --reason 'under investigation'")]
pub(crate) struct Pause {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    by: by::Args,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// End a pause: of a category, or of one key
///
/// Ends exactly what was paused: a key that was paused by itself stays so when its category is resumed.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail resume order\n  keyrail resume order client-7")]
pub(crate) struct Resume {
    #[command(flatten)]
    place: Place,
    /// Why; goes on record
    #[arg(long, value_name = "TEXT", default_value = "resumed")]
    reason: String,
    #[command(flatten)]
    who: by::Who,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// List what is paused, by whom, why
#[derive(clap::Args)]
#[command(after_help = "Example:\n  keyrail paused")]
pub(crate) struct Paused {
    /// Print one JSON object a pause
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Place {
    /// Category
    category: String,
    /// Key; without one the whole category is meant
    #[arg(allow_hyphen_values = true)]
    key: Option<String>,
}

impl Place {
    fn name(&self) -> String {
        let key = self.key.as_ref().map(|key| format!("/{key}")).unwrap_or_default();
        format!("{}{key}", self.category)
    }

    fn command(&self, verb: &str) -> String {
        let key = self.key.as_ref().map(|key| format!(" {}", text::word(key))).unwrap_or_default();
        format!("keyrail {verb} {}{key}", text::word(&self.category))
    }
}

#[derive(Serialize)]
struct Report<'a> {
    action: &'a str,
    category: &'a str,
    key: Option<&'a str>,
    changed: bool,
}

pub(crate) async fn pause(args: Pause, config: &Config) -> Result<Exit> {
    let access = access::open(config, Need::Existing).await?;
    let Place { category, key } = &args.place;
    let changed = access.pause(category, key.as_deref(), &args.by.who_and_why()).await?;
    let name = args.place.name();
    let said = if changed {
        let unknown = if is_unknown(&access, category, key.as_deref()).await? {
            " (nothing was published for that key yet)"
        } else {
            ""
        };
        format!("{name} is paused{unknown}: nothing of it runs; end it with {}", args.place.command("resume"))
    } else {
        format!("{name} was paused already; see keyrail paused")
    };
    printed(report("pause", &args.place, changed, args.json, &text::typed(&said)))?;
    Ok(Exit::Done)
}

/// Whether nothing is there of a key: it may be a slip of the pen.
async fn is_unknown(access: &Access, category: &str, key: Option<&str>) -> Result<bool> {
    let Some(key) = key else { return Ok(false) };
    let search = Search { category: Some(category.into()), key: Some(key.into()), ..Search::default() };
    Ok(partitions::all(access, &search, 1).await?.0.is_empty())
}

pub(crate) async fn resume(args: Resume, config: &Config) -> Result<Exit> {
    let access = access::open(config, Need::Existing).await?;
    let Place { category, key } = &args.place;
    let changed = access.resume(category, key.as_deref(), &args.who.because(&args.reason)).await?;
    let name = args.place.name();
    let said = if changed {
        format!("{name} is resumed; see keyrail partitions {}", text::word(category))
    } else {
        format!("{name} was not paused by itself; see keyrail paused")
    };
    printed(report("resume", &args.place, changed, args.json, &text::typed(&said)))?;
    Ok(Exit::Done)
}

fn report(action: &str, place: &Place, changed: bool, json: bool, said: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    if json {
        let report = Report { action, category: &place.category, key: place.key.as_deref(), changed };
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
    } else {
        writeln!(out, "{said}")?;
    }
    Ok(())
}

pub(crate) async fn paused(args: Paused, config: &Config) -> Result<Exit> {
    let paused = access::open(config, Need::Existing).await?.paused().await?;
    let mut out = io::stdout().lock();
    if args.json {
        for row in &paused {
            writeln!(out, "{}", serde_json::to_string(row)?)?;
        }
        return Ok(Exit::Done);
    }
    if paused.is_empty() {
        writeln!(out, "nothing is paused")?;
        return Ok(Exit::Done);
    }
    let cells = |row: &PausedView| {
        let key = row.key.as_ref().map_or("(all keys)".into(), ToString::to_string);
        vec![row.category.to_string(), key, row.at.clone(), one_line(&row.who), one_line(&row.reason)]
    };
    let header = ["category", "key", "since", "who", "reason"];
    table::write(&mut out, &header, &[], &paused.iter().map(cells).collect::<Vec<_>>())?;
    Ok(Exit::Done)
}
