//! Whether a server can be used, asked once at start. Each refusal is one line that says what to change.

use std::collections::HashMap;

use redis::Value;

use super::answer::{Answer, text};
use super::connection::{Connection, Failure};
use super::functions::{self, Call};
use crate::Error;

const VERSION_MIN: u32 = 7;

/// Checks version, mode, permissions and settings, and loads the functions.
pub(super) async fn server(connection: &Connection, address: &str) -> Result<(), Error> {
    let unreachable = |failure: Failure| {
        if failure.is_login() {
            return Error::from(failure);
        }
        Error::Unusable(format!(
            "Redis at {address} does not answer: {}; start redis-server, or correct the address",
            failure.text()
        ))
    };
    let pong = connection.call(redis::cmd("PING").arg("keyrail")).await;
    match pong {
        Err(failure) if failure.is_forbidden() => {}
        other => drop(other.map_err(unreachable)?),
    }
    match connection.call(redis::cmd("INFO").arg("everything")).await {
        Ok(value) => info(&text(plain(value))?, address)?,
        Err(failure) if failure.is_forbidden() => tracing::warn!(
            "the Redis user may not run INFO: version, mode and settings of {address} were not checked; allow +info"
        ),
        Err(failure) => return Err(failure.into()),
    }
    functions::load(connection).await.map_err(|failure| {
        if failure.is_forbidden() {
            return Error::Unusable(format!(
                "the Redis user may not load functions ({}); allow it: ACL SETUSER NAME +function +fcall",
                failure.text()
            ));
        }
        failure.into()
    })?;
    permissions(connection).await
}

/// RESP3 servers answer with a verbatim text.
fn plain(value: Value) -> Value {
    match value {
        Value::VerbatimString { text, .. } => Value::SimpleString(text),
        other => other,
    }
}

fn info(text: &str, address: &str) -> Result<(), Error> {
    let fields: HashMap<&str, &str> = text.lines().filter_map(|line| line.trim_end().split_once(':')).collect();
    let field = |name: &str| fields.get(name).copied().unwrap_or_default();
    // Valkey keeps `redis_version` at the release that it is compatible with.
    let version = field("redis_version");
    let major: u32 = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    if major < VERSION_MIN {
        return Err(Error::Unusable(format!(
            "Redis at {address} has version {version}; Keyrail needs {VERSION_MIN}.0 or later, or Valkey: upgrade the server"
        )));
    }
    if field("cluster_enabled") == "1" {
        return Err(Error::Unusable(format!(
            "Redis at {address} runs in cluster mode, which Keyrail does not support yet; use a server with cluster-enabled no"
        )));
    }
    if field("role") == "slave" {
        return Err(Error::Unusable(format!(
            "Redis at {address} is a replica and cannot be written; use the address of its primary, {}:{}",
            field("master_host"),
            field("master_port")
        )));
    }
    let policy = field("maxmemory_policy");
    if policy != "noeviction" && field("maxmemory") != "0" {
        tracing::warn!(
            "Redis at {address} evicts keys when it is full (maxmemory-policy {policy}): events and leases can vanish; \
             set maxmemory-policy noeviction"
        );
    }
    if field("aof_enabled") == "0" {
        tracing::warn!(
            "Redis at {address} writes no append-only file: a crash of the server loses events; set appendonly yes"
        );
    }
    Ok(())
}

async fn permissions(connection: &Connection) -> Result<(), Error> {
    let answer = match functions::call(connection, &Call::new("keyrail_1_check", 0)).await {
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

    fn refusal(text: &str) -> String {
        info(text, "redis://h:1/0").unwrap_err().to_string()
    }

    #[test]
    fn servers_that_cannot_serve_are_refused_with_what_to_change() {
        assert!(refusal("redis_version:6.2.7\r\n").contains("upgrade"));
        assert!(refusal("").contains("7.0"));
        assert!(refusal("redis_version:7.0.15\r\ncluster_enabled:1\r\n").contains("cluster-enabled no"));
        assert!(refusal("redis_version:7.0.15\r\nrole:slave\r\nmaster_host:p\r\nmaster_port:2\r\n").contains("p:2"));
        assert!(info("redis_version:7.0.15\r\ncluster_enabled:0\r\nrole:master\r\n", "").is_ok());
    }
}
