//! `keyrail deploy`, and what goes with it: `handlers`, `promote`, `rollback`, `undeploy`.

mod canary;
mod change;
mod handlers;
mod progress;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use keyrail::access::{self, Access, Need};
use keyrail::clock;
use keyrail::config::Config;
use keyrail::service::{DeployRequest, HostState, Proposed, Rollout, RolloutState, WhoAndWhy};
use keyrail_broker::ModuleInfo;
use keyrail_runtime::Module;
use serde::Serialize;

pub(crate) use change::{Promote, Rollback, Undeploy, promote, rollback, undeploy};
pub(crate) use handlers::{Args as HandlersArgs, run as handlers};

use super::failure::{Exit, Refused, cannot_read, one_line, printed};
use super::{by, load, text};
use progress::Progress;

/// How often the hosts are asked how far they are.
const ASK_INTERVAL: Duration = Duration::from_millis(100);
/// How long hosts may take to swap what they have loaded.
const SWAP_WAIT_MS: u64 = 10_000;

/// Deploy a handler to every host of the fleet, while they run
///
/// The component is checked here, then stored in the broker, then loaded by every host beside the version that serves. Once
/// all have it ready, all of them swap, between two events of each key; no key changes its owner for that. If one host
/// cannot run it, it is taken back everywhere, and the old version serves on.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  keyrail deploy billing.wasm --reason 'rounds to cents'\n  \
    keyrail deploy billing.wasm --grants billing.toml\n  \
    keyrail deploy billing.wasm --canary 5%\n  \
    keyrail deploy billing.wasm --canary client-7 --canary client-9\n  \
    keyrail deploy billing.wasm --dry-run\n\n\
    A canary goes on with keyrail promote, or back with keyrail rollback; it goes back by itself when one of its keys halts.\n\
    Ends with 5 if it is refused, by the rules or by a host.")]
pub(crate) struct Args {
    /// Component
    #[arg(value_name = "FILE.wasm")]
    file: PathBuf,
    /// Manifest with what it may use, and its limits [default: FILE.manifest.toml beside it, if there]
    #[arg(long, value_name = "FILE.toml")]
    grants: Option<PathBuf>,
    /// Serve only these keys at first: a key (repeatable), or a share such as 5%
    #[arg(long, value_name = "KEY|PERCENT%", allow_hyphen_values = true)]
    canary: Vec<String>,
    /// Check everything, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Why; goes on record
    #[arg(long, value_name = "TEXT", default_value = "deployed")]
    reason: String,
    #[command(flatten)]
    who: by::Who,
    /// Print a JSON object for each step
    #[arg(long)]
    json: bool,
}

