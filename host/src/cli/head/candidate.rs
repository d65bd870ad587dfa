//! `keyrail head try`: what a candidate would make of the event that a key stands on.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use keyrail::access::Access;
use keyrail::config::Config;
use keyrail::service::{RecordFrom, RecordedEntry};
use keyrail::trial::{Case, Emits, Http, State, Trial, Tried, apply, shown_value};
use keyrail_ordering::{Failure, Generation};
use serde::Serialize;
use serde_json::value::RawValue;

use super::super::failure::{Exit, Refused, one_line, printed};
use super::super::{load, test, text};
use super::Place;

/// Try the event that a key stands on with a candidate, and change nothing
///
/// The candidate is run once on the head, over the state as it is. What it logs, writes and emits is shown and goes nowhere: the
/// head, its tries and its owner stay as they are. Only HTTP calls that its manifest grants are made for real.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  keyrail head try order client-7 --with billing.wasm\n\n\
    Ends with 0 if the candidate is done with the event, and with 1 if the try fails.")]
pub(crate) struct Try {
    #[command(flatten)]
    place: Place,
    /// Component to try; it must declare the same handler
    #[arg(long, value_name = "FILE.wasm")]
    with: PathBuf,
    /// Manifest of that component [default: FILE.manifest.toml beside it, if there]
    #[arg(long, value_name = "FILE.toml")]
    grants: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    group: &'a str,
    /// The candidate's.
    version: &'a str,
    entry: &'a str,
    /// `done`, or the kind of failure.
    result: &'a str,
    error: Option<&'a str>,
    state: Vec<Change>,
    emits: Vec<keyrail::trial::Emitted>,
    logs: Vec<String>,
}

/// A value that would be another afterwards.
#[derive(Serialize)]
struct Change {
    name: String,
    before: Option<Box<RawValue>>,
    after: Option<Box<RawValue>>,
}

pub(super) async fn run(args: Try, access: &Access, config: &Config) -> Result<Exit> {
    let module = test::one_module(config, &args.with, args.grants.as_deref()).await?;
    let metadata = module.metadata().clone();
    let Place { category, key, group } = &args.place;
    // Several handlers may read the category: the candidate says which it is for.
    let group = group.as_deref().unwrap_or(metadata.name.as_str());
    if group != metadata.name.as_str() {
        let file = args.with.display();
        return Err(Refused(format!("{file} declares the handler {}, not {group}", metadata.name)).into());
    }
    let recording = access.recording((category, key, Some(group)), RecordFrom::Head, 1).await?;
    let Some(entry) = recording.entries.first() else {
        return Err(anyhow!("nothing waits in {category}/{key} for {group}"));
    };
    let before: Arc<State> =
        Arc::new(recording.state.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect());
    let catalog = Arc::new(recording.catalog(&metadata));
    let mut trial = Trial::new(module, catalog, Emits::Checked, &config.engine.retry);
    let case = Case {
        partition: Some(&recording.partition()),
        entry: &entry.at().map_err(|why| anyhow!(why))?,
        event: &entry.event(),
        recorded_at_ms: entry.recorded_at_ms,
        generation: Generation(1),
        attempt: recording.failed_tries + 1,
        state: &before,
        http: Http::Live,
    };
    if let Some(granted) = load::http_granted(trial.module()) {
        eprintln!("the candidate's HTTP calls are made for real, and can have effects: {granted}");
    }

    let Some(tried) = trial.once(&case).await? else {
        let (of, name) = (&entry.category, &entry.name);
        return Err(Refused(format!(
            "{} does not handle {of}/{name}: it would pass over the event",
            args.with.display()
        ))
        .into());
    };
    let exit = if tried.outcome.is_ok() { Exit::Done } else { Exit::Failed };
    printed(show(&args, group, &metadata.version, entry, &before, &tried))?;
    Ok(exit)
}

fn show(args: &Try, group: &str, version: &str, entry: &RecordedEntry, before: &State, tried: &Tried) -> Result<()> {
    let effects = tried.outcome.as_ref().ok();
    let mut after = before.clone();
    effects.inspect(|effects| apply(&mut after, effects));
    let changes = changes(before, &after);
    let emits = effects.map(|effects| effects.emits.iter().map(keyrail::trial::Emitted::from).collect());
    let emits: Vec<_> = emits.unwrap_or_default();
    let (result, error) = match &tried.outcome {
        Ok(_) => ("done", None),
        Err(Failure { kind, error }) => (kind.as_str(), Some(error.as_str())),
    };
    let mut out = io::stdout().lock();
    if args.json {
        let logs = tried.logs.iter().map(|line| format!("{} {}: {}", line.level, line.context, line.message)).collect();
        let report = Report { group, version, entry: &entry.entry, result, error, state: changes, emits, logs };
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
        return Ok(());
    }
    let Place { category, key, .. } = &args.place;
    writeln!(out, "{} {} at {category}/{key} with {group} {}: {result}", entry.name, entry.entry, one_line(version))?;
    if let Some(error) = error {
        writeln!(out, "{}", text::indented(&text::frames_apart(error)))?;
    }
    test::indented_logs(&mut out, &tried.logs)?;
    if effects.is_some() {
        diff(&mut out, &changes)?;
        for emit in &emits {
            writeln!(out, "  emits {}", test::short(&serde_json::to_string(emit)?))?;
        }
        let grants = args.grants.as_ref().map(|file| format!(" --grants {}", text::word(&file.display().to_string())));
        let deploy =
            format!("keyrail deploy {}{}", text::word(&args.with.display().to_string()), grants.unwrap_or_default());
        let retry = text::head_command("retry", category, key, group);
        writeln!(
            out,
            "\nnothing was changed; if this is right: {}",
            text::typed(&format!("{deploy}, then {retry} --reason TEXT"))
        )?;
    } else {
        writeln!(out, "\nnothing was changed")?;
    }
    Ok(())
}

fn changes(before: &State, after: &State) -> Vec<Change> {
    let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let differs = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    let shown = |state: &State, name: &String| state.get(name).map(|value| shown_value(value));
    differs.map(|name| Change { name: name.clone(), before: shown(before, name), after: shown(after, name) }).collect()
}

fn diff(out: &mut impl Write, changes: &[Change]) -> io::Result<()> {
    if changes.is_empty() {
        writeln!(out, "  the state stays as it is")?;
    }
    for change in changes {
        for (sign, value) in [('-', &change.before), ('+', &change.after)] {
            if let Some(value) = value {
                writeln!(out, "  {sign} {} = {}", change.name, test::short(value.get()))?;
            }
        }
    }
    Ok(())
}
