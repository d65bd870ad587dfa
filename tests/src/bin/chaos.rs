//! `cargo xtask chaos`: see `keyrail_tests::chaos`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use keyrail_tests::chaos::{Plan, run_plan};

/// Runs three hosts on a Redis, lets random faults strike, and compares every aircraft's history in the end.
#[derive(Parser)]
struct Arguments {
    /// Events as gzipped JSON Lines of flights; January by default
    #[arg(long)]
    file: Option<PathBuf>,
    /// How often the file is published, each time with ids of its own
    #[arg(long, default_value_t = 1)]
    laps: u64,
    /// How many faults strike
    #[arg(long, default_value_t = 60)]
    faults: u64,
    /// What the faults are drawn from; printed, so that a run can be repeated
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    let Arguments { file, laps, faults, seed } = Arguments::parse();
    let seed = seed.unwrap_or_else(rand::random::<u64>);
    println!("chaos: seed {seed}, {faults} faults, {laps} laps");
    match run_plan(&Plan { file, laps, faults, seed }) {
        Ok(summary) => {
            println!("every one of {} aircraft has exactly its history of {} events", summary.keys, summary.events);
            for (name, times) in &summary.faults {
                println!("{times:>6} {name}");
            }
            println!("{:>6} changes of hands", summary.changes_of_hands);
            println!("{:>6} commits refused by the fence, their events run again", summary.refused);
            println!("the longest pause of a key: {:?}", summary.longest_pause);
            println!("took {:?}", summary.took);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("chaos: seed {seed}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
