//! `keyrail head`: the event that a key stands on, and what to do with it.

mod candidate;
mod show;

use std::io::{self, Write};

use anyhow::{Result, anyhow};
use keyrail::access::{self, Access, Need};
use keyrail::config::Config;
use keyrail::service::HeadView;
use keyrail_broker::HeadAction;
use serde::Serialize;

use super::failure::{Exit, Usage, printed};
use super::{by, text};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Show(Show),
    Try(candidate::Try),
    Retry(Retry),
    Skip(Skip),
    SetAside(SetAside),
}

/// Whose head.
#[derive(clap::Args)]
pub(crate) struct Place {
    /// Category; of a process manager any that it reads
    category: String,
    /// Key, or a process manager's correlation value
    #[arg(allow_hyphen_values = true)]
    key: String,
    /// Handler; needed where several have an unsettled event there
    #[arg(long, value_name = "HANDLER")]
    group: Option<String>,
}

/// Show the event that a key stands on: its content, its failed tries, the last error in full
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail head show order client-7\n  \
    keyrail head show order client-7 --group billing --json | jq -r .last_error")]
pub(crate) struct Show {
    #[command(flatten)]
    place: Place,
    /// Show all of the data, however long
    #[arg(long)]
    full: bool,
    /// Print one JSON object a head, with all of the data
    #[arg(long)]
    json: bool,
}

/// Try the head again at once, with all its tries
///
/// Order and effects stay as they are: the failed tries had none. Takes the key away from its owner.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  keyrail head retry order client-7 --reason 'the database is back'")]
pub(crate) struct Retry {
    #[command(flatten)]
    place: Place,
    /// Entry that must still be the head, as keyrail head show prints it [default: whatever is the head]
    #[arg(long, value_name = "ENTRY")]
    expect: Option<String>,
    #[command(flatten)]
    done: Done,
}

/// Settle the head without its effects: this handler never sees it again
///
/// The next event of the key runs. Other handlers of the category are not touched.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  keyrail head skip order client-7 --expect 3-41 --reason 'a test order, see #812'")]
pub(crate) struct Skip {
    #[command(flatten)]
    place: Place,
    /// Entry that must still be the head, as keyrail head show prints it
    #[arg(long, value_name = "ENTRY")]
    expect: String,
    #[command(flatten)]
    done: Done,
}

/// Settle the head without its effects, and keep it with the dead letters of the key
///
/// The next event of the key runs. keyrail dlq redrive publishes it again later, at the end of its stream: after events
/// that it stood before.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  keyrail head set-aside order client-7 --expect 3-41 --reason 'wait for the fix of #812'"
)]
pub(crate) struct SetAside {
    #[command(flatten)]
    place: Place,
    /// Entry that must still be the head, as keyrail head show prints it
    #[arg(long, value_name = "ENTRY")]
    expect: String,
    #[command(flatten)]
    done: Done,
}

#[derive(clap::Args)]
struct Done {
    #[command(flatten)]
    by: by::Args,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    action: HeadAction,
    category: &'a str,
    key: &'a str,
    group: &'a str,
    entry: &'a str,
    paused: bool,
}

pub(crate) async fn run(command: Command, config: &Config) -> Result<Exit> {
    let access = access::open(config, Need::Existing).await?;
    match command {
        Command::Show(args) => show(args, &access).await,
        Command::Try(args) => candidate::run(args, &access, config).await,
        Command::Retry(args) => act(&access, args.place, HeadAction::Retry, args.expect, args.done).await,
        Command::Skip(args) => act(&access, args.place, HeadAction::Skip, Some(args.expect), args.done).await,
        Command::SetAside(args) => act(&access, args.place, HeadAction::SetAside, Some(args.expect), args.done).await,
    }
}

async fn show(args: Show, access: &Access) -> Result<Exit> {
    let Place { category, key, group } = &args.place;
    let heads = access.heads(category, key, group.as_deref()).await?;
    let mut out = io::stdout().lock();
    if args.json {
        for head in &heads {
            serde_json::to_writer(&mut out, head).map_err(io::Error::from)?;
            out.write_all(b"\n")?;
        }
        return Ok(Exit::Done);
    }
    match &heads[..] {
        [] => writeln!(out, "{}", nothing_waits(&args.place))?,
        [head] => show::head(&mut out, head, args.full)?,
        heads => {
            show::several(&mut out, heads)?;
            return Err(which(heads, &args.place, "show").into());
        }
    }
    Ok(Exit::Done)
}

async fn act(access: &Access, place: Place, action: HeadAction, expect: Option<String>, done: Done) -> Result<Exit> {
    let Place { category, key, group } = &place;
    let heads = access.heads(category, key, group.as_deref()).await?;
    let head = match &heads[..] {
        [] => return Err(anyhow!("{}; nothing was changed", nothing_waits(&place))),
        [head] => head,
        heads => return Err(which(heads, &place, verb(action)).into()),
    };
    let entry = expect.as_deref().unwrap_or(&head.entry);
    access.act_on_head((category, key, head.group.as_str()), action, entry, &done.by.who_and_why()).await?;
    // From here on it is done, whoever reads.
    printed(report(head, &place, action, entry, done.json))?;
    Ok(Exit::Done)
}

fn report(head: &HeadView, place: &Place, action: HeadAction, entry: &str, json: bool) -> Result<()> {
    let Place { category, key, .. } = place;
    let group = head.group.as_str();
    let mut out = io::stdout().lock();
    if json {
        let report = Report { action, category, key, group, entry, paused: head.paused };
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
        return Ok(());
    }
    let (what, next) = match action {
        HeadAction::Retry => ("will be tried again, with all its tries", "it runs as soon as a host takes the key"),
        HeadAction::Skip => ("is skipped: settled without its effects", "the next event of the key runs now"),
        HeadAction::SetAside => {
            ("is set aside: settled without its effects, and kept", "the next event of the key runs now")
        }
    };
    writeln!(out, "{entry} of {category}/{key} ({group}) {what}")?;
    if head.paused {
        writeln!(out, "{}", text::typed("nothing runs yet: it is paused; see keyrail paused"))?;
    } else {
        let show = text::head_command("show", category, key, group);
        writeln!(out, "{}", text::typed(&format!("{next}; see {show}")))?;
    }
    if action == HeadAction::SetAside {
        // A process manager's head may be of another category than the one that was named.
        let of =
            entry.split_once('/').map_or(category.as_str(), |(of, _)| if of == "backfill" { category } else { of });
        let list = format!("keyrail dlq list {} {}", text::word(of), text::word(key));
        writeln!(out, "{}", text::typed(&format!("it is kept, with an id of its own, in {list}")))?;
    }
    Ok(())
}

const fn verb(action: HeadAction) -> &'static str {
    match action {
        HeadAction::Retry => "retry",
        HeadAction::Skip => "skip",
        HeadAction::SetAside => "set-aside",
    }
}

fn nothing_waits(Place { category, key, group }: &Place) -> String {
    let group = group.as_ref().map(|group| format!(" for {group}")).unwrap_or_default();
    format!("nothing waits in {category}/{key}{group}: every event there is settled, or none was ever published")
}

fn which(heads: &[HeadView], place: &Place, verb: &str) -> Usage {
    let groups: Vec<_> = heads.iter().map(|head| format!("{} at {}", head.group, head.entry)).collect();
    let command = text::head_command(verb, &place.category, &place.key, heads[0].group.as_str());
    Usage(format!("several handlers have an unsettled event there: {}; say which, as in {command}", groups.join(", ")))
}

pub(crate) use show::event as show_event;
