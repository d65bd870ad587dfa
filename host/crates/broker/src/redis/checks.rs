//! Whether a server can be used: asked once at start, where the first failure refuses it, and by `keyrail doctor`, which
//! shows everything. Each refusal is one line that says what to change.

use std::collections::HashMap;

use redis::Value;

use super::answer::{Answer, text};
use super::connection::{Connection, Failure};
use super::functions::{self, Call};
use crate::{Check, CheckOutcome, Error};

const VERSION_MIN: u32 = 7;
/// A server that is fuller than this deserves a look.
const MEMORY_WARN_PERCENT: u64 = 80;

/// What was found so far, and the first failure, after which no more can be found.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) checks: Vec<Check>,
    error: Option<Error>,
}

impl Findings {
    /// As `connect` takes it: warnings are logged, a failure is the answer.
    pub(super) fn accepted(self) -> Result<(), Error> {
        for check in self.checks.iter().filter(|check| check.outcome == CheckOutcome::Warned) {
            tracing::warn!("{}", check.says);
        }
        self.error.map_or(Ok(()), Err)
    }

    pub(super) fn is_usable(&self) -> bool {
        self.error.is_none()
    }

    fn end(mut self, name: &'static str, error: Error) -> Self {
        self.checks.push(Check::failed(name, error.to_string()));
        self.error = Some(error);
        self
    }
}

/// Checks version, mode, permissions and settings, and loads the functions.
pub(super) async fn server(connection: &Connection, address: &str) -> Findings {
    let mut found = Findings::default();
    match connection.call(redis::cmd("PING").arg("keyrail")).await {
        Err(failure) if !failure.is_forbidden() => return found.end("connection", unreachable(failure, address)),
        _ => found.checks.push(Check::passed("connection", format!("{address} answers"))),
    }
    match connection.call(redis::cmd("INFO").arg("everything")).await {
        Ok(value) => match text(plain(value)) {
            Ok(text) => found.checks.extend(info(&text, address)),
            Err(error) => return found.end("version", error),
        },
        Err(failure) if failure.is_forbidden() => found.checks.push(Check::warned(
            "version",
            format!(
                "the Redis user may not run INFO: version, mode and settings of {address} were not checked; allow +info"
            ),
        )),
        Err(failure) => return found.end("version", failure.into()),
    }
    if let Some(failed) = found.checks.iter().find(|check| check.outcome == CheckOutcome::Failed) {
        found.error = Some(Error::Unusable(failed.says.clone()));
        return found;
    }
    if let Err(failure) = functions::load(connection).await {
        let error = if failure.is_forbidden() {
            Error::Unusable(format!(
                "the Redis user may not load functions ({}); allow it: ACL SETUSER NAME +function +fcall",
                failure.text()
            ))
        } else {
            failure.into()
        };
        return found.end("functions", error);
    }
    found.checks.push(Check::passed("functions", "the server takes functions"));
    match permissions(connection).await {
        Ok(()) => found.checks.push(Check::passed("permissions", "the user may run every command that is needed")),
        Err(error) => return found.end("permissions", error),
    }
    found
}

fn unreachable(failure: Failure, address: &str) -> Error {
    if failure.is_login() {
        return failure.into();
    }
    Error::Unusable(format!(
        "Redis at {address} does not answer: {}; start redis-server, or correct the address",
        failure.text()
    ))
}

/// RESP3 servers answer with a verbatim text.
fn plain(value: Value) -> Value {
    match value {
        Value::VerbatimString { text, .. } => Value::SimpleString(text),
        other => other,
    }
}

/// Version, mode, role, eviction and persistence, from the text of INFO.
fn info(text: &str, address: &str) -> Vec<Check> {
    let fields: HashMap<&str, &str> = text.lines().filter_map(|line| line.trim_end().split_once(':')).collect();
    let field = |name: &str| fields.get(name).copied().unwrap_or_default();
    // Valkey keeps `redis_version` at the release that it is compatible with.
    let version = field("redis_version");
    let major: u32 = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    let version = if major < VERSION_MIN {
        Check::failed(
            "version",
            format!(
                "Redis at {address} has version {version}; Keyrail needs {VERSION_MIN}.0 or later, or Valkey: upgrade the server"
            ),
        )
    } else {
        let own = field("valkey_version");
        let says = if own.is_empty() { format!("Redis {version}") } else { format!("Valkey {own}") };
        Check::passed("version", says)
    };
    let mode = if field("cluster_enabled") == "1" {
        Check::failed(
            "mode",
            format!(
                "Redis at {address} runs in cluster mode, which Keyrail does not support yet; use a server with cluster-enabled no"
            ),
        )
    } else {
        Check::passed("mode", "a single server")
    };
    let role = if field("role") == "slave" {
        Check::failed(
            "role",
            format!(
                "Redis at {address} is a replica and cannot be written; use the address of its primary, {}:{}",
                field("master_host"),
                field("master_port")
            ),
        )
    } else {
        Check::passed("role", "a primary")
    };
    let policy = field("maxmemory_policy");
    let eviction = if policy == "noeviction" {
        Check::passed("eviction", "keys are never evicted")
    } else if field("maxmemory") == "0" {
        Check::passed("eviction", format!("no memory limit, so the policy {policy} evicts nothing"))
    } else {
        Check::warned(
            "eviction",
            format!(
                "Redis at {address} evicts keys when it is full (maxmemory-policy {policy}): events and leases can vanish; \
                 set maxmemory-policy noeviction"
            ),
        )
    };
    let persistence = if field("aof_enabled") == "0" {
        Check::warned(
            "persistence",
            format!(
                "Redis at {address} writes no append-only file: a crash of the server loses events; set appendonly yes"
            ),
        )
    } else {
        Check::passed("persistence", "an append-only file is written")
    };
    vec![version, mode, role, eviction, memory(field("used_memory"), field("maxmemory")), persistence]
}

