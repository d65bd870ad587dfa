//! `keyrail state dump`: the state of a handler, one JSON line a key.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use keyrail::access::{self, Need};
use keyrail::config::Config;

use super::failure::Exit;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Dump(Dump),
}

/// Print a handler's state: one JSON line a key, {"key":…,"state":{NAME:VALUE,…}}
///
/// A value that is not JSON is printed as {"base64":…}. Lines come in no promised order. For a handler of several
/// categories each line names its category.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  keyrail state dump itinerary | sort > itinerary.jsonl")]
pub(crate) struct Dump {
    /// The handler's name
    group: String,
}

pub(crate) async fn dump(args: Dump, config: &Config) -> Result<Exit> {
    let access = access::open(config, Need::Existing).await?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut cursor: Option<String> = None;
    loop {
        let page = access.states(&args.group, cursor.as_deref()).await?;
        for state in page.rows {
            serde_json::to_writer(&mut out, &state).map_err(io::Error::from)?;
            out.write_all(b"\n")?;
        }
        cursor = page.next;
        if cursor.is_none() {
            out.flush()?;
            return Ok(Exit::Done);
        }
    }
}
