//! `keyrail top`: the fleet in a terminal, as it is now.

mod frame;
mod model;
mod screen;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use keyrail::access::{self, Access, Need};
use keyrail::config::Config;
use ratatui::backend::TestBackend;
use ratatui::{Frame, Terminal};
use serde_json::json;

use super::failure::{Exit, Usage};
use super::tail::refuse_to_hold;
use frame::View;
use model::{Look, flows};

/// Columns of a picture that goes into a file, unless the surroundings say otherwise.
const WIDTH: u16 = 100;

/// Watch the fleet: hosts, categories with rates and lag, what stands still
///
/// Rates are what the totals grew by between two looks. In a terminal: q ends, tab goes to the next part, arrows or j and k
/// move, enter on what is halted says what to type, ? explains the columns.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail top\n  keyrail top --interval 5\n  \
    keyrail top --once --json | jq '.overview.categories[].groups[].lag'")]
pub(crate) struct Args {
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval)]
    interval: f64,
    /// Look twice, print one picture as text, and end
    #[arg(long)]
    once: bool,
    /// With --once: print a JSON object
    #[arg(long, requires = "once")]
    json: bool,
}

fn interval(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=3_600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds, from 0.1 to 3600".into()),
    }
}

pub(crate) async fn run(args: Args, config: &Config) -> Result<Exit> {
    let interval = Duration::from_secs_f64(args.interval);
    if args.once {
        let access = access::open(config, Need::Existing).await?;
        return once(&access, interval, args.json).await;
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Usage("this is no terminal; use keyrail top --once".into()).into());
    }
    let access = access::open(config, Need::Existing).await?;
    refuse_to_hold(&access, config)?;
    screen::watch(&access, interval, colours()).await?;
    Ok(Exit::Done)
}

async fn once(access: &Access, interval: Duration, json: bool) -> Result<Exit> {
    let before = Look::take(access).await?;
    tokio::time::sleep(interval).await;
    let now = Look::take(access).await?;
    let mut out = io::stdout().lock();
    if json {
        let Look { overview, halted } = &now;
        let picture = json!({ "overview": overview, "rates": flows(&now, Some(&before)), "halted": halted });
        writeln!(out, "{picture}")?;
        return Ok(Exit::Done);
    }
    let width = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).unwrap_or(WIDTH);
    let mut view = View::new(false);
    // There are no keys to speak of.
    view.said = Some(String::new());
    let picture = text_of(width, frame::height_of(&now), |frame| frame::draw(frame, &now, Some(&before), &view))?;
    write!(out, "{picture}")?;
    Ok(Exit::Done)
}

fn colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A picture as text, without anything that steers a terminal.
fn text_of(width: u16, height: u16, draw: impl FnOnce(&mut Frame)) -> Result<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).context("cannot draw")?;
    terminal.draw(draw).context("cannot draw")?;
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for cells in buffer.content().chunks(usize::from(width.max(1))) {
        let line: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    Ok(text)
}
