//! `keyrail partitions`: where every key stands, and who works on it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Write};

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use keyrail::access::{self, Access, Need};
use keyrail::config::Config;
use keyrail::service::{Row, Search, Status};
use keyrail_ordering::{CategoryName, OwnerId};

use super::failure::Exit;
use super::numbers::{count, grouped};
use super::{table, text};

/// Errors are cut to this in the table; --json has all of it.
const ERROR_SHOWN_MAX_CHARS: usize = 60;

/// Show where keys stand: last and last settled entry, waiting, owner, attempts, halted
///
/// The owner is the host that holds the key now (marked *), or the one that held it last. A summary by owner follows.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail partitions flight\n  keyrail partitions flight D-AIBL\n  \
    keyrail partitions --status waiting --limit 20\n  keyrail partitions --json | jq 'select(.halted)'")]
pub(crate) struct Args {
    /// Only this category, and process managers that read it
    category: Option<String>,
    /// Only this key, or correlation value
    #[arg(allow_hyphen_values = true)]
    key: Option<String>,
    /// Only this handler
    #[arg(long, value_name = "HANDLER")]
    group: Option<String>,
    /// Only keys that begin so
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "key")]
    prefix: Option<String>,
    /// Only keys that stand so
    #[arg(long, value_parser = statuses())]
    status: Option<Status>,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Print one JSON object a partition
    #[arg(long)]
    json: bool,
}

fn statuses() -> impl TypedValueParser<Value = Status> {
    PossibleValuesParser::new(Status::ALL.map(Status::word)).try_map(|text| text.parse::<Status>())
}

pub(crate) async fn run(args: Args, config: &Config) -> Result<Exit> {
    let access = access::open(config, Need::Existing).await?;
    let limit = args.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let Args { category, key, group, prefix, status, json, .. } = args;
    let search = Search { category, group, key, prefix, status };
    let (rows, more) = all(&access, &search, limit).await?;
    for warning in crowded(&rows, config.engine.live_partitions_warn) {
        eprintln!("keyrail: {warning}");
    }
    let mut out = BufWriter::new(io::stdout().lock());
    if json {
        for row in &rows {
            serde_json::to_writer(&mut out, row).map_err(io::Error::from)?;
            out.write_all(b"\n")?;
        }
    } else {
        let nothing = if search == Search::default() {
            "no partitions: nothing was published for a handler with keys, or all of it is settled and forgotten"
        } else {
            "no such partitions: nothing was published there, or all of it is settled and forgotten; see keyrail partitions"
        };
        show(&mut out, &rows, &text::typed(nothing))?;
    }
    out.flush()?;
    if more {
        eprintln!("keyrail: there are more; raise --limit, or say which with --prefix, --status, --group");
    }
    Ok(Exit::Done)
}

/// Partitions by category, key and group, up to `limit` of them, and whether there are more.
pub(crate) async fn all(access: &Access, search: &Search, limit: usize) -> Result<(Vec<Row>, bool)> {
    let mut rows = vec![];
    let mut cursor: Option<String> = None;
    loop {
        let page = access.partitions(search, cursor.as_deref(), limit - rows.len()).await?;
        rows.extend(page.rows);
        cursor = page.next;
        let more = rows.len() > limit || (rows.len() == limit && cursor.is_some());
        if cursor.is_none() || rows.len() >= limit {
            rows.truncate(limit);
            rows.sort_by(|a, b| (&a.category, &a.key, &a.group).cmp(&(&b.category, &b.key, &b.group)));
            return Ok((rows, more));
        }
    }
}

