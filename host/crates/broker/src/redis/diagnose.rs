//! Everything that can be found out about a server, for `keyrail doctor`: what `connect` checks, and what only a person
//! wants to know.

use redis::{Client, Value};
use rustix::time::{ClockId, clock_gettime};

use super::answer::{self, Answer};
use super::connection::{Connection, Timeouts};
use super::{RedisSettings, checks, target};
use crate::{Check, Error};

/// Calls of which the middle one is told.
const ROUND_TRIPS: usize = 21;
/// An event costs at least one round trip, and a key handles one event at a time.
const ROUND_TRIP_WARN_US: u64 = 20_000;
/// Times that people compare with their own clock are off by more than this.
const CLOCK_WARN_MS: u64 = 5_000;

/// Looks at the server behind `url`, from the first thing that must be right to the last; what follows a failure is left
/// out.
pub async fn diagnose(url: &str, settings: &RedisSettings) -> Vec<Check> {
    let (info, address) = match target(url) {
        Ok(found) => found,
        Err(error) => return vec![Check::failed("address", error.to_string())],
    };
    let client = match Client::open(info) {
        Ok(client) => client,
        Err(error) => return vec![Check::failed("address", error.to_string())],
    };
    let timeouts = Timeouts { connect_ms: settings.connect_timeout_ms, response_ms: settings.response_timeout_ms };
    let connection = Connection::new(client, timeouts);
    let found = checks::server(&connection, &address).await;
    let usable = found.is_usable();
    let mut checks = found.checks;
    if usable {
        checks.push(library(&connection).await);
        checks.push(round_trip(&connection).await);
        checks.push(clock(&connection).await);
    }
    checks
}

async fn library(connection: &Connection) -> Check {
    const NAME: &str = "library";
    let version = connection.call(redis::cmd("FCALL").arg("keyrail_publish_version").arg(0)).await;
    match version.map_err(Error::from).and_then(|value| answer::number(&value)) {
        Ok(version) => Check::passed(NAME, format!("keyrail_6, and keyrail_publish in version {version}, are loaded")),
        Err(error) => Check::failed(NAME, error.to_string()),
    }
}

async fn round_trip(connection: &Connection) -> Check {
    const NAME: &str = "round trip";
    let mut times = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let begin_us = boottime_us();
        if let Err(failure) = connection.call(&redis::cmd("PING")).await {
            return Check::warned(NAME, format!("it was not measured: {}", failure.text()));
        }
        times.push(boottime_us().saturating_sub(begin_us));
    }
    times.sort_unstable();
    let middle_us = times[ROUND_TRIPS / 2];
    if middle_us > ROUND_TRIP_WARN_US {
        let says = format!("{middle_us} µs: each event of a key costs at least one; run hosts nearer to the server");
        return Check::warned(NAME, says);
    }
    Check::passed(NAME, format!("{middle_us} µs"))
}

async fn clock(connection: &Connection) -> Check {
    const NAME: &str = "clock";
    let time = connection.call(&redis::cmd("TIME")).await.map_err(Error::from).and_then(server_ms);
    let server_ms = match time {
        Ok(time) => time,
        Err(error) => return Check::warned(NAME, format!("it was not read: {error}")),
    };
    let now = clock_gettime(ClockId::Realtime);
    let here_ms = now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000;
    let apart_ms = server_ms.abs_diff(here_ms);
    if apart_ms > CLOCK_WARN_MS {
        let says = format!(
            "the server's clock and this machine's are {apart_ms} ms apart: order and leases do not depend on it, but the \
             times that are shown will puzzle; run a time service on both"
        );
        return Check::warned(NAME, says);
    }
    Check::passed(NAME, format!("{apart_ms} ms apart from this machine's"))
}

fn server_ms(answer: Value) -> Result<u64, Error> {
    let mut answer = Answer::of(answer)?;
    Ok(answer.number()? * 1_000 + answer.number()? / 1_000)
}

fn boottime_us() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
}
