//! The command line: the only place that prints, and the only one that uses anyhow.
//!
//! A command does its work through [`keyrail::access`], so it need not know whether a host is running. Whatever fails
//! ends as one line on standard error and an exit code of [`failure::Exit`].

mod audit;
mod by;
mod check;
mod config;
mod deploy;
mod dlq;
mod doctor;
mod document;
mod failure;
mod halted;
mod head;
mod health;
mod load;
mod log;
mod members;
mod new;
mod numbers;
mod partitions;
mod pause;
mod publish;
mod register;
mod replay;
mod run;
mod state;
mod table;
mod tail;
mod test;
mod text;
mod token;
mod top;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use keyrail::config::{COMPILE_COMMAND, Config, Layers, load as load_config, origins};

use failure::{Exit, Usage};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed
  2  wrong usage or configuration
  3  run --until-idle: partitions are halted, or emitted events abandoned
  4  the broker is away or cannot be used; doctor: a check failed
  5  refused input: a bad line, a refused handler";

const LONG_ABOUT: &str = "\
Keyrail runs event handlers that were compiled to WebAssembly. Events that share a key run one at a time and in the \
order of publishing, on any number of hosts; events of different keys run in parallel.";

const EXAMPLES: &str = "\
Examples:
  keyrail run --handler itinerary.wasm                 a host on the file keyrail.redb
  keyrail deploy itinerary.wasm                        put the next version in its place, while it runs
  keyrail publish flights.jsonl.gz                     give it events, from another terminal
  keyrail partitions flight                            see who works on what
  keyrail top                                          watch the fleet: rates, lag, what stands still
  keyrail tail flight                                  watch events as they are published
  keyrail halted                                       see what stands still, and what to type next
  keyrail doctor                                       see whether everything is as it should be
  keyrail state dump itinerary                         see what came out
  keyrail run --broker redis://10.0.0.5 --handler itinerary.wasm    the same, any number of times

Settings come from defaults, then keyrail.toml in the working folder (or --config FILE), then variables of the \
environment (engine.lease_ttl_ms is KEYRAIL_ENGINE_LEASE_TTL_MS), then flags.";

#[derive(Parser)]
#[command(name = "keyrail", version = env!("KEYRAIL_VERSION"), about = "Runs WebAssembly handlers on keyed events, in order per key")]
#[command(long_about = LONG_ABOUT, after_help = EXIT_CODES, after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
struct Cli {
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    command: Command,
}

/// Where settings come from.
#[derive(clap::Args)]
struct Settings {
    /// Where events and state live: embedded:PATH, memory, redis://HOST[:PORT][/DB], or socket:PATH or http[s]://HOST:PORT of a running host
    ///
    /// Default: embedded:keyrail.redb, or KEYRAIL_BROKER, or `broker` in keyrail.toml. An embedded file is held by one
    /// process; while a host holds it, the other commands talk to that host through FILE.sock.
    #[arg(long, global = true, value_name = "ADDRESS")]
    broker: Option<String>,
    /// Work through the host at this URL, as --broker does
    ///
    /// With KEYRAIL_TOKEN or --token-file where it asks for a token. KEYRAIL_HOST does as well.
    #[arg(long, global = true, value_name = "URL", conflicts_with = "broker")]
    host: Option<String>,
    /// File that holds the token for --host, and nothing else
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Configuration file [default: keyrail.toml in the working folder, if there]
    #[arg(long, global = true, value_name = "FILE", env = "KEYRAIL_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,
    /// Change a setting, e.g. --set engine.lease_ttl_ms=5000; repeatable
    #[arg(long, global = true, value_name = "NAME=VALUE")]
    set: Vec<String>,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Register(register::Args),
    Deploy(deploy::Args),
    Handlers(deploy::HandlersArgs),
    Promote(deploy::Promote),
    Rollback(deploy::Rollback),
    Undeploy(deploy::Undeploy),
    Publish(publish::Args),
    Check(check::Args),
    Test(test::Args),
    New(new::Args),
    Record(replay::Record),
    Replay(replay::Replay),
    /// Look at the state of handlers
    #[command(subcommand)]
    State(state::Command),
    Partitions(partitions::Args),
    Halted(halted::Args),
    /// Look at the event that a key stands on, and decide on it
    #[command(subcommand)]
    Head(head::Command),
    /// Look at events that were set aside, publish them again, drop them
    #[command(subcommand)]
    Dlq(dlq::Command),
    Pause(pause::Pause),
    Resume(pause::Resume),
    Paused(pause::Paused),
    Audit(audit::Args),
    Members(members::Args),
    Tail(tail::Args),
    Top(top::Args),
    Doctor(doctor::Args),
    /// Look at settings: what is in force and who set it, and what there is to set
    #[command(subcommand)]
    Config(config::Command),
    Token(token::Args),
    Health(health::Args),
    /// Compile a component for a host that started this process
    #[command(name = COMPILE_COMMAND, hide = true)]
    CompileComponent {
        /// What the host wants
        job: String,
    },
    /// Print completions for a shell
    #[command(after_help = "Example:\n  keyrail completions bash > /etc/bash_completion.d/keyrail")]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    #[command(hide = true)]
    Man(document::Man),
}

