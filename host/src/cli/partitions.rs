//! `keyrail partitions`: where every key stands, and who works on it.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use anyhow::Result;
use keyrail::access::{self, Access, Need};
use keyrail::config::Config;
use keyrail::service::Row;
use keyrail_ordering::{CategoryName, OwnerId};

use super::failure::{Exit, one_line};
use super::numbers::{count, grouped};
use super::table;

/// Errors are cut to this in the table; --json has all of it.
const ERROR_SHOWN_MAX_CHARS: usize = 60;

/// Show where every key stands: last and last settled entry, waiting, owner, attempts, halted
///
/// The owner is the host that holds the key now (marked *), or the one that held it last. A summary by owner follows.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail partitions flight\n  keyrail partitions --json | jq 'select(.halted)'")]
pub(crate) struct Args {
    /// Only this category
    category: Option<String>,
    /// Print one JSON object a partition
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args, config: &Config) -> Result<Exit> {
    let access = access::open(config, Need::Existing).await?;
    let rows = all(&access, args.category.as_deref()).await?;
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

/// All partitions, by category, key and group.
pub(crate) async fn all(access: &Access, category: Option<&str>) -> Result<Vec<Row>> {
    let mut rows = vec![];
    let mut cursor: Option<String> = None;
    loop {
        let page = access.partitions(category, cursor.as_deref()).await?;
        rows.extend(page.rows);
        cursor = page.next;
        if cursor.is_none() {
            rows.sort_by(|a, b| (&a.category, &a.key, &a.group).cmp(&(&b.category, &b.key, &b.group)));
            return Ok(rows);
        }
    }
}

fn show(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    if rows.is_empty() {
        return writeln!(out, "no partitions: nothing was published for a registered handler yet");
    }
    let several = |name: fn(&Row) -> Option<&str>| rows.iter().any(|row| name(row) != name(&rows[0]));
    let with_category = several(|row| row.category.as_ref().map(CategoryName::as_str));
    let with_group = several(|row| Some(row.group.as_str()));
    let mut header = vec![];
    header.extend(with_category.then_some("category"));
    header.extend(with_group.then_some("handler"));
    header.extend(["key", "last", "settled", "waiting", "owner", "generation", "attempts", "halted"]);
    let cells = |row: &Row| {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let mut cells = vec![];
        cells.extend(with_category.then(|| or_dash(row.category.as_ref().map(ToString::to_string))));
        cells.extend(with_group.then(|| row.group.to_string()));
        cells.extend([
            row.key.to_string(),
            or_dash(row.last.clone()),
            or_dash(row.settled.clone()),
            row.waiting.to_string(),
            or_dash(row.owner.as_ref().map(|owner| format!("{owner}{}", if row.owned { "*" } else { "" }))),
            or_dash(row.generation.map(|generation| generation.to_string())),
            row.attempts.to_string(),
            halted(row).unwrap_or_default(),
        ]);
        cells
    };
    let right = ["last", "settled", "waiting", "generation", "attempts"];
    table::write(out, &header, &right, &rows.iter().map(cells).collect::<Vec<_>>())?;
    summary(out, rows)
}

/// Why a partition stands still, short.
pub(crate) fn halted(row: &Row) -> Option<String> {
    let halted = row.halted.as_ref()?;
    let error = one_line(&halted.error);
    let mut shown: String = error.chars().take(ERROR_SHOWN_MAX_CHARS).collect();
    if shown.len() < error.len() {
        shown.push('…');
    }
    // The stream is only told where the key does not tell it: a backfill lane, a process manager.
    let own = row.category.as_ref().map(|category| format!("{category}/{}", row.key));
    let stream = if own.as_ref() == Some(&halted.stream) { String::new() } else { format!("{} ", halted.stream) };
    Some(format!("{} at {stream}{}: {shown}", halted.cause, halted.head))
}

fn summary(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let mut owners: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for row in rows {
        let owner = row.owner.as_ref().map_or("no owner yet", OwnerId::as_str);
        let (keys, owned) = owners.entry(owner).or_default();
        *keys += 1;
        *owned += u64::from(row.owned);
    }
    let waiting: u64 = rows.iter().map(|row| row.waiting).sum();
    let halted = rows.iter().filter(|row| row.halted.is_some()).count() as u64;
    writeln!(
        out,
        "\n{}, {} waiting, {} halted",
        count(rows.len() as u64, "partition"),
        grouped(waiting),
        grouped(halted)
    )?;
    for (owner, (keys, owned)) in owners {
        writeln!(out, "  {owner}: {}, {} held now", count(keys, "partition"), grouped(owned))?;
    }
    Ok(())
}
