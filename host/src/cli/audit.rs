//! `keyrail audit`: who did what, and why.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use keyrail::access::{self, Need};
use keyrail::config::Config;
use keyrail::service::AuditView;

use super::failure::{Exit, one_line};
use super::table;

/// What the brokers keep at least.
const LIMIT_MAX: u64 = 10_000;

/// List the last actions of operators, newest first: what, on what, who, why
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  keyrail audit\n  keyrail audit --limit 10000 --json | jq 'select(.action == \"skip\")'"
)]
pub(crate) struct Args {
    /// How many at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=LIMIT_MAX), value_name = "N")]
    limit: u64,
    /// Print one JSON object an action
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args, config: &Config) -> Result<Exit> {
    let access = access::open(config, Need::Existing).await?;
    let limit = args.limit as usize;
    let mut rows = vec![];
    let mut cursor: Option<String> = None;
    while rows.len() < limit {
        let page = access.audit(cursor.as_deref(), limit - rows.len()).await?;
        rows.extend(page.rows);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    rows.truncate(limit);
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        for row in &rows {
            serde_json::to_writer(&mut out, row).map_err(io::Error::from)?;
            out.write_all(b"\n")?;
        }
    } else if rows.is_empty() {
        writeln!(out, "no operator has done anything yet")?;
    } else {
        let cells = |row: &AuditView| {
            let entry = if row.entry.is_empty() { "-".into() } else { row.entry.clone() };
            vec![
                row.at.clone(),
                row.action.clone(),
                one_line(&row.target),
                entry,
                one_line(&row.who),
                one_line(&row.reason),
            ]
        };
        let header = ["at", "action", "on", "entry", "who", "reason"];
        table::write(&mut out, &header, &[], &rows.iter().map(cells).collect::<Vec<_>>())?;
    }
    out.flush()?;
    Ok(Exit::Done)
}