/// How much of the server's memory limit is used.
fn memory(used: &str, limit: &str) -> Check {
    const NAME: &str = "memory";
    let (used, limit): (u64, u64) = (used.parse().unwrap_or(0), limit.parse().unwrap_or(0));
    let megabytes = |bytes: u64| bytes >> 20;
    if limit == 0 {
        return Check::passed(NAME, format!("{} MB used, without a limit", megabytes(used)));
    }
    let percent = (u128::from(used) * 100 / u128::from(limit)) as u64;
    let says = format!("{} of {} MB used ({percent} %)", megabytes(used), megabytes(limit));
    if percent >= MEMORY_WARN_PERCENT {
        let says =
            format!("{says}: once it is full nothing can be published; raise maxmemory, or let handlers catch up");
        return Check::warned(NAME, says);
    }
    Check::passed(NAME, says)
}

async fn permissions(connection: &Connection) -> Result<(), Error> {
    let answer = match functions::call(connection, &Call::new("keyrail_6_check", 0)).await {
        Ok(answer) => answer,
        Err(failure) if failure.is_forbidden() => {
            return Err(Error::Unusable(format!(
                "the Redis user may not call functions ({}); allow it: ACL SETUSER NAME +fcall",
                failure.text()
            )));
        }
        Err(failure) => return Err(failure.into()),
    };
    let mut answer = Answer::of(answer)?;
    let mut commands = strings(answer.list()?)?;
    commands.sort();
    commands.dedup();
    let patterns = strings(answer.list()?)?;
    if commands.is_empty() && patterns.is_empty() {
        return Ok(());
    }
    let grants: Vec<_> =
        commands.iter().map(|command| format!("+{}", command.to_lowercase())).chain(patterns).collect();
    Err(Error::Unusable(format!(
        "the Redis user lacks permissions that Keyrail needs; grant them: ACL SETUSER NAME {}",
        grants.join(" ")
    )))
}

fn strings(mut answer: Answer) -> Result<Vec<String>, Error> {
    let mut all = vec![];
    while !answer.is_empty() {
        all.push(answer.text()?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(text: &str) -> String {
        let failed = info(text, "redis://h:1/0").into_iter().filter(|check| check.outcome == CheckOutcome::Failed);
        failed.map(|check| check.says).collect()
    }

    #[test]
    fn servers_that_cannot_serve_are_refused_with_what_to_change() {
        assert!(failures("redis_version:6.2.7\r\n").contains("upgrade"));
        assert!(failures("").contains("7.0"));
        assert!(failures("redis_version:7.0.15\r\ncluster_enabled:1\r\n").contains("cluster-enabled no"));
        assert!(failures("redis_version:7.0.15\r\nrole:slave\r\nmaster_host:p\r\nmaster_port:2\r\n").contains("p:2"));
        assert_eq!(failures("redis_version:7.0.15\r\ncluster_enabled:0\r\nrole:master\r\n"), "");
    }

    #[test]
    fn settings_that_lose_events_are_warned_of() {
        let text = "redis_version:7.0.15\nmaxmemory:1\nmaxmemory_policy:allkeys-lru\naof_enabled:0\n";
        let warned: Vec<_> = info(text, "")
            .into_iter()
            .filter(|check| check.outcome == CheckOutcome::Warned)
            .map(|check| check.name)
            .collect();
        assert_eq!(warned, ["eviction", "persistence"]);
        let full = memory("850000000", "1000000000");
        assert!(full.outcome == CheckOutcome::Warned && full.says.contains("85 %"), "{full:?}");
        assert_eq!(memory("850000000", "0").outcome, CheckOutcome::Passed);
        assert_eq!(memory("1000", "1000000000").outcome, CheckOutcome::Passed);
    }
}
