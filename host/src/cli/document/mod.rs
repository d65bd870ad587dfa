//! What the program says of itself in other forms: manual pages, a page of all commands, a page of all settings.
//!
//! All of it is made from the definitions of commands and settings, so it cannot be out of date. `docs/reference` holds what comes
//! out; a test compares.

mod commands;
mod settings;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::failure::{Exit, cannot_write};

/// Write the manual pages of all commands, one file each, or print one Markdown page of them
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail man /usr/local/share/man/man1\n  keyrail man --markdown > cli.md")]
pub(crate) struct Man {
    /// Folder to write keyrail.1, keyrail-run.1, … to; it is made if it is missing
    #[arg(value_name = "DIR", required_unless_present = "markdown")]
    folder: Option<PathBuf>,
    /// Print all commands as one Markdown page instead
    #[arg(long, conflicts_with = "folder")]
    markdown: bool,
}

pub(crate) fn man(args: &Man, command: clap::Command) -> Result<Exit> {
    match &args.folder {
        Some(folder) => pages(folder, command)?,
        None => io::stdout().write_all(commands::markdown(command).as_bytes())?,
    }
    Ok(Exit::Done)
}

fn pages(folder: &Path, command: clap::Command) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(cannot_write(folder))?;
    clap_mangen::generate_to(command, folder).map_err(cannot_write(folder))
}

/// The page of all settings.
pub(crate) fn settings() -> Result<Exit> {
    io::stdout().write_all(settings::markdown(&keyrail::config::settings()).as_bytes())?;
    Ok(Exit::Done)
}
