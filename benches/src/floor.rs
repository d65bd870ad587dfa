//! The floor: the smallest fenced sequence that events can cost on Redis, written straight against the server.
//!
//! One function publishes; one checks the fence and moves the group on, behind one event or behind a batch; rows are read with
//! plain commands. All of it pipelined on one connection. No events are handled, and nothing is decided.

use std::time::{Duration, Instant};

use anyhow::Result;
use redis::Pipeline;
use redis::aio::MultiplexedConnection;

use crate::bench::Server;
use crate::by_hand;

/// Calls on their way at once.
pub(crate) const PIPELINE: usize = 100;
/// Rows that are read at once.
pub(crate) const ROWS: usize = 64;
pub(crate) const GROUP: &str = "floor";
pub(crate) const TOKEN: &str = "floor:1";

const LIBRARY: &str = r"#!lua name=floor
redis.register_function('floor_publish', function(keys, args)
  return redis.call('XADD', keys[1], '1-*', 'type', args[1], 'id', args[2], 'data', args[3])
end)
redis.register_function('floor_commit_state', function(keys, args)
  if redis.call('GET', keys[2]) ~= args[2] then return redis.error_reply('FENCED') end
  redis.call('HSET', keys[3], unpack(args, 4))
  return redis.call('XGROUP', 'SETID', keys[1], args[1], args[3])
end)
redis.register_function('floor_commit', function(keys, args)
  if redis.call('GET', keys[2]) ~= args[2] then return redis.error_reply('FENCED') end
  return redis.call('XGROUP', 'SETID', keys[1], args[1], args[3])
end)
";

/// What the floor takes for some events on some keys.
#[derive(Debug, Clone, Copy)]
pub struct Floor {
    /// All publishes.
    pub publish: Duration,
    /// Reading all and committing each event by itself.
    pub strict: Duration,
    /// The same with [`ROWS`] events a commit.
    pub batched: Duration,
    /// With the call of the guest and its state, see [`crate::by_hand`], each event by itself.
    pub strict_by_hand: Duration,
    /// The same with [`ROWS`] events a commit.
    pub batched_by_hand: Duration,
}

pub(crate) fn stream(key: usize) -> String {
    format!("floor:N{key}")
}

pub(crate) fn lease(key: usize) -> String {
    format!("floor:N{key}:lease")
}

/// Measures it. Its keys are deleted afterwards.
pub async fn measure(server: &mut Server, events: usize, keys: usize) -> Result<Floor> {
    let client = redis::Client::open(server.process.url())?;
    let connection = &mut server.connection;
    let () = redis::cmd("FUNCTION").arg("LOAD").arg("REPLACE").arg(LIBRARY).query_async(connection).await?;
    let start = Instant::now();
    for first in (0..events).step_by(PIPELINE) {
        let mut pipeline = redis::pipe();
        for n in first..events.min(first + PIPELINE) {
            let event = crate::flight(n, n % keys);
            let call = pipeline.cmd("FCALL").arg("floor_publish").arg(1).arg(stream(n % keys));
            call.arg(event.name.as_str()).arg(event.id.as_ref()).arg(event.data.as_ref()).ignore();
        }
        let () = pipeline.query_async(connection).await?;
    }
    let publish = start.elapsed();
    for first in (0..keys).step_by(PIPELINE) {
        let mut pipeline = redis::pipe();
        for key in first..keys.min(first + PIPELINE) {
            pipeline.cmd("XGROUP").arg("CREATE").arg(stream(key)).arg(GROUP).arg("0").ignore();
            pipeline.cmd("SET").arg(lease(key)).arg(TOKEN).ignore();
        }
        let () = pipeline.query_async(connection).await?;
    }
    let strict = handle(connection, events, keys, 1).await?;
    let batched = handle(connection, events, keys, ROWS).await?;
    let strict_by_hand = by_hand::measure(&client, events, keys, 1).await?;
    let batched_by_hand = by_hand::measure(&client, events, keys, ROWS).await?;
    for first in (0..keys).step_by(PIPELINE) {
        let mut pipeline = redis::pipe();
        for key in first..keys.min(first + PIPELINE) {
            pipeline.cmd("DEL").arg(stream(key)).arg(lease(key)).arg(format!("{}:state", stream(key))).ignore();
        }
        let () = pipeline.query_async(connection).await?;
    }
    Ok(Floor { publish, strict, batched, strict_by_hand, batched_by_hand })
}

async fn handle(connection: &mut MultiplexedConnection, events: usize, keys: usize, batch: usize) -> Result<Duration> {
    let start = Instant::now();
    let rounds = events.div_ceil(keys);
    // At most as many calls on their way as there are keys: a key's next step waits for the answer to the last one.
    let width = PIPELINE.min(keys);
    for first in (0..keys).step_by(width) {
        let keys = first..keys.min(first + width);
        for from in (0..rounds).step_by(batch) {
            let to = rounds.min(from + batch) - 1;
            let mut pipeline = redis::pipe();
            if from % ROWS == 0 {
                for key in keys.clone() {
                    read(&mut pipeline, key, from);
                }
            }
            for key in keys.clone() {
                let call = pipeline.cmd("FCALL").arg("floor_commit").arg(2).arg(stream(key)).arg(lease(key));
                call.arg(GROUP).arg(TOKEN).arg(format!("1-{to}"));
            }
            let answers: Vec<redis::Value> = pipeline.query_async(connection).await?;
            std::hint::black_box(answers);
        }
    }
    Ok(start.elapsed())
}

pub(crate) fn read(pipeline: &mut Pipeline, key: usize, from: usize) {
    pipeline.cmd("XRANGE").arg(stream(key)).arg(format!("1-{from}")).arg("+").arg("COUNT").arg(ROWS);
}
