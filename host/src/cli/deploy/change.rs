//! `keyrail promote`, `rollback`, `undeploy`.

use std::io::{self, Write};

use anyhow::Result;
use keyrail::access::{self, Need};
use keyrail::config::Config;
use keyrail::service::RolledBack;
use serde::Serialize;

use super::super::by;
use super::super::failure::{Exit, one_line, printed};
use super::line;

/// Let a canary serve every key
#[derive(clap::Args)]
#[command(after_help = "Example:\n  keyrail promote billing --reason 'an hour without a halted key'")]
pub(crate) struct Promote {
    /// Handler
    handler: String,
    /// Why; goes on record
    #[arg(long, value_name = "TEXT", default_value = "promoted")]
    reason: String,
    #[command(flatten)]
    who: by::Who,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Go back: take back what is being deployed or tried, or let the version before serve again
///
/// Events that were handled stay handled. Message types that only the later version handled are passed over from here on.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail rollback billing --reason 'rounds wrongly'\n  \
    keyrail rollback billing --to 3 --reason 'the last good one'\n\nkeyrail handlers billing shows the revisions.")]
pub(crate) struct Rollback {
    /// Handler
    handler: String,
    /// Go to this revision
    #[arg(long, value_name = "REVISION")]
    to: Option<u64>,
    #[command(flatten)]
    by: by::Args,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Let no host serve a handler any more
///
/// It stays registered, so its events are kept and wait for the next keyrail deploy or keyrail rollback.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  keyrail undeploy billing --reason 'moves to another fleet'")]
pub(crate) struct Undeploy {
    /// Handler
    handler: String,
    #[command(flatten)]
    by: by::Args,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn promote(args: Promote, config: &Config) -> Result<Exit> {
    let by = args.who.because(&args.reason);
    let promoted = access::open(config, Need::Existing).await?.promote(&args.handler, &by).await?;
    printed(if args.json {
        json(&promoted)
    } else {
        line(&format!("{} {} serves every key from here on", args.handler, one_line(&promoted.version)))
    })?;
    Ok(Exit::Done)
}

pub(crate) async fn rollback(args: Rollback, config: &Config) -> Result<Exit> {
    let access = access::open(config, Need::Existing).await?;
    let rolled_back = access.rollback(&args.handler, args.to, &args.by.who_and_why()).await?;
    printed(match &rolled_back {
        rolled_back if args.json => json(rolled_back),
        RolledBack::Withdrawn { revision, version } => line(&format!(
            "{} {}, revision {revision}, is taken back; what served before serves every key",
            args.handler,
            one_line(version)
        )),
        RolledBack::Activated { revision, version } => line(&format!(
            "{} {}, revision {revision}, serves again; keys that halted go on with keyrail head retry",
            args.handler,
            one_line(version)
        )),
    })?;
    Ok(Exit::Done)
}

pub(crate) async fn undeploy(args: Undeploy, config: &Config) -> Result<Exit> {
    let access = access::open(config, Need::Existing).await?;
    access.undeploy(&args.handler, &args.by.who_and_why()).await?;
    printed(if args.json {
        json(&serde_json::json!({ "handler": args.handler, "undeployed": true }))
    } else {
        line(&format!(
            "no host serves {0} any more; its events wait for keyrail deploy, or keyrail rollback {0}",
            args.handler
        ))
    })?;
    Ok(Exit::Done)
}

fn json(value: &impl Serialize) -> Result<()> {
    writeln!(io::stdout().lock(), "{}", serde_json::to_string(value)?)?;
    Ok(())
}
