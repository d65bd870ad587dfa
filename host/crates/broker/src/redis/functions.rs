//! The functions on the server: composed from the `.lua` files, loaded at start, and loaded again when somebody flushed
//! them. `keyrail_6` is this release's own and is replaced by it; its number rises when an answer changes, so that two
//! releases run side by side. `keyrail_publish` is public, and only a higher version replaces it.

use redis::{Cmd, Value};

use super::connection::{Connection, Failure};

macro_rules! library {
    ($name:literal: $($file:literal)*) => {
        concat!("#!lua name=", $name, "\n", $(include_str!(concat!("functions/", $file, ".lua")), "\n"),*)
    };
}

const OWN: &str = library!("keyrail_6":
    "names" "common" "publish_one" "trimming" "reading" "pending" "pausing" "acquire" "renew" "take" "settle" "commit" "fail" "halt"
    "release" "state" "ready" "route" "catalog" "rows" "lag" "member" "operating" "head" "act" "pause" "evict" "letters"
    "record" "shared" "shared_take" "shared_settle" "shared_keep" "idle" "check" "names_of");
const PUBLISH: &str = library!("keyrail_publish": "names" "common" "publish_one" "publish");

/// As in `publish.lua`.
const PUBLISH_VERSION: i64 = 5;

/// A call of a function: names first, then arguments.
pub(super) struct Call(Cmd);

impl Call {
    /// A call of `function` with `keys` keys to follow.
    pub(super) fn new(function: &'static str, keys: usize) -> Self {
        let mut command = Cmd::with_capacity(16, 512);
        command.arg("FCALL").arg(function).arg(keys);
        Self(command)
    }

    /// The next key or argument.
    pub(super) fn arg(&mut self, value: impl redis::ToRedisArgs) -> &mut Self {
        self.0.arg(value);
        self
    }

    /// 1 or 0.
    pub(super) fn flag(&mut self, value: bool) -> &mut Self {
        self.arg(if value { "1" } else { "0" })
    }
}

/// Calls a function; when the server has lost the library, loads it and calls once more. That is safe: a function that
/// was not found did nothing.
pub(super) async fn call(connection: &Connection, call: &Call) -> Result<Value, Failure> {
    match connection.call(&call.0).await {
        Err(failure) if failure.is_missing_function() => {
            tracing::warn!("the server has lost the functions; loading them again");
            Box::pin(load(connection)).await?;
            connection.call(&call.0).await
        }
        answer => answer,
    }
}

/// Loads both libraries. A full server takes none; the ones that are there will do then, so that an operator can work.
pub(super) async fn load(connection: &Connection) -> Result<(), Failure> {
    match load_library(connection, OWN).await {
        Err(failure) if failure.is_full() && is_loaded(connection).await => {
            tracing::warn!("Redis is full (maxmemory): nothing can be published; owners and operators go on");
            return Ok(());
        }
        done => done?,
    }
    let present = connection.call(redis::cmd("FCALL").arg("keyrail_publish_version").arg(0)).await;
    match present {
        Ok(Value::Int(version)) if version >= PUBLISH_VERSION => Ok(()),
        Ok(_) => load_library(connection, PUBLISH).await,
        Err(failure) if failure.is_missing_function() => load_library(connection, PUBLISH).await,
        Err(failure) => Err(failure),
    }
}

/// Whether this release's functions are there.
async fn is_loaded(connection: &Connection) -> bool {
    let names = redis::cmd("FCALL").arg("keyrail_6_names").arg(0).arg("order").arg("k").arg("h").arg("e").to_owned();
    connection.call(&names).await.is_ok()
}

async fn load_library(connection: &Connection, text: &str) -> Result<(), Failure> {
    connection.call(redis::cmd("FUNCTION").arg("LOAD").arg("REPLACE").arg(text)).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_registered_in_the_library_of_its_name() {
        for library in [OWN, PUBLISH] {
            assert!(library.starts_with("#!lua name=keyrail_"));
        }
        let registered = OWN.matches("redis.register_function").count();
        assert_eq!(registered, 34, "a file is missing from the list");
        assert!(PUBLISH.contains(&format!("local PUBLISH_VERSION = {PUBLISH_VERSION}\n")));
    }

    /// A command that is not asked for at start fails in the middle of a partition, for a user that may not run it.
    #[test]
    fn every_command_is_asked_for_at_start() {
        let asked = include_str!("functions/check.lua");
        let mut commands = std::collections::BTreeSet::new();
        // As `redis.call('GET', …)` and `redis.pcall('GET', …)`, or as the head of a list that is unpacked later.
        for before in ["call('", "{ '"] {
            for text in OWN.split(before).skip(1).filter_map(|rest| rest.split('\'').next()) {
                if text.len() > 2 && text.chars().all(|letter| letter.is_ascii_uppercase()) {
                    commands.insert(text);
                }
            }
        }
        assert!(commands.contains("XCLAIM") && commands.contains("ZADD") && commands.len() > 30, "{commands:?}");
        for command in commands {
            assert!(asked.contains(&format!("{{ '{command}'")), "{command} is not in check.lua");
        }
    }
}
