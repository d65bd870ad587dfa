//! `keyrail config`: what is set, by whom, and what could be.

use std::io::{self, Write};

use anyhow::Result;
use keyrail::config::{self, Layers, Origin};

use super::document;
use super::failure::{Exit, printed};

/// Look at settings
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Show every setting that is in force, and who set it
    ///
    /// Passwords in addresses are left out.
    #[command(after_help = "Examples:\n  keyrail config show\n  keyrail config show --changed\n  \
        keyrail config show --json | jq 'select(.origin != \"default\")'")]
    Show(Show),
    /// Print what settings there are, as Markdown
    #[command(after_help = "Example:\n  keyrail config reference | less")]
    Reference,
    /// Print a JSON Schema of keyrail.toml, for editors
    #[command(after_help = "Example:\n  keyrail config schema > keyrail.schema.json\n\n\
        An editor with a TOML server takes it from a first line `#:schema ./keyrail.schema.json` in keyrail.toml.")]
    Schema,
}

#[derive(clap::Args)]
pub(crate) struct Show {
    /// Only those that somebody set
    #[arg(long)]
    changed: bool,
    /// Print one JSON object a setting
    #[arg(long)]
    json: bool,
}

pub(crate) fn show(args: &Show, layers: &Layers) -> Result<Exit> {
    let mut settings = config::in_force(layers)?;
    settings.retain(|setting| !args.changed || setting.origin != Origin::Default);
    printed(print(args, &settings))?;
    Ok(Exit::Done)
}

fn print(args: &Show, settings: &[config::InForce]) -> Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        for setting in settings {
            writeln!(out, "{}", serde_json::to_string(setting)?)?;
        }
        return Ok(());
    }
    let lines: Vec<_> =
        settings.iter().map(|setting| (setting, format!("{} = {}", setting.name, setting.value))).collect();
    let width = lines.iter().map(|(_, line)| line.chars().count()).max().unwrap_or(0);
    for (setting, line) in lines {
        match &setting.origin {
            Origin::Default => writeln!(out, "{line}")?,
            origin => writeln!(out, "{line:<width$}  # {origin}")?,
        }
    }
    Ok(())
}

/// What there could be; needs no configuration that loads.
pub(crate) fn tell(command: &Command) -> Option<Result<Exit>> {
    match command {
        Command::Show(_) => None,
        Command::Reference => Some(document::settings()),
        Command::Schema => Some(schema()),
    }
}

fn schema() -> Result<Exit> {
    let text = serde_json::to_string_pretty(&config::schema())?;
    writeln!(io::stdout(), "{text}")?;
    Ok(Exit::Done)
}