/// One step, for programs.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum Step<'a> {
    Checked { handler: &'a str, version: &'a str, content_hash: &'a str, size_bytes: u64, warnings: &'a [String] },
    Proposed(&'a Proposed),
    Rollout(&'a Rollout),
}

pub(crate) async fn run(args: Args, config: &Config) -> Result<Exit> {
    let canary = canary::selection(&args.canary)?;
    let runtime = load::runtime(config)?;
    let (module, manifest) = load::with_grants(&runtime, &args.file, args.grants.as_deref()).await?;
    let bytes =
        tokio::fs::read(&args.file).await.map_err(cannot_read(&args.file, "build it first, or correct the path"))?;
    let info = ModuleInfo {
        content_hash: module.content_hash().into(),
        size_bytes: bytes.len() as u64,
        metadata: module.metadata().clone(),
    };
    let mut progress = Progress::new(args.json);
    progress.checked(&info, module.warnings())?;

    let access = access::open(config, Need::Create).await?;
    let by = args.who.because(&args.reason);
    let mut request = DeployRequest { module: info, manifest, canary, dry_run: true, by };
    // Everything that can be refused is refused before anything is sent.
    let proposed = access.propose(&request).await?;
    if args.dry_run {
        progress.would_be(&proposed)?;
        return Ok(Exit::Done);
    }
    access.upload(&request.module, bytes.into()).await?;
    request.dry_run = false;
    let proposed = access.propose(&request).await?;
    progress.proposed(&proposed)?;
    let rollout = roll_out(&access, &proposed, config.modules.deploy_wait_ms, &mut progress, &request.by).await?;
    let rollout = swapped(&access, rollout, &mut progress).await?;
    printed(progress.ended(&rollout, &request))?;
    match rollout.state {
        RolloutState::Withdrawn(why) => Err(Refused(format!(
            "{} {} was not deployed: {}; {}",
            rollout.handler,
            module_version(&module),
            one_line(&why),
            match &proposed.serving {
                Some(version) => format!("{version} serves on"),
                None => "nothing serves".into(),
            }
        ))
        .into()),
        _ => Ok(Exit::Done),
    }
}

fn module_version(module: &Module) -> String {
    one_line(&module.metadata().version)
}

/// Waits until every host has it ready and it serves, or until it was taken back.
async fn roll_out(
    access: &Access,
    proposed: &Proposed,
    wait_ms: u64,
    progress: &mut Progress,
    by: &WhoAndWhy,
) -> Result<Rollout> {
    let (handler, revision) = (proposed.handler.as_str(), proposed.revision);
    let deadline_ms = clock::now_ms() + wait_ms;
    loop {
        let rollout = access.advance(handler, revision).await?;
        progress.hosts(&rollout)?;
        if rollout.state != RolloutState::Loading {
            return Ok(rollout);
        }
        if clock::now_ms() >= deadline_ms {
            let late = rollout.hosts.iter().filter(|host| !host.state.can_serve());
            let late: Vec<_> = late.map(|host| host.host.to_string()).collect();
            let why = format!(
                "after {wait_ms} ms (modules.deploy_wait_ms) it was not ready on {}; given up by {}",
                late.join(", "),
                by.who
            );
            return Ok(access.abandon(handler, revision, &why).await?);
        }
        tokio::select! {
            () = tokio::time::sleep(ASK_INTERVAL) => {}
            interrupted = tokio::signal::ctrl_c() => {
                interrupted.context("cannot listen for signals")?;
                let why = format!("given up by {}", by.who);
                return Ok(access.abandon(handler, revision, &why).await?);
            }
        }
    }
}

/// Waits until every host has swapped. Not for ever: a host that died meanwhile never does.
async fn swapped(access: &Access, mut rollout: Rollout, progress: &mut Progress) -> Result<Rollout> {
    let deadline_ms = clock::now_ms() + SWAP_WAIT_MS;
    let waits = |rollout: &Rollout| {
        let serves = matches!(rollout.state, RolloutState::Serving | RolloutState::Canary);
        serves && !rollout.hosts.iter().all(|host| host.state.has_swapped())
    };
    while waits(&rollout) && clock::now_ms() < deadline_ms {
        tokio::time::sleep(ASK_INTERVAL).await;
        rollout = access.advance(rollout.handler.as_str(), rollout.revision).await?;
        progress.hosts(&rollout)?;
    }
    Ok(rollout)
}

/// How a host's state is shown.
fn state_text(state: &HostState) -> String {
    match state {
        HostState::Waiting => "has not heard yet".into(),
        HostState::Loading => "loads it".into(),
        HostState::Ready => "has it ready".into(),
        HostState::Serving => "serves it".into(),
        HostState::Failed(why) => format!("cannot run it: {}", one_line(why)),
        HostState::OwnFile => "serves a file of its own under this name, and goes on with that".into(),
    }
}

fn json_line(step: &Step<'_>) -> Result<()> {
    writeln!(io::stdout().lock(), "{}", serde_json::to_string(step)?)?;
    Ok(())
}

fn line(line: &str) -> Result<()> {
    writeln!(io::stdout().lock(), "{}", text::typed(line))?;
    Ok(())
}
