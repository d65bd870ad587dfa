//! `keyrail token`: who may use a host over HTTP.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use jiff::{SignedDuration, Timestamp};
use keyrail::api::tokens::{Role, Tokens, entry_text, new_token};
use keyrail::clock;

use super::failure::{Exit, Usage, cannot_read, cannot_write};

/// Only its owner: it says who may do what, though nobody can use what stands in it.
const MODE: u32 = 0o600;

/// Make a token for the HTTP API, shown once
///
/// The file of http.tokens_file gets its SHA-256, so nobody who reads the file can use it. Hosts read the file again when it
/// changes. Take a token back by removing its entry.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail token shop --role publish --file tokens.toml\n  \
    keyrail token night-shift --role read --role operate --days 30 --file tokens.toml\n\n\
    Roles: publish (events), read (everything that can be seen, payloads too), operate (heads, dead letters, pauses), \
    deploy (handlers). Each is its own: give several.")]
pub(crate) struct Args {
    /// Who gets it; keyrail audit shows this name
    name: String,
    /// What it is good for: publish, read, operate, deploy; repeatable
    #[arg(long = "role", value_name = "ROLE", required = true)]
    roles: Vec<Role>,
    /// Refused after this many days
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    days: Option<u32>,
    /// File to add its entry to, made if it is not there; without it the entry is printed
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let Args { name, mut roles, days, file } = args;
    roles.sort_by_key(|role| role.as_str());
    roles.dedup();
    let (token, entry) = new_token(&name, roles, days.map(expiry).transpose()?);
    let entry = entry_text(&entry);
    let Some(file) = file else {
        check(&entry)?;
        eprintln!("add this to the file of http.tokens_file:\n\n{entry}\nthe token, shown this once:");
        writeln!(io::stdout(), "{token}")?;
        return Ok(Exit::Done);
    };
    let before = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(cannot_read(&file, "give a file of tokens, or a new one")(error)),
    };
    let gap = if before.is_empty() || before.ends_with("\n\n") { "" } else { "\n" };
    // Nothing is written that a host would refuse.
    check(&format!("{before}{gap}{entry}")).with_context(|| format!("{} stays as it is", file.display()))?;
    let mut opened =
        OpenOptions::new().create(true).append(true).mode(MODE).open(&file).map_err(cannot_write(&file))?;
    write!(opened, "{gap}{entry}").map_err(cannot_write(&file))?;
    eprintln!("{} is in {}; the token, shown this once:", name, file.display());
    writeln!(io::stdout(), "{token}")?;
    Ok(Exit::Done)
}

fn check(text: &str) -> Result<()> {
    Tokens::parse(text).map_err(|error| Usage(error.to_string()))?;
    Ok(())
}

fn expiry(days: u32) -> Result<Timestamp> {
    let now = Timestamp::from_millisecond(clock::wall_ms().cast_signed())?;
    let wrong = || Usage(format!("--days {days} is beyond any calendar"));
    Ok(now.checked_add(SignedDuration::from_hours(24 * i64::from(days))).map_err(|_| wrong())?)
}
