//! `cargo xtask demo`: real flights through a handler, on the embedded broker, each step shown as the command that a user
//! would type.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::toolchain::Choice;
use crate::{guests, process, workspace};

/// Aircraft shown at the end.
const SHOWN: usize = 5;

pub(crate) fn run() -> Result<()> {
    let guests = guests::build_rust(Choice::default())?;
    process::step("demo", "building the host (several minutes the first time)");
    // As the tests do, so that the README's second command builds nothing of it again.
    workspace::build_programs()?;

    let target_dir = workspace::target_dir()?;
    let folder = target_dir.join("demo");
    // What an earlier demo left.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::copy(guests.join("itinerary.wasm"), folder.join("itinerary.wasm"))?;
    fs::copy(workspace::root().join("examples/flights/sample.jsonl.gz"), folder.join("flights.jsonl.gz"))?;
    let demo = Demo { keyrail: target_dir.join("debug/keyrail"), folder };

    println!("\nThe events: departures and arrivals of real aircraft, each keyed by its tail number.");
    println!("The handler: `itinerary`, a 200-line Rust program compiled to a WebAssembly component. It follows each");
    println!(
        "aircraft from airport to airport, which only comes out right if no event is lost, repeated or swapped.\n"
    );
    demo.show(&["check", "itinerary.wasm"])?;
    demo.show(&["register", "itinerary.wasm"])?;
    demo.show(&["publish", "flights.jsonl.gz"])?;
    println!(
        "Every aircraft is a partition now, with its events waiting in order. A host owns as many as it can at once,"
    );
    println!("runs the handler on one event of each at a time, and commits state and progress in one step.\n");
    demo.show(&["run", "--handler", "itinerary.wasm", "--until-idle"])?;
    let dump = demo.output(&["state", "dump", "itinerary"])?;
    println!("$ keyrail state dump itinerary | head -1");
    println!("{}\n", dump.lines().next().unwrap_or_default());
    println!("In words, for the first {SHOWN}:");
    for line in dump.lines().take(SHOWN) {
        println!("  {}", in_words(line));
    }
    println!();
    compare(&dump)?;
    println!("\nGo on from here, in {}:", demo.folder.display());
    println!("  {} partitions flight | less", demo.keyrail.display());
    println!("  kill a host in the middle of its work and start it again: the digests stay the same");
    Ok(())
}

struct Demo {
    keyrail: PathBuf,
    folder: PathBuf,
}

impl Demo {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.keyrail);
        command.args(args).current_dir(&self.folder).env("KEYRAIL_LOG_FILTER", "warn");
        command
    }

    fn show(&self, args: &[&str]) -> Result<()> {
        println!("$ keyrail {}", args.join(" "));
        process::run(&mut self.command(args))?;
        println!();
        Ok(())
    }

    fn output(&self, args: &[&str]) -> Result<String> {
        process::output(&mut self.command(args))
    }
}

/// Every aircraft's digest over the ids of its events, in the order applied, against the one worked out beforehand.
fn compare(dump: &str) -> Result<()> {
    let expected = workspace::root().join("examples/flights/sample.itinerary.jsonl");
    let expected = digests(&read(&expected)?, "tail_number");
    let found = digests(dump, "key");
    let wrong: Vec<_> = expected.iter().filter(|(key, digest)| found.get(*key) != Some(*digest)).collect();
    ensure!(wrong.is_empty(), "{} aircraft have another history than they should: {wrong:?}", wrong.len());
    println!("All {} aircraft have exactly the history that was worked out beforehand:", expected.len());
    println!("the digest of each covers every event id in the order in which it was applied.");
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// One aircraft's itinerary, for people.
fn in_words(line: &str) -> String {
    let text = |name| text_member(line, name).unwrap_or_default();
    let number = |name: &str| {
        let rest = line.split(&format!("\"{name}\":")).nth(1).unwrap_or_default();
        rest.chars().take_while(char::is_ascii_digit).collect::<String>()
    };
    format!(
        "{} landed {} times, last at {}, {} minutes late in all",
        text("key"),
        number("arrived"),
        text("last_airport"),
        number("minutes_late")
    )
}

/// The text of a member. Not worth a JSON library: these have nothing to escape.
fn text_member(line: &str, name: &str) -> Option<String> {
    let start = line.find(&format!("\"{name}\":\""))? + name.len() + 4;
    Some(line[start..].split('"').next()?.to_string())
}

/// Key → digest of each line.
fn digests(lines: &str, key: &str) -> BTreeMap<String, String> {
    lines.lines().filter_map(|line| Some((text_member(line, key)?, text_member(line, "digest")?))).collect()
}
