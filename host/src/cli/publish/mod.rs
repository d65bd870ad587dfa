//! `keyrail publish`: events from a file or standard input, in order, checked against the catalog.

mod aside;
pub(crate) mod input;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{Error, Result, anyhow};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use keyrail::access::{self, Need};
use keyrail::clock;
use keyrail::config::Config;
use keyrail::service::{LaneName, LineText, Outcome, PublishOptions, Report, Stop, StopKind};
use serde::Serialize;
use tokio::sync::mpsc;

use super::failure::{Away, Exit, Refused, one_line, printed};
use super::numbers::{count, grouped, seconds_and_rate};
use aside::Aside;
use input::{Input, Source};

/// Reports that wait to be shown.
const REPORTS_MAX: usize = 64;
const TICK: Duration = Duration::from_millis(100);

/// Publish events: one JSON object a line
///
/// A line is {"category":…,"type":…,"data":{…}} with an optional "id" (text that names the event for ever), "headers"
/// (an object of texts), "version" (of the type) and "lane" (primary or backfill). Each is checked against what registered handlers declare. Events of
/// one key are published in the order of their lines.
///
/// A bad line stops: the lines before it are published, it and those after it are not. Ids are remembered (24 hours
/// unless publish.dedupe_window_ms says otherwise), so a file whose lines have ids can be published again after whatever
/// happened: what is there already is not added twice. A line without id gets a new one each time.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail publish flights.jsonl.gz\n  zcat *.gz | keyrail publish\n  \
    keyrail publish --skip-bad bad.jsonl events.jsonl\n  keyrail publish --lane backfill history.jsonl.gz")]
pub(crate) struct Args {
    /// File of JSON lines, plain or gzip; - or nothing for standard input
    #[arg(value_name = "FILE.jsonl[.gz]")]
    file: Option<PathBuf>,
    /// Write bad lines to FILE as they are, their reasons to standard error, and go on
    #[arg(long, value_name = "FILE")]
    skip_bad: Option<PathBuf>,
    /// Do not remember ids: publish even what was published before
    #[arg(long)]
    no_dedupe: bool,
    /// The lane of lines that name none: backfill is served only while a key's primary lane is empty
    #[arg(long, value_enum, default_value_t)]
    lane: LaneArg,
    /// Print the summary as a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum LaneArg {
    #[default]
    Primary,
    Backfill,
}

impl From<LaneArg> for LaneName {
    fn from(lane: LaneArg) -> Self {
        match lane {
            LaneArg::Primary => Self::Primary,
            LaneArg::Backfill => Self::Backfill,
        }
    }
}

#[derive(Serialize)]
struct Summary<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    seconds: f64,
}

pub(crate) async fn run(args: Args, config: &Config) -> Result<Exit> {
    let source = Source::new(args.file);
    if source == Source::Stdin && io::stdin().is_terminal() {
        eprintln!("reading events from the terminal, one JSON object a line; end with Ctrl-D");
    }
    source.check()?;
    let access = access::open(config, Need::Existing).await?;
    let Input { lines, ended, bytes_read, bytes_total } = source.read(config.publish.line_max_bytes)?;
    let mut aside = args.skip_bad.map(Aside::create).transpose()?;
    let bar = progress_bar(bytes_total);
    let options = PublishOptions { skip_bad: aside.is_some(), no_dedupe: args.no_dedupe, lane: args.lane.into() };
    let (reports, mut news) = mpsc::channel(REPORTS_MAX);
    let started_ms = clock::now_ms();
    let name = source.name();
    let show = async {
        while let Some(report) = news.recv().await {
            match report {
                Report::Progress { published, duplicates } => {
                    bar.set_position(bytes_read.load(Relaxed));
                    bar.set_message(grouped(published + duplicates));
                }
                Report::Bad { line, reason } => {
                    let lost = if matches!(line.text, LineText::TooLong { .. }) { " (not kept aside)" } else { "" };
                    bar.suspend(|| eprintln!("{name} line {}: {}{lost}", line.number, one_line(&reason)));
                    if let Some(aside) = &mut aside {
                        // Returning drops `news`, which ends the run.
                        aside.add(&line)?;
                    }
                }
            }
        }
        drop(news);
        Ok::<_, Error>(())
    };
    let (outcome, shown) = tokio::join!(access.publish(lines, options, reports), show);
    bar.finish_and_clear();
    let took_ms = clock::now_ms() - started_ms;
    let aside_done = aside.map_or(Ok(()), Aside::finish);
    printed(summary(&outcome, took_ms, args.json))?;
    shown?;
    aside_done?;
    if let Some(stop) = &outcome.stop {
        return Err(failure(stop, &outcome, &name));
    }
    // The sender ends without a word only if its thread died.
    match ended.await {
        Ok(None) => Ok(Exit::Done),
        Ok(Some(error)) => Err(Error::from(Refused(format!(
            "{error}; the lines before it are published, get the whole file and publish it again"
        )))),
        Err(_) => Err(anyhow!("reading {name} ended unexpectedly; publish it again")),
    }
}

fn summary(outcome: &Outcome, took_ms: u64, json: bool) -> Result<()> {
    let mut out = io::stdout().lock();
    if json {
        let summary = Summary { outcome, seconds: took_ms as f64 / 1_000.0 };
        writeln!(out, "{}", serde_json::to_string(&summary)?)?;
        return Ok(());
    }
    let all = outcome.published + outcome.duplicates;
    let took = seconds_and_rate(all, took_ms);
    write!(out, "published {} in {took}", count(outcome.published, "event"))?;
    write!(out, "; {} published before", grouped(outcome.duplicates))?;
    writeln!(out, "; {} skipped", count(outcome.skipped, "bad line"))?;
    Ok(())
}

fn failure(stop: &Stop, outcome: &Outcome, name: &str) -> Error {
    let place = stop.line.map_or_else(|| name.to_string(), |line| format!("{name} line {line}"));
    let done = count(outcome.published + outcome.duplicates, "event");
    let reason = one_line(&stop.reason);
    match stop.kind {
        StopKind::BadLine => Refused(format!(
            "{place}: {reason}; {done} published before it, nothing after it: mend the line and publish again, or use \
             --skip-bad FILE"
        ))
        .into(),
        StopKind::Refused => anyhow!(
            "{place}: the broker refuses it: {reason}; {done} published, of other keys perhaps some after it: mend the \
             broker and publish again"
        ),
        StopKind::Unavailable => {
            Away(format!("{place}: {reason}; {done} published for certain: publish again when the broker is back"))
                .into()
        }
        StopKind::Failed => anyhow!("{place}: {reason}; {done} published for certain"),
    }
}

/// A bar over the file's bytes, or a count for standard input; nothing unless someone looks.
fn progress_bar(bytes_total: Option<u64>) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(bytes_total, ProgressDrawTarget::stderr());
    let template = match bytes_total {
        Some(_) => "{bar:30} {percent}%  {msg} events  {elapsed} elapsed, {eta} to go",
        None => "{spinner} {msg} events  {elapsed} elapsed",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(TICK);
    bar
}
