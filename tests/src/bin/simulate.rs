//! Runs seeds of the simulation: `simulate --seeds N [--seed S] [--trace] [--mistake M]`. Meant for `cargo xtask simulate`.

use std::process::ExitCode;

use clap::Parser;
use keyrail_tests::simulation::{self, Mistake, Options};

#[derive(Parser)]
#[command(about = "Runs the engine in a simulated world, one run a seed")]
struct Arguments {
    /// How many seeds
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first one
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print what happened
    #[arg(long)]
    trace: bool,
    /// With this mistake in the broker: to see that it is found
    #[arg(long, value_enum)]
    mistake: Option<Mistake>,
    /// Seeds run at once
    #[arg(long, default_value_t = 2)]
    threads: u64,
}

fn main() -> ExitCode {
    let Arguments { seeds, seed: first, trace, mistake, threads } = Arguments::parse();
    let found = simulation::run_many(
        first..first + seeds,
        threads,
        |seed| Options { seed, mistake, trace },
        |report| {
            for line in &report.lines {
                println!("{line}");
            }
            if let Some(violation) = report.violations.first() {
                println!("seed {}: {} at {} ms: {}", report.seed, violation.check, violation.at_ms, violation.what);
            } else if trace || seeds == 1 {
                println!(
                    "seed {}: well; {} facts in {} ms, hash {:016x}",
                    report.seed, report.facts, report.virtual_ms, report.hash
                );
            }
        },
    );
    println!("{} of {seeds} seeds from {first} on broke something", found.len());
    if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
