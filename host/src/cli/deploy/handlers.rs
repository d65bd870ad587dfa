//! `keyrail handlers`: what is registered, what serves, where, and what it uses.

use std::collections::BTreeSet;
use std::io::{self, Write};

use anyhow::Result;
use keyrail::access::{self, Need};
use keyrail::config::Config;
use keyrail::service::{HandlerHost, HandlerView, RevisionView};
use keyrail_ordering::{HeldState, Usage};

use super::super::failure::{Exit, Usage as WrongUsage, one_line, printed};
use super::super::numbers::grouped;
use super::super::{table, text};

/// List the handlers: their versions, who deployed them, the hosts that serve them
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  keyrail handlers\n  keyrail handlers billing\n  keyrail handlers --json | jq .serving.version"
)]
pub(crate) struct Args {
    /// Show everything of this one: revisions, hosts, usage
    handler: Option<String>,
    /// Print one JSON object a handler
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args, config: &Config) -> Result<Exit> {
    let mut handlers = access::open(config, Need::Existing).await?.handlers().await?;
    if let Some(name) = &args.handler {
        let known: Vec<_> = handlers.iter().map(|handler| handler.handler.to_string()).collect();
        handlers.retain(|handler| handler.handler.as_str() == name);
        if handlers.is_empty() {
            let known =
                if known.is_empty() { "none is registered".into() } else { format!("there are: {}", known.join(", ")) };
            return Err(WrongUsage(format!("no handler {name:?}; {known}")).into());
        }
    }
    printed(show(&args, &handlers))?;
    Ok(Exit::Done)
}

fn show(args: &Args, handlers: &[HandlerView]) -> Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        for handler in handlers {
            writeln!(out, "{}", serde_json::to_string(handler)?)?;
        }
    } else if let (Some(_), [handler]) = (&args.handler, handlers) {
        in_full(&mut out, handler)?;
    } else if handlers.is_empty() {
        writeln!(out, "{}", text::typed("no handler is registered; deploy one with keyrail deploy FILE.wasm"))?;
    } else {
        let header = ["handler", "serving", "hosts", "calls", "failed", "deployed", "state"];
        let rows: Vec<_> = handlers.iter().map(row).collect();
        table::write(&mut out, &header, &["hosts", "calls", "failed"], &rows)?;
    }
    Ok(())
}

fn row(handler: &HandlerView) -> Vec<String> {
    let serving = handler.hosts.iter().filter(|host| host.state == HeldState::Serving);
    let serving: BTreeSet<_> = serving.map(|host| &host.host).collect();
    let usage = total(&handler.hosts);
    vec![
        handler.handler.to_string(),
        match (&handler.serving, &handler.version) {
            (Some(revision), _) => label(revision),
            (None, Some(version)) => format!("{} (not deployed)", one_line(version)),
            (None, None) => "-".into(),
        },
        serving.len().to_string(),
        grouped(usage.calls),
        grouped(usage.failed),
        handler
            .serving
            .as_ref()
            .map(|revision| format!("{} by {}", revision.at, one_line(&revision.by)))
            .unwrap_or_default(),
        state(handler),
    ]
}

fn state(handler: &HandlerView) -> String {
    let failed = handler.hosts.iter().filter(|host| matches!(host.state, HeldState::Failed(_))).count();
    if failed > 0 {
        return format!("cannot be run on {failed} of the hosts: keyrail handlers {}", handler.handler);
    }
    match &handler.candidate {
        Some(canary) if canary.serves => {
            format!("canary {} on {}", label(&canary.revision), canary.keys.clone().unwrap_or_default())
        }
        Some(candidate) => format!("{} is being loaded", label(&candidate.revision)),
        None if handler.hosts.iter().any(|host| host.state == HeldState::Serving) => "serves".into(),
        None if handler.hosts.iter().any(|host| matches!(host.state, HeldState::Loading | HeldState::Ready)) => {
            "is being loaded".into()
        }
        None if handler.serving.is_some() => "no host is up that serves it".into(),
        None => "no host serves it".into(),
    }
}

fn label(revision: &RevisionView) -> String {
    format!("{}#{}", one_line(&revision.version), revision.revision)
}

fn total(hosts: &[HandlerHost]) -> Usage {
    hosts.iter().fold(Usage::default(), |sum, host| Usage {
        calls: sum.calls + host.usage.calls,
        failed: sum.failed + host.usage.failed,
        cpu_us: sum.cpu_us + host.usage.cpu_us,
        host_us: sum.host_us + host.usage.host_us,
        memory_max_bytes: sum.memory_max_bytes.max(host.usage.memory_max_bytes),
        denied: sum.denied + host.usage.denied,
    })
}

fn in_full(out: &mut impl Write, handler: &HandlerView) -> Result<()> {
    writeln!(out, "{}: {}", handler.handler, state(handler))?;
    if !handler.categories.is_empty() {
        writeln!(out, "reads {}", handler.categories.join(", "))?;
    }
    writeln!(out)?;
    if !handler.revisions.is_empty() {
        let header = ["revision", "version", "deployed", "by", "why", "sha256", "state"];
        let rows: Vec<_> = handler.revisions.iter().map(|revision| revision_row(handler, revision)).collect();
        table::write(out, &header, &["revision"], &rows)?;
        writeln!(out)?;
    }
    if handler.hosts.is_empty() {
        writeln!(out, "{}", text::typed("no host is up that has it; start one with keyrail run"))?;
        return Ok(());
    }
    let header = ["host", "version", "state", "calls", "failed", "cpu ms", "host calls ms", "memory kB", "denied"];
    let rows: Vec<_> = handler.hosts.iter().map(host_row).collect();
    table::write(out, &header, &["calls", "failed", "cpu ms", "host calls ms", "memory kB", "denied"], &rows)?;
    Ok(())
}

fn revision_row(handler: &HandlerView, revision: &RevisionView) -> Vec<String> {
    let is = |other: Option<u64>| other == Some(revision.revision);
    let state = if is(handler.serving.as_ref().map(|it| it.revision)) {
        "serves".into()
    } else if is(handler.candidate.as_ref().map(|it| it.revision.revision)) {
        if handler.candidate.as_ref().is_some_and(|it| it.serves) { "canary".into() } else { "being loaded".into() }
    } else {
        revision
            .withdrawn
            .as_ref()
            .map_or_else(|| "served before".into(), |why| format!("taken back: {}", text::cut(why, 80)))
    };
    vec![
        revision.revision.to_string(),
        one_line(&revision.version),
        revision.at.clone(),
        one_line(&revision.by),
        text::cut(&revision.reason, 40),
        revision.content_hash.chars().take(12).collect(),
        state,
    ]
}

fn host_row(host: &HandlerHost) -> Vec<String> {
    let version = host.revision.map_or_else(|| " (own file)".into(), |number| format!("#{number}"));
    let state = match &host.state {
        HeldState::Loading => "loads it".into(),
        HeldState::Ready => "ready".into(),
        HeldState::Serving => "serves".into(),
        HeldState::Failed(why) => format!("cannot run it: {}", text::cut(why, 120)),
    };
    vec![
        host.host.to_string(),
        format!("{}{version}", one_line(&host.version)),
        state,
        grouped(host.usage.calls),
        grouped(host.usage.failed),
        grouped(host.usage.cpu_us / 1_000),
        grouped(host.usage.host_us / 1_000),
        grouped(host.usage.memory_max_bytes / 1_000),
        grouped(host.usage.denied),
    ]
}
