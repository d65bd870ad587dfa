//! `keyrail record` and `keyrail replay`: what a handler had on a key, kept in a file, and run again anywhere.

mod bundle;
mod calls;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use keyrail::access::{self, Need};
use keyrail::config::Config;
use keyrail::service::RecordFrom;
use keyrail::trial::{Case, Emits, Ending, Handled, Happened, Http, State, Trial, apply};
use keyrail_ordering::Generation;
use keyrail_runtime::Module;

use super::failure::{Exit, Refused, Usage, one_line, printed};
use super::numbers::count;
use super::{load, test, text};
use bundle::Bundle;

/// Keep what a handler has on a key in a file, for keyrail replay
///
/// The file has what is registered, the state of the key, and the events that wait, as lines of JSON: the head first, with the
/// state before it. Nothing is changed, and the broker is not needed to replay it.
///
/// The state before an event is not kept once the event is settled. So of settled events only those can be recorded that go
/// back to the first (--from start), where hosts keep settled events (retention.entries, retention.age_ms); they are replayed from no state. (A key that was
/// empty for long and then used again may have had state before its first event: that cannot be told.)
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail record order client-7 -o client-7.bundle.jsonl\n  \
    keyrail record order client-7 --group billing --from start -o client-7.bundle.jsonl")]
