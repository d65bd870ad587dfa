//! The checks, in the order in which one failure explains the next.

use std::path::Path;

use keyrail::access::{self, Access, AccessError, Need};
use keyrail::config::{BrokerAddress, Config};
use keyrail::service::HandlerView;
use keyrail_ordering::HeldState;
use tokio::net::UnixStream;

use super::super::numbers::{count, grouped};
use super::{Finding, fleet};

/// Everything after the configuration.
pub(super) async fn all(config: &Config) -> Vec<Finding> {
    let mut findings = broker(config).await;
    if let BrokerAddress::Embedded(path) = &config.broker
        && std::fs::metadata(path).is_ok_and(|file| file.len() == 0)
    {
        // Opening it would make a store of it.
        findings.push(Finding::ok("broker", "nothing is in it yet"));
        return findings;
    }
    let access = match access::open(config, Need::Existing).await {
        Ok(access) => access,
        Err(error) => {
            findings.push(unusable("broker", &error));
            return findings;
        }
    };
    let way = match &access {
        Access::Direct(_) => "opened directly",
        Access::Host(_) => "reached through the host that holds it",
    };
    findings.push(Finding::ok("broker", format!("{}, {way}", config.broker)));
    findings.push(catalog(&access).await);
    findings.push(members(&access).await);
    findings.push(served(&access).await);
    findings.extend(fleet::all(&access).await);
    findings.push(halted(&access).await);
    findings.push(paused(&access).await);
    findings.push(outbox(&access).await);
    findings
}

/// A host tells what is in its broker, not how its broker is set up.
const NOT_LOOKED_AT: &str = "not looked at through a host: run keyrail doctor where it runs, or with its --broker";

/// What can be said of the broker before it is opened.
async fn broker(config: &Config) -> Vec<Finding> {
    let checks = match &config.broker {
        BrokerAddress::Embedded(path) => {
            let file = path.clone();
            // It reads the file.
            let looked = tokio::task::spawn_blocking(move || keyrail_broker::embedded::diagnose(file)).await;
            let checks = looked.unwrap_or_else(|stopped| std::panic::resume_unwind(stopped.into_panic()));
            let socket = socket(&BrokerAddress::socket_beside(path), false).await;
            return checks.into_iter().map(Finding::from).chain([socket]).collect();
        }
        BrokerAddress::Socket(path) => return vec![socket(path, true).await],
        BrokerAddress::Redis(url) => keyrail_broker::redis::diagnose(url, &access::redis_settings(config)).await,
        BrokerAddress::Memory => vec![],
        BrokerAddress::Host(_) => return vec![Finding::ok("broker itself", NOT_LOOKED_AT.to_string())],
    };
    checks.into_iter().map(Finding::from).collect()
}

/// Whether a host answers on a socket.
async fn socket(path: &Path, must_answer: bool) -> Finding {
    let shown = path.display();
    if UnixStream::connect(path).await.is_ok() {
        return Finding::ok("socket", format!("a host answers on {shown}"));
    }
    match (path.exists(), must_answer) {
        (_, true) => Finding::failed("socket", format!("no host answers on {shown}"), "start it with keyrail run"),
        (true, false) => Finding::warning(
            "socket",
            format!("{shown} is there, and nobody listens on it: its host was killed"),
            "start the host again with keyrail run; it takes the socket over",
        ),
        (false, false) => Finding::ok("socket", format!("no host serves {shown}")),
    }
}

pub(super) fn unusable(check: &str, error: &AccessError) -> Finding {
    Finding::failed(check, error.to_string(), "change what the error names, then keyrail doctor again")
}

async fn catalog(access: &Access) -> Finding {
    match access.catalog().await {
        Ok(view) if view.catalog.handlers.is_empty() => Finding::warning(
            "catalog",
            "no handler is registered: nothing can be published",
            "keyrail deploy FILE.wasm",
        ),
        Ok(view) => Finding::ok(
            "catalog",
            format!(
                "version {}: {}, {}",
                view.version,
                count(view.catalog.handlers.len() as u64, "handler"),
                match view.catalog.categories.len() {
                    1 => "1 category".into(),
                    categories => format!("{} categories", grouped(categories as u64)),
                }
            ),
        ),
        Err(error) => unusable("catalog", &error),
    }
}

async fn members(access: &Access) -> Finding {
    match access.members().await {
        Ok(members) => {
            let up = members.iter().filter(|member| !member.leaving).count() as u64;
            if up == 0 {
                return Finding::warning("members", "no host is up: nothing runs", "keyrail run");
            }
            Finding::ok("members", format!("{} up; see keyrail members", count(up, "host")))
        }
        Err(error) => unusable("members", &error),
    }
}

/// Whether somebody runs every handler, and everybody what is deployed.
async fn served(access: &Access) -> Finding {
    let handlers = match access.handlers().await {
        Ok(handlers) => handlers,
        Err(error) => return unusable("handlers", &error),
    };
    let serves = |handler: &HandlerView| handler.hosts.iter().any(|host| host.state == HeldState::Serving);
    let fails = |handler: &HandlerView| handler.hosts.iter().any(|host| matches!(host.state, HeldState::Failed(_)));
    let names = |of: &dyn Fn(&HandlerView) -> bool| -> Vec<String> {
        handlers.iter().filter(|handler| of(handler)).map(|handler| handler.handler.to_string()).collect()
    };
    let failing = names(&fails);
    if let Some(first) = failing.first() {
        let found = format!("a host cannot run what is deployed of {}", failing.join(", "));
        return Finding::warning("handlers", found, format!("keyrail handlers {first}"));
    }
    let idle = names(&|handler| !serves(handler));
    if !idle.is_empty() {
        let found = format!("no host serves {}: its events wait", idle.join(", "));
        return Finding::warning("handlers", found, "keyrail run, or keyrail deploy FILE.wasm if nothing is deployed");
    }
    Finding::ok("handlers", format!("{} served", count(handlers.len() as u64, "handler")))
}

async fn halted(access: &Access) -> Finding {
    match access.backlog().await {
        Ok(backlog) if backlog.halted > 0 => {
            Finding::warning("halted", format!("{} halted", count(backlog.halted, "partition")), "keyrail halted")
        }
        Ok(backlog) => Finding::ok("halted", format!("nothing; {} with work", count(backlog.ready, "partition"))),
        Err(error) => unusable("halted", &error),
    }
}

async fn paused(access: &Access) -> Finding {
    match access.paused().await {
        Ok(paused) if paused.is_empty() => Finding::ok("paused", "nothing"),
        Ok(paused) => Finding::warning("paused", count(paused.len() as u64, "pause"), "keyrail paused"),
        Err(error) => unusable("paused", &error),
    }
}

async fn outbox(access: &Access) -> Finding {
    match access.backlog().await {
        Ok(backlog) if backlog.abandoned > 0 => Finding::warning(
            "outbox",
            format!("{} could not be published and were put aside", count(backlog.abandoned, "emitted event")),
            "the log of the host that routed them says why: look there for \"cannot be published\"",
        ),
        Ok(backlog) => Finding::ok("outbox", format!("{} on their way", count(backlog.outbox, "event"))),
        Err(error) => unusable("outbox", &error),
    }
}
