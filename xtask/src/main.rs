//! Keyrail's tasks: `cargo xtask demo | test | guests | bench | simulate | chaos | book | reference | check-deploy | licences | dist`.
//!
//! They prepare what a fresh machine lacks and say each step in one line. Only light dependencies: everybody who builds
//! anything waits for it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

mod bench;
mod book;
mod chaos;
mod check_deploy;
mod debian;
mod demo;
mod dist;
mod guests;
mod languages;
mod notices;
mod process;
mod reference;
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
        /// Make the tables of docs/benchmarks.md from what is found
        #[arg(long)]
        write: bool,
        /// Passed on
        #[arg(last = true)]
        rest: Vec<String>,
    },
    /// Let random faults strike three hosts on a real Redis: `--faults N [--laps N] [--seed S] [--file FLIGHTS.jsonl.gz]`
    Chaos {
        /// Passed on to the run
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Build the documentation as a book, and check every link
    Book,
    /// Run the engine in a simulated world: `--seeds N [--seed FIRST] [--trace] [--mistake M]`
    Simulate {
        /// Passed on to the simulation
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Make the pages of docs/reference from the program: settings, commands
    Reference,
    /// Check Dockerfile, compose file, chart, manifests and systemd unit, with the tools of those who use them
    CheckDeploy {
        /// Render deploy/kubernetes/keyrail.yaml anew
        #[arg(long)]
        write: bool,
    },
    /// Check that every dependency has a licence and a source that deny.toml allows
    Licences,
    /// Build a release: a static program, manual pages, completions, licences and SBOM, in the target folder's `dist-archives/`
    Dist {
        /// Only the program, and put it there
        #[arg(long, value_name = "FILE")]
        binary: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Demo => demo::run(),
        Task::Test { rest } => test::run(&rest),
        Task::Guests { toolchain } => guests::build(toolchain).map(drop),
        Task::Component { project, output, toolchain } => guests::component(&project, &output, toolchain),
        Task::Bench { only, write, rest } => bench::run(only, write, &rest),
        Task::Chaos { rest } => chaos::run(&rest),
        Task::Book => book::run(),
        Task::Simulate { rest } => simulate::run(&rest),
        Task::Reference => reference::run(),
        Task::CheckDeploy { write } => check_deploy::run(write),
        Task::Licences => notices::check(),
        Task::Dist { binary: Some(to) } => dist::binary(&to),
        Task::Dist { binary: None } => dist::archive(),
    };
    report(done)
}

/// One line a cause, no backtrace: what failed is a program that was started here, and it has told its own story.
fn report(done: Result<()>) -> ExitCode {
    let Err(error) = done else { return ExitCode::SUCCESS };
    eprintln!("xtask: {error:#}");
    ExitCode::FAILURE
}