pub(crate) struct Record {
    /// Category; of a process manager any that it reads
    category: String,
    /// Key, or a process manager's correlation value
    #[arg(allow_hyphen_values = true)]
    key: String,
    /// Handler; needed where several read the category
    #[arg(long, value_name = "HANDLER")]
    group: Option<String>,
    /// Where to begin: at the oldest unsettled event with the state as it is, or at the first event without state
    #[arg(long, value_enum, default_value_t)]
    from: From,
    /// Events of each stream, at most
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum From {
    #[default]
    Head,
    Start,
}

/// Run the events of a bundle through a handler, without a broker, and compare what comes of them
///
/// Events run one at a time with all their tries, without the waits, from the state that was recorded; the handler sees the
/// recorded time. Emits are checked against what was registered. What is expected stands in the bundle itself, or in a file as for
/// keyrail test: --update writes it. A bundle with it is a regression test that can be committed.
///
/// HTTP calls are answered from the bundle and go nowhere. --live makes those that the manifest grants for real, and keeps in the
/// bundle what was asked and answered, without secrets; without it the n-th call of a try must then ask the same (method, URL, body), or it fails
/// and is reported. The grants are needed both times.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail replay client-7.bundle.jsonl --with billing.wasm\n  \
    keyrail replay client-7.bundle.jsonl --with billing.wasm --update    (this is how it should be)\n  \
    keyrail replay client-7.bundle.jsonl --with billing.wasm --grants billing.manifest.toml --live\n\n\
    Without anything expected it ends with 3 if the key stands still; else with 1 if anything differs. HTTP calls that differ \
    always make it 1.")]
pub(crate) struct Replay {
    /// Bundle that keyrail record wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Component
    #[arg(long, value_name = "FILE.wasm")]
    with: PathBuf,
    /// Manifest of that component [default: FILE.manifest.toml beside it, if there]
    #[arg(long, value_name = "FILE.toml")]
    grants: Option<PathBuf>,
    /// Compare with this file [default: with what the bundle itself expects]
    #[arg(long, value_name = "FILE.jsonl")]
    expect: Option<PathBuf>,
    /// Write what came out: to the file of --expect, or into the bundle
    #[arg(long)]
    update: bool,
    /// Make granted HTTP calls for real, and keep them with their answers in the bundle, in place of those that it has
    #[arg(long)]
    live: bool,
    /// Print JSON lines, as keyrail test does
    #[arg(long)]
    json: bool,
}

pub(crate) async fn record(args: Record, config: &Config) -> Result<Exit> {
    let access = access::open(config, Need::Existing).await?;
    let from = match args.from {
        From::Head => RecordFrom::Head,
        From::Start => RecordFrom::Start,
    };
    let place = (args.category.as_str(), args.key.as_str(), args.group.as_deref());
    let recording = access.recording(place, from, args.limit as usize).await?;
    let (events, values) = (recording.entries.len() as u64, recording.state.len() as u64);
    let group = recording.group.clone();
    Bundle::new(recording).write(&args.output)?;
    let file = text::word(&args.output.display().to_string());
    eprintln!(
        "{} and {} of {}/{} ({group}); run them with keyrail replay {file} --with {group}.wasm",
        count(events, "event"),
        count(values, "state value"),
        args.category,
        args.key
    );
    Ok(Exit::Done)
}

pub(crate) async fn replay(args: Replay, config: &Config) -> Result<Exit> {
    let mut bundle = Bundle::read(&args.file)?;
    let expected = match &args.expect {
        _ if args.update => None,
        Some(path) => Some(test::Expectation::read(path)?),
        None => test::Expectation::of_bundle(&args.file, &bundle.expected)?,
    };
    let module = test::one_module(config, &args.with, args.grants.as_deref()).await?;
    let recording = &bundle.recording;
    if module.metadata().name != recording.group {
        return Err(Refused(format!(
            "{} declares the handler {}, and {} is of {}",
            args.with.display(),
            module.metadata().name,
            args.file.display(),
            recording.group
        ))
        .into());
    }
    if args.live {
        let with = args.with.display();
        let Some(granted) = load::http_granted(&module) else {
            let text = format!("--live makes HTTP calls, and {with} makes none or is granted none; see --grants");
            return Err(Usage(text).into());
        };
        let file = args.file.display();
        eprintln!(
            "HTTP calls are made for real, and can have effects: {granted}; what is asked and answered goes into {file}"
        );
    }
    let partition = recording.partition();
    let Ran { happened, state } = run(&args, &bundle, module, config).await?;
    if happened.is_empty() {
        return Err(anyhow!("{} has no event", args.file.display()));
    }
    let states = || std::iter::once((&partition, &*state));
    let lines = test::lines(&happened, states())?;
    printed(if args.json { test::print_lines(&lines) } else { test::show_all(&happened, states()) })?;
    if differences(&args, &happened) {
        if let Some(expected) = expected {
            expected.judge(&lines)?;
        }
        return Ok(Exit::Failed);
    }
    if args.live {
        let calls = happened.iter().map(|(number, one)| (*number as usize, one.handled.calls.clone()));
        bundle.calls = calls.filter(|(_, calls)| !calls.is_empty()).collect();
    }
    if args.update {
        match &args.expect {
            Some(path) => test::write_lines(path, &lines)?,
            None => bundle.expect(lines.clone()),
        }
    }
    if args.live || (args.update && args.expect.is_none()) {
        bundle.write(&args.file)?;
    }
    match expected {
        _ if args.update => Ok(Exit::Done),
        Some(expected) => expected.judge(&lines),
        None => Ok(test::without_expectation(&happened)),
    }
}

/// Every event with what came of it, and the state after the last.
struct Ran {
    happened: Vec<(u64, Happened)>,
    state: Arc<State>,
}

async fn run(args: &Replay, bundle: &Bundle, module: Arc<Module>, config: &Config) -> Result<Ran> {
    let recording = &bundle.recording;
    let catalog = Arc::new(recording.catalog(module.metadata()));
    let mut trial = Trial::new(module, catalog, Emits::Checked, &config.engine.retry);
    let partition = recording.partition();
    let mut state: Arc<State> =
        Arc::new(recording.state.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect());
    let mut happened: Vec<(u64, Happened)> = vec![];
    for (number, entry) in (1..).zip(&recording.entries) {
        let at = entry.at().map_err(|why| Refused(format!("{}: {why}", args.file.display())))?;
        let event = Arc::new(entry.event());
        let stands_still = happened.iter().any(|(_, one)| matches!(one.handled.ending, Ending::GivenUp(_)));
        let handled = if stands_still {
            Handled::without_a_call(Ending::Behind)
        } else {
            let kept = bundle.calls.get(&(number as usize)).map_or(&[][..], |calls| calls);
            let case = Case {
                partition: Some(&partition),
                entry: &at,
                event: &event,
                recorded_at_ms: entry.recorded_at_ms,
                generation: Generation(1),
                attempt: 1,
                state: &state,
                http: if args.live { Http::Recorded } else { Http::Played(kept) },
            };
            trial.handle(&case).await?
        };
        if let Some(effects) = handled.effects() {
            apply(Arc::make_mut(&mut state), effects);
        }
        let handler = recording.group.clone();
        let partition = Some(partition.clone());
        happened.push((number, Happened { handler, partition, event, emitted_by: None, handled }));
    }
    Ok(Ran { happened, state })
}

/// Prints in what HTTP calls are others than the bundle's, to standard error. Answers whether any is.
fn differences(args: &Replay, happened: &[(u64, Happened)]) -> bool {
    let of_event = |(number, one): &(u64, Happened)| {
        let shown = |difference: &String| format!("event {number}, {}", one_line(difference));
        one.handled.differences.iter().map(shown).collect::<Vec<_>>()
    };
    let lines: Vec<_> = happened.iter().flat_map(of_event).collect();
    if lines.is_empty() {
        return false;
    }
    eprintln!("the HTTP calls are not those of {}:", args.file.display());
    for line in &lines {
        eprintln!("  {line}");
    }
    let nothing_written = if args.update { "nothing was written; " } else { "" };
    eprintln!("{nothing_written}if this is right, record them again with --live");
    true
}
