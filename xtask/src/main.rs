//! Keyrail's tasks: `cargo xtask demo | test | guests | bench | simulate | chaos`.
//!
//! They prepare what a fresh machine lacks and say each step in one line. Only light dependencies: everybody who builds
//! anything waits for it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

mod bench;
mod chaos;
mod demo;
mod guests;
mod languages;
mod needs;
mod process;
mod simulate;
mod test;
mod toolchain;
mod workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Keyrail's tasks", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build host and guests, run real flights through them on the embedded broker, and show what happened
    Demo,
    /// Get what the tests need, build everything, and run all tests
    Test {
        /// Passed on to `cargo test`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Build the example and test handlers into components, in the target folder's `guests/`
    Guests {
        /// How to build for wasm32-wasip2
        #[arg(long, value_enum, default_value_t)]
        toolchain: toolchain::Choice,
    },
    /// Build a project of `keyrail new --lang rust` into a component, with whichever toolchain is there
    Component {
        /// The project's folder
        project: PathBuf,
        /// Where the component goes
        output: PathBuf,
        /// How to build for wasm32-wasip2
        #[arg(long, value_enum, default_value_t)]
        toolchain: toolchain::Choice,
    },
    /// Measure how long keys pause when owners change, events/s beside what Redis itself can do, and the parts
    Bench {
        /// Only these
        #[arg(long, value_enum)]
        only: Option<bench::Only>,
    },
    /// Let random faults strike three hosts on a real Redis: `--faults N [--laps N] [--seed S] [--file FLIGHTS.jsonl.gz]`
    Chaos {
        /// Passed on to the run
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Run the engine in a simulated world: `--seeds N [--seed FIRST] [--trace] [--mistake M]`
    Simulate {
        /// Passed on to the simulation
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Demo => demo::run(),
        Task::Test { rest } => test::run(&rest),
        Task::Guests { toolchain } => guests::build(toolchain).map(drop),
        Task::Component { project, output, toolchain } => guests::component(&project, &output, toolchain),
        Task::Bench { only } => bench::run(only),
        Task::Chaos { rest } => chaos::run(&rest),
        Task::Simulate { rest } => simulate::run(&rest),
    };
    report(done)
}

/// One line a cause, no backtrace: what failed is a program that was started here, and it has told its own story.
fn report(done: Result<()>) -> ExitCode {
    let Err(error) = done else { return ExitCode::SUCCESS };
    eprintln!("xtask: {error:#}");
    ExitCode::FAILURE
}
