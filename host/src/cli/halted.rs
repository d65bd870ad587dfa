//! `keyrail halted`: what stands still, and what to type next.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use keyrail::access::{self, Need};
use keyrail::config::Config;
use keyrail::service::HaltedRow;

use super::failure::Exit;
use super::numbers::count;
use super::{table, text};

/// Errors are cut to this in the table; keyrail head show has all of it.
const ERROR_SHOWN_MAX_CHARS: usize = 60;

/// List the keys that stand still until somebody decides
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail halted\n  keyrail halted order --group billing\n  \
    keyrail halted --json | jq -r .error | sort | uniq -c")]
pub(crate) struct Args {
    /// Only handlers that read this category
    category: Option<String>,
    /// Only this handler
    #[arg(long, value_name = "HANDLER")]
    group: Option<String>,
    /// Print one JSON object a key
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args, config: &Config) -> Result<Exit> {
    let access = access::open(config, Need::Existing).await?;
    let mut rows = vec![];
    let mut cursor: Option<String> = None;
    loop {
        let page = access.halted(args.category.as_deref(), args.group.as_deref(), cursor.as_deref()).await?;
        rows.extend(page.rows);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    rows.sort_by(|a, b| (&a.halted.category, &a.key, &a.group).cmp(&(&b.halted.category, &b.key, &b.group)));
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        for row in &rows {
            serde_json::to_writer(&mut out, row).map_err(io::Error::from)?;
            out.write_all(b"\n")?;
        }
    } else {
        show(&mut out, &rows)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn show(out: &mut impl Write, rows: &[HaltedRow]) -> io::Result<()> {
    let Some(first) = rows.first() else { return writeln!(out, "nothing is halted") };
    let cells = |row: &HaltedRow| {
        vec![
            format!("{}/{}", row.halted.category, row.key),
            row.group.to_string(),
            row.halted.head.clone(),
            row.halted.cause.clone(),
            row.halted.attempts.to_string(),
            text::gist(&row.halted.error, ERROR_SHOWN_MAX_CHARS),
        ]
    };
    let header = ["partition", "handler", "head", "cause", "attempts", "error"];
    table::write(out, &header, &["attempts"], &rows.iter().map(cells).collect::<Vec<_>>())?;
    let command = text::head_command("show", first.halted.category.as_str(), first.key.as_str(), first.group.as_str());
    writeln!(out, "\n{} halted; see {}", count(rows.len() as u64, "partition"), text::typed(&command))
}
