//! `keyrail new`: a project for a handler, with all that it needs of ours.

mod scaffold;

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use keyrail_ordering::GroupName;

use super::failure::{Exit, Usage, cannot_read, printed};
use super::text;

/// Begin a handler: a project with an example, a test, and the SDK
///
/// The project has the SDK and the interface to the host in its folder `keyrail`: of Keyrail nothing is downloaded. Its
/// README.md says how to build and test it.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  keyrail new billing --lang rust\n  keyrail new billing --lang ts --dir services/billing"
)]
pub(crate) struct Args {
    /// Name of the handler: small letters, digits and dashes; the project's folder is called so too
    #[arg(value_name = "NAME")]
    name: String,
    /// Language
    #[arg(long, value_enum)]
    lang: Language,
    /// Folder to make the project in; it must be empty or not be there [default: NAME]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// A language with an SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Language {
    Rust,
    Js,
    Ts,
    Python,
    Go,
    C,
}

impl Language {
    /// The folder of its SDK.
    const fn sdk(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Js | Self::Ts => "js",
            Self::Python => "python",
            Self::Go => "go",
            Self::C => "c",
        }
    }

    /// Folders of its template there: the first that exists.
    const fn templates(self) -> &'static [&'static str] {
        match self {
            Self::Js => &["template-js", "template"],
            Self::Ts => &["template-ts", "template"],
            _ => &["template"],
        }
    }
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    check_name(&args.name)?;
    let folder = args.dir.unwrap_or_else(|| PathBuf::from(&args.name));
    if folder.exists() {
        if !folder.is_dir() {
            return Err(Usage(format!("{} is a file; give another --dir", folder.display())).into());
        }
        if folder.read_dir().map_err(cannot_read(&folder, "give another --dir"))?.next().is_some() {
            return Err(Usage(format!("{} is not empty; give another --dir", folder.display())).into());
        }
    }
    let files = scaffold::files(args.lang, &args.name)?;
    scaffold::write(&folder, &files)?;
    printed(report(&folder, &args.name, files.len()))?;
    Ok(Exit::Done)
}

/// A name that is one everywhere: a handler's group, a folder, a package of any language.
fn check_name(name: &str) -> Result<()> {
    let usable = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if GroupName::parse(name).is_err() || !name.chars().all(usable) || name.ends_with('-') || name.contains("--") {
        return Err(Usage(format!(
            "{name:?} cannot be the name of a project: 1 to 64 small letters, digits and single dashes, beginning with a \
             letter, as in order-billing"
        ))
        .into());
    }
    Ok(())
}

fn report(folder: &std::path::Path, name: &str, files: usize) -> Result<()> {
    let mut out = io::stdout().lock();
    let shown = folder.display().to_string();
    writeln!(out, "made {name} in {shown} ({files} files)\n\nnext:")?;
    writeln!(out, "  cd {}", text::word(&shown))?;
    for command in scaffold::next_commands(folder) {
        writeln!(out, "  {command}")?;
    }
    writeln!(out, "README.md says more")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_in_every_language() {
        for good in ["a", "billing", "order-billing-2"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "Billing", "9lives", "a b", "a_b", "a--b", "a-", "-a", "../a", "a.b", "é", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