fn show(out: &mut impl Write, rows: &[Row], nothing: &str) -> io::Result<()> {
    if rows.is_empty() {
        return writeln!(out, "{nothing}");
    }
    let several = |name: fn(&Row) -> Option<&str>| rows.iter().any(|row| name(row) != name(&rows[0]));
    let with_category = several(|row| row.category.as_ref().map(CategoryName::as_str));
    let with_group = several(|row| Some(row.group.as_str()));
    let mut header = vec![];
    header.extend(with_category.then_some("category"));
    header.extend(with_group.then_some("handler"));
    let with_paused = rows.iter().any(|row| row.paused);
    header.extend(["key", "last", "settled", "waiting", "owner", "generation", "attempts"]);
    header.extend(with_paused.then_some("paused"));
    header.push("halted");
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
            or_dash(owner(row)),
            or_dash(row.generation.map(|generation| generation.to_string())),
            row.attempts.to_string(),
        ]);
        cells.extend(with_paused.then(|| if row.paused { "paused".into() } else { String::new() }));
        cells.push(halted(row).unwrap_or_default());
        cells
    };
    let right = ["last", "settled", "waiting", "generation", "attempts"];
    table::write(out, &header, &right, &rows.iter().map(cells).collect::<Vec<_>>())?;
    summary(out, rows)
}

/// Who holds a partition, marked, or held it last; nobody who stands still is to be asked.
fn owner(row: &Row) -> Option<String> {
    match &row.owner {
        Some(owner) if row.owned => Some(format!("{owner}*")),
        Some(owner) if row.halted.is_none() => Some(owner.to_string()),
        _ => None,
    }
}

/// Why a partition stands still, short.
pub(crate) fn halted(row: &Row) -> Option<String> {
    let halted = row.halted.as_ref()?;
    Some(format!("{} at {}: {}", halted.cause, halted.head, text::gist(&halted.error, ERROR_SHOWN_MAX_CHARS)))
}

/// What to type to see more of a partition that stands still.
pub(crate) fn head_show(row: &Row) -> Option<String> {
    let halted = row.halted.as_ref()?;
    Some(text::head_command("show", halted.category.as_str(), row.key.as_str(), row.group.as_str()))
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
    if let Some(command) = rows.iter().find_map(head_show) {
        let all = if halted > 1 { ", and keyrail halted for all" } else { "" };
        writeln!(out, "\n{}", text::typed(&format!("see {command}{all}")))?;
    }
    Ok(())
}

/// A sentence for each category that has more keys than one should have.
fn crowded(rows: &[Row], warn_above: u64) -> Vec<String> {
    let mut keys: BTreeMap<&CategoryName, BTreeSet<&str>> = BTreeMap::new();
    for row in rows {
        if let Some(category) = &row.category {
            keys.entry(category).or_default().insert(row.key.as_str());
        }
    }
    let crowded = keys.into_iter().filter(|(_, keys)| keys.len() as u64 > warn_above);
    let sentence = |(category, keys): (&CategoryName, BTreeSet<&str>)| {
        format!(
            "{category} has {} live partitions, more than engine.live_partitions_warn ({}): if it is to be so, raise the \
             limit; else partition it by a field that has fewer values",
            grouped(keys.len() as u64),
            grouped(warn_above)
        )
    };
    crowded.map(sentence).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn row(group: &str, key: &str) -> Row {
        serde_json::from_value(serde_json::json!({
            "group": group, "category": "order", "key": key, "last": "1-0", "settled": null, "waiting": 1,
            "owner": null, "owned": false, "generation": null, "attempts": 3, "paused": true,
            "halted": {
                "category": "order", "head": "backfill/1-0", "cause": "poison", "attempts": 3,
                "error": "a\nb".repeat(60), "handler_version": "1"
            }
        }))
        .unwrap()
    }

    #[test]
    fn a_category_with_too_many_keys_is_told_once() {
        // Two groups on one key are one key.
        let rows = [row("a", "k1"), row("b", "k1"), row("a", "k2")];
        assert_eq!(crowded(&rows, 2), Vec::<String>::new());
        let told = crowded(&rows, 1);
        assert!(told.len() == 1 && told[0].starts_with("order has 2 live partitions"), "{told:?}");
    }

    #[test]
    fn what_stands_still_says_what_to_type() {
        let mut out = vec![];
        show(&mut out, &[row("a", "it's k1")], "").unwrap();
        let shown = String::from_utf8(out).unwrap();
        assert!(shown.contains("PAUSED") && shown.contains("poison at backfill/1-0: a ba b"), "{shown}");
        assert!(shown.ends_with("see keyrail head show order 'it'\\''s k1' --group a\n"), "{shown}");
    }
}
