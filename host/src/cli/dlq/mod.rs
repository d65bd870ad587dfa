//! `keyrail dlq`: events that were set aside.

mod act;
mod show;

use anyhow::Result;
use keyrail::access::{self, Access, Need};
use keyrail::config::Config;
use keyrail::service::DeadLetterView;

use super::by;
use super::failure::{Exit, Usage};

/// What `list` shows unless told otherwise.
const LIMIT_DEFAULT: u64 = 1_000;
const LIMIT_MAX: u64 = 1_000_000;

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    List(List),
    Show(Show),
    Redrive(Redrive),
    Purge(Purge),
}

/// List events that were set aside: by an operator, or by the host in a category that is not partitioned
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail dlq list\n  keyrail dlq list order client-7\n  \
    keyrail dlq list order --json | jq -r .error | sort | uniq -c")]
pub(crate) struct List {
    /// Only this category
    category: Option<String>,
    /// Only this key
    #[arg(allow_hyphen_values = true)]
    key: Option<String>,
    /// How many at most
    #[arg(long, default_value_t = LIMIT_DEFAULT, value_parser = clap::value_parser!(u64).range(1..=LIMIT_MAX), value_name = "N")]
    limit: u64,
    /// Print one JSON object an event, with its data
    #[arg(long)]
    json: bool,
}

/// Show an event that was set aside: its content, its error in full, who set it aside and why
#[derive(clap::Args)]
#[command(override_usage = "keyrail dlq show [OPTIONS] <CATEGORY> [KEY] <ID>")]
#[command(after_help = "Example:\n  keyrail dlq show order client-7 3-0")]
pub(crate) struct Show {
    /// Category
    category: String,
    #[command(flatten)]
    letter: Words,
    /// Show all of the data, however long
    #[arg(long)]
    full: bool,
    /// Print a JSON object, with all of the data
    #[arg(long)]
    json: bool,
}

/// Publish events that were set aside again, for the handler that did not handle them
///
/// Each goes to the end of its key's stream, so it runs after everything that is there now, and leaves the dead letters.
/// Other handlers of the category settle it without a call: they had it already.
#[derive(clap::Args)]
#[command(override_usage = "keyrail dlq redrive [OPTIONS] --reason <TEXT> <CATEGORY> [KEY] <ID|--all>")]
#[command(after_help = "Examples:\n  keyrail dlq redrive order client-7 3-0 --reason 'release 1.4 can read it'\n  \
    keyrail dlq redrive order --all --reason 'release 1.4 can read them'         counts them\n  \
    keyrail dlq redrive order --all --yes --reason 'release 1.4 can read them'   and does it")]
pub(crate) struct Redrive {
    #[command(flatten)]
    act: Act,
}

/// Drop events that were set aside, for good
#[derive(clap::Args)]
#[command(override_usage = "keyrail dlq purge [OPTIONS] --reason <TEXT> <CATEGORY> [KEY] <ID|--all>")]
#[command(after_help = "Examples:\n  keyrail dlq purge order client-7 3-0 --reason 'a test order'\n  \
    keyrail dlq purge order client-7 --all --yes --reason 'test orders'")]
pub(crate) struct Purge {
    #[command(flatten)]
    act: Act,
}

#[derive(clap::Args)]
struct Act {
    /// Category
    category: String,
    #[command(flatten)]
    letter: Words,
    /// All of the category, or of the key; tells how many unless --yes is given
    #[arg(long)]
    all: bool,
    /// With --all: do it
    #[arg(long, requires = "all")]
    yes: bool,
    #[command(flatten)]
    by: by::Args,
    /// Print one JSON object an event
    #[arg(long)]
    json: bool,
}

/// `[KEY] ID`: which of the two a word is, its place tells.
#[derive(clap::Args)]
struct Words {
    /// Key, where the category has keys; else the id
    #[arg(value_name = "KEY", allow_hyphen_values = true)]
    first: Option<String>,
    /// Id, as keyrail dlq list prints it
    #[arg(value_name = "ID")]
    second: Option<String>,
}

impl Words {
    fn letter(&self) -> Result<Letter, Usage> {
        match (&self.first, &self.second) {
            (Some(id), None) => Ok((None, id.clone())),
            (Some(key), Some(id)) => Ok((Some(key.clone()), id.clone())),
            (None, _) => Err(Usage("give [KEY] ID, or [KEY] --all; see keyrail dlq list".into())),
        }
    }

    /// With --all.
    fn key(&self) -> Result<Option<&str>, Usage> {
        match &self.second {
            None => Ok(self.first.as_deref()),
            Some(_) => Err(Usage("--all takes no id: give CATEGORY [KEY] --all".into())),
        }
    }
}

/// One dead letter: its key, where it has one, and its id.
type Letter = (Option<String>, String);

pub(crate) async fn run(command: Command, config: &Config) -> Result<Exit> {
    let access = access::open(config, Need::Existing).await?;
    match command {
        Command::List(args) => show::list(args, &access).await,
        Command::Show(args) => show::one(args, &access).await,
        Command::Redrive(args) => act::run(act::Action::Redrive, args.act, &access).await,
        Command::Purge(args) => act::run(act::Action::Purge, args.act, &access).await,
    }
}

/// Calls `each` for every dead letter of the category and key, or of all, until it answers false.
async fn walk(
    access: &Access,
    category: Option<&str>,
    key: Option<&str>,
    mut each: impl FnMut(DeadLetterView) -> Result<bool>,
) -> Result<()> {
    let mut cursor: Option<String> = None;
    loop {
        let page = access.dead_letters(category, key, cursor.as_deref()).await?;
        for letter in page.rows {
            if !each(letter)? {
                return Ok(());
            }
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_id_may_stand_alone_or_after_its_key() {
        let words = |first: Option<&str>, second: Option<&str>| Words {
            first: first.map(String::from),
            second: second.map(String::from),
        };
        assert_eq!(words(Some("3-0"), None).letter().ok(), Some((None, "3-0".into())));
        assert_eq!(words(Some("k1"), Some("3-0")).letter().ok(), Some((Some("k1".into()), "3-0".into())));
        assert!(words(None, None).letter().is_err());
        assert_eq!(words(Some("k1"), None).key().ok(), Some(Some("k1")));
        assert!(words(Some("k1"), Some("3-0")).key().is_err());
    }

    #[test]
    fn flags_after_the_words_are_flags() {
        use clap::Parser;
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            act: Act,
        }
        for line in ["x order k1 3-0 --reason r", "x order --all --yes --reason r", "x order -k 3-0 --reason r --json"]
        {
            let act = Line::try_parse_from(line.split(' ')).unwrap().act;
            assert!(act.all || act.letter.letter().unwrap().1 == "3-0", "{line}");
        }
    }
}
