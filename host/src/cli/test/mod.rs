//! `keyrail test`: a handler on a file of events, in memory, one event at a time.
//!
//! No broker and no engine: order is the file's, waits between tries are left out, and two runs print the same.

mod compare;
mod show;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Error, Result};
use keyrail::config::Config;
use keyrail::service::{LaneName, LineLimits, RawLine, read_line};
use keyrail::trial::{Ending, Happened, Record, Rehearsal, RehearsalError, State};
use keyrail_ordering::PartitionId;
use keyrail_runtime::Module;

use super::failure::{Exit, Refused, Usage, cannot_write, one_line, printed};
use super::load;
use super::publish::input::Source;

pub(crate) use compare::Expectation;
pub(crate) use show::{all as show_all, indented_logs, short};

/// Run a handler on a file of events in memory, and show what comes of each
///
/// Events run one at a time, in the order of their lines, each with all that follows from it before the next. Failed tries are
/// repeated at once: the waits between them are left out. Each key begins without state. The clock that a handler sees begins
/// with 2026 and goes on by a second an event; lines without an id are named line-1, line-2: two runs are equal.
///
/// Emits to a category that no given handler declares are shown and go nowhere.
///
/// --expect compares with a file of JSON lines as --json prints them. Of the kinds of lines (event, emit, state) that the
/// file has, all must be there, in this order, and no others; a kind that it does not have is not compared. Of a line only the
/// members that it names are compared. --update writes the file.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail test itinerary.wasm events.jsonl\n  \
    keyrail test itinerary.wasm events.jsonl --expect expected.jsonl --update\n  \
    keyrail test billing.wasm events.jsonl --with shipping.wasm --json\n\n\
    Without --expect it ends with 3 if a key stands still or an event was set aside; with it, with 1 if anything differs.")]
pub(crate) struct Args {
    /// Component
    #[arg(value_name = "FILE.wasm")]
    file: PathBuf,
    /// Events as for keyrail publish, plain or gzip; - for standard input
    #[arg(value_name = "EVENTS.jsonl[.gz]")]
    events: PathBuf,
    /// Manifest with what it may use, and its limits [default: FILE.manifest.toml beside it, if there]
    #[arg(long, value_name = "FILE.toml")]
    grants: Option<PathBuf>,
    /// Another component that takes part, with the manifest beside it; repeatable
    #[arg(long, value_name = "OTHER.wasm")]
    with: Vec<PathBuf>,
    /// Compare with this file
    #[arg(long, value_name = "FILE.jsonl")]
    expect: Option<PathBuf>,
    /// Write what came out to the file of --expect
    #[arg(long, requires = "expect")]
    update: bool,
    /// Print JSON lines: events in the order in which they ran, then emits and state by handler and key
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args, config: &Config) -> Result<Exit> {
    let source = Source::new(Some(args.events.clone()));
    source.check()?;
    // Before the components are loaded, which may take a while.
    let expected = match &args.expect {
        Some(path) if !args.update => Some(Expectation::read(path)?),
        _ => None,
    };
    let runtime = load::runtime(config)?;
    let (module, _) = load::with_grants(&runtime, &args.file, args.grants.as_deref()).await?;
    let mut modules = load::all(&runtime, &args.with).await?;
    modules.insert(0, module);
    load::check_distinct(&modules, &std::iter::once(&args.file).chain(&args.with).collect::<Vec<_>>())?;
    let mut rehearsal = Rehearsal::new(&modules, &config.engine.retry).map_err(failure)?;
    let happened = rehearse(&mut rehearsal, &source, config).await?;

    let lines = lines(&happened, rehearsal.states())?;
    if args.json {
        printed(print_lines(&lines))?;
    } else {
        printed(show::all(&happened, rehearsal.states()))?;
    }
    if args.update
        && let Some(path) = &args.expect
    {
        write_lines(path, &lines)?;
        return Ok(Exit::Done);
    }
    match expected {
        Some(expected) => expected.judge(&lines),
        None => Ok(without_expectation(&happened)),
    }
}

