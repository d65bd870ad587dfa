//! `keyrail record` and `keyrail replay`: what a handler had on a key, kept in a file, and run again anywhere.

mod bundle;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use keyrail::access::{self, Need};
use keyrail::config::Config;
use keyrail::service::RecordFrom;
use keyrail::trial::{Case, Emits, Ending, Handled, Happened, State, Trial, apply};
use keyrail_ordering::Generation;

use super::failure::{Exit, Refused, printed};
use super::numbers::count;
use super::{test, text};
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
/// Answers of outgoing calls are not part of a bundle yet: the handler is run without grants.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail replay client-7.bundle.jsonl --with billing.wasm\n  \
    keyrail replay client-7.bundle.jsonl --with billing.wasm --update    (this is how it should be)\n\n\
    Without anything expected it ends with 3 if the key stands still; else with 1 if anything differs.")]
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
            Handled { ending: Ending::Behind, failures: vec![], logs: vec![], notes: vec![] }
        } else {
            let case = Case {
                partition: Some(&partition),
                entry: &at,
                event: &event,
                recorded_at_ms: entry.recorded_at_ms,
                generation: Generation(1),
                attempt: 1,
                state: &state,
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
    if happened.is_empty() {
        return Err(anyhow!("{} has no event", args.file.display()));
    }
    let states = || std::iter::once((&partition, &*state));
    let lines = test::lines(&happened, states())?;
    printed(if args.json { test::print_lines(&lines) } else { test::show_all(&happened, states()) })?;
    if args.update {
        if let Some(path) = &args.expect {
            test::write_lines(path, &lines)?;
        } else {
            bundle.expect(lines);
            bundle.write(&args.file)?;
        }
        return Ok(Exit::Done);
    }
    match expected {
        Some(expected) => expected.judge(&lines),
        None => Ok(test::without_expectation(&happened)),
    }
}