/// Parses the arguments, does what they say, and tells how it went.
pub(crate) fn main() -> ExitCode {
    let mut cli = Cli::parse();
    // Of a process like this one: no configuration, no log, no threads beside the compiler's.
    if let Command::CompileComponent { job } = &cli.command {
        return compile(job);
    }
    if cli.settings.broker.is_none() && cli.settings.host.is_none() {
        // Not by clap: there it would conflict with --broker, and a flag stands above the environment.
        cli.settings.host = std::env::var("KEYRAIL_HOST").ok().filter(|host| !host.is_empty());
    }
    if let Some(broker) = cli.settings.broker.as_ref().or(cli.settings.host.as_ref()) {
        text::remember_broker(broker);
    }
    let done = tell(&cli.command).unwrap_or_else(|| configured(cli));
    let exit = match done {
        Ok(exit) => exit,
        Err(error) => failure::report(&error),
    };
    exit.into()
}

fn compile(job: &str) -> ExitCode {
    match keyrail_runtime::compile_component(job) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// What the program says of itself: no configuration is needed, and none can be in the way.
fn tell(command: &Command) -> Option<Result<Exit>> {
    match command {
        Command::Completions { shell } => Some(completions(*shell)),
        Command::Man(args) => Some(document::man(args, Cli::command())),
        Command::Config(command) => config::tell(command),
        _ => None,
    }
}

fn completions(shell: clap_complete::Shell) -> Result<Exit> {
    let mut script = vec![];
    clap_complete::generate(shell, &mut Cli::command(), "keyrail", &mut script);
    io::stdout().write_all(&script)?;
    Ok(Exit::Done)
}

fn configured(cli: Cli) -> Result<Exit> {
    let layers = layers(&cli.settings)?;
    match (load_config(&layers), &cli.command) {
        (Ok(_), Command::Config(config::Command::Show(args))) => config::show(args, &layers),
        (Ok(config), _) => perform(cli, &config, &origins(&layers)),
        // It says everything that is wrong, this too.
        (Err(error), Command::Doctor(args)) => doctor::misconfigured(args, &error, &origins(&layers)),
        (Err(error), _) => Err(error.into()),
    }
}

fn perform(cli: Cli, config: &Config, origins: &[String]) -> Result<Exit> {
    log::start(&config.log, matches!(cli.command, Command::Run(_)))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let named = cli.settings.broker.is_some() || cli.settings.host.is_some();
    let done = runtime.block_on(async {
        match cli.command {
            Command::Run(args) => run::run(args, config).await,
            Command::Register(args) => register::run(args, config).await,
            Command::Deploy(args) => deploy::run(args, config).await,
            Command::Handlers(args) => deploy::handlers(args, config).await,
            Command::Promote(args) => deploy::promote(args, config).await,
            Command::Rollback(args) => deploy::rollback(args, config).await,
            Command::Undeploy(args) => deploy::undeploy(args, config).await,
            Command::Publish(args) => publish::run(args, config).await,
            Command::Check(args) => check::run(args, config, named).await,
            Command::Test(args) => test::run(args, config).await,
            Command::New(args) => new::run(args),
            Command::Token(args) => token::run(args),
            Command::Health(args) => health::run(args, config).await,
            Command::Record(args) => replay::record(args, config).await,
            Command::Replay(args) => replay::replay(args, config).await,
            Command::State(state::Command::Dump(args)) => state::dump(args, config).await,
            Command::Partitions(args) => partitions::run(args, config).await,
            Command::Halted(args) => halted::run(args, config).await,
            Command::Head(command) => head::run(command, config).await,
            Command::Dlq(command) => dlq::run(command, config).await,
            Command::Pause(args) => pause::pause(args, config).await,
            Command::Resume(args) => pause::resume(args, config).await,
            Command::Paused(args) => pause::paused(args, config).await,
            Command::Audit(args) => audit::run(args, config).await,
            Command::Members(args) => members::run(args, config).await,
            Command::Tail(args) => tail::run(args, config).await,
            Command::Top(args) => top::run(args, config).await,
            Command::Doctor(args) => doctor::run(args, config, origins).await,
            // Done before there was a runtime.
            Command::CompileComponent { .. } | Command::Completions { .. } | Command::Man(_) | Command::Config(_) => {
                Ok(Exit::Done)
            }
        }
    });
    // A thread that still reads standard input must not keep the process.
    runtime.shutdown_background();
    done
}

fn layers(settings: &Settings) -> Result<Layers> {
    let mut flags = vec![];
    for set in &settings.set {
        let (name, value) =
            set.split_once('=').ok_or_else(|| Usage(format!("--set {set:?} is not of the form NAME=VALUE")))?;
        flags.push((format!("--set {name}"), name.trim().to_string(), value.to_string()));
    }
    if let Some(broker) = &settings.broker {
        flags.push(("--broker".into(), "broker".into(), broker.clone()));
    }
    if let Some(host) = &settings.host {
        if !host.starts_with("http://") && !host.starts_with("https://") {
            return Err(Usage(format!("--host {host:?} is no URL; give http://HOST:PORT or https://HOST:PORT")).into());
        }
        flags.push(("--host".into(), "broker".into(), host.clone()));
    }
    if let Some(file) = &settings.token_file {
        flags.push(("--token-file".into(), "client.token_file".into(), file.display().to_string()));
    }
    // Variables that are no text cannot be ours.
    let environment = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    Ok(Layers { file: settings.config.clone(), environment: environment.collect(), flags })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