/// How it ends if nothing says what was expected.
pub(crate) fn without_expectation(happened: &[(u64, Happened)]) -> Exit {
    let stands_still = happened.iter().any(|(_, one)| matches!(one.handled.ending, Ending::GivenUp(_)));
    if stands_still { Exit::Halted } else { Exit::Done }
}

/// Submits every line; each event with the number of the line that it came or followed from.
async fn rehearse(rehearsal: &mut Rehearsal, source: &Source, config: &Config) -> Result<Vec<(u64, Happened)>> {
    let limits = LineLimits {
        payload_max_bytes: config.publish.payload_max_bytes,
        line_max_bytes: config.publish.line_max_bytes,
        dedupe_window_ms: 0,
        lane: LaneName::Primary,
    };
    let mut input = source.read(config.publish.line_max_bytes)?;
    let mut happened = vec![];
    while let Some(lines) = input.lines.recv().await {
        for line in lines {
            let number = line.number;
            let of_line =
                submit(rehearsal, &line, &limits).await.with_context(|| format!("{} line {number}", source.name()))?;
            happened.extend(of_line.into_iter().map(|one| (number, one)));
        }
    }
    if let Ok(Some(error)) = input.ended.await {
        return Err(Refused(error.to_string()).into());
    }
    Ok(happened)
}

async fn submit(rehearsal: &mut Rehearsal, line: &RawLine, limits: &LineLimits) -> Result<Vec<Happened>> {
    let publication = read_line(line, rehearsal.catalog(), limits, || format!("line-{}", line.number))
        .map_err(|error| Refused(one_line(&error.to_string())))?;
    rehearsal.submit(publication.event, publication.lane).await.map_err(failure)
}

fn failure(error: RehearsalError) -> Error {
    match error {
        RehearsalError::Refused(_) => Refused(error.to_string()).into(),
        other => other.into(),
    }
}

/// Everything that came out, as lines of JSON: events in the order in which they ran, then emits and state by handler and key.
pub(crate) fn lines<'a>(
    happened: &[(u64, Happened)],
    states: impl Iterator<Item = (&'a PartitionId, &'a State)>,
) -> Result<Vec<String>> {
    let mut records: Vec<_> = happened.iter().map(|(line, one)| Record::of_event(*line, one)).collect();
    let mut by_key: Vec<_> = happened.iter().map(|(_, one)| one).collect();
    // Stable: emits of one key stay in their order.
    by_key.sort_by_key(|one| (&one.handler, &one.partition));
    records.extend(by_key.into_iter().flat_map(Record::of_emits));
    records.extend(states.flat_map(|(partition, state)| Record::of_state(partition, state)));
    Ok(records.iter().map(serde_json::to_string).collect::<Result<_, _>>()?)
}

/// To standard output.
pub(crate) fn print_lines(lines: &[String]) -> Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

/// Writes a file of lines, whole or not at all.
pub(crate) fn write_lines(path: &Path, lines: &[String]) -> Result<()> {
    if path.is_dir() {
        return Err(Usage(format!("{} is a folder; give a file", path.display())).into());
    }
    let mut text = lines.join("\n");
    text.push('\n');
    let mut partial = path.as_os_str().to_owned();
    partial.push(format!(".{}.partial", std::process::id()));
    fs::write(&partial, text).map_err(cannot_write(path))?;
    fs::rename(&partial, path).map_err(cannot_write(path))?;
    eprintln!("wrote {} ({})", path.display(), super::numbers::count(lines.len() as u64, "line"));
    Ok(())
}

/// The module of a file that must be one handler.
pub(crate) async fn one_module(config: &Config, file: &Path, grants: Option<&Path>) -> Result<Arc<Module>> {
    let runtime = load::runtime(config)?;
    Ok(load::with_grants(&runtime, file, grants).await?.0)
}
