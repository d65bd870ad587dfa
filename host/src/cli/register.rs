//! `keyrail register`: check handlers and put them into the catalog without running them.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use keyrail::access::{self, Need};
use keyrail::config::Config;

use super::failure::Exit;
use super::load;

/// Check handlers and put them into the catalog, without running them
///
/// All of them or, if one is refused, none. `keyrail run` does this by itself for the handlers that it is given.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  keyrail register itinerary.wasm && keyrail publish flights.jsonl.gz")]
pub(crate) struct Args {
    /// Components
    #[arg(required = true, value_name = "FILE.wasm")]
    files: Vec<PathBuf>,
    /// Print one JSON object a handler
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args, config: &Config) -> Result<Exit> {
    let runtime = load::runtime(config)?;
    let modules = load::all(&runtime, &args.files).await?;
    let access = access::open(config, Need::Create).await?;
    let registered = access.register(modules.iter().map(|module| load::registration(module)).collect()).await?;
    let mut out = io::stdout().lock();
    for handler in registered {
        if args.json {
            writeln!(out, "{}", serde_json::to_string(&handler)?)?;
        } else {
            writeln!(out, "{} {} {}", handler.handler, handler.version, handler.change)?;
        }
    }
    Ok(Exit::Done)
}
