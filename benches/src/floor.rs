//! The floor: the smallest fenced sequence an event can cost on Redis, written straight against the server. One function
//! publishes; one checks the fence, acknowledges, and reads the next entry. Both pipelined, on one connection.

use std::time::{Duration, Instant};

use anyhow::Result;
use redis::aio::MultiplexedConnection;

/// Calls on their way at once.
const PIPELINE: usize = 100;
const GROUP: &str = "floor";
const TOKEN: &str = "floor:1";

const LIBRARY: &str = r"#!lua name=floor
redis.register_function('floor_publish', function(keys, args)
  return redis.call('XADD', keys[1], '1-*', 'type', args[1], 'id', args[2], 'data', args[3])
end)
redis.register_function('floor_commit_take', function(keys, args)
  if redis.call('GET', keys[2]) ~= args[2] then return redis.error_reply('FENCED') end
  if args[3] ~= '' then redis.call('XACK', keys[1], args[1], args[3]) end
  return redis.call('XREADGROUP', 'GROUP', args[1], args[2], 'COUNT', 1, 'STREAMS', keys[1], '>')
end)
";

/// What the floor takes for some events on some keys.
#[derive(Debug, Clone, Copy)]
pub struct Floor {
    /// All publishes.
    pub publish: Duration,
    /// All commit-and-takes.
    pub handle: Duration,
}

/// Measures it. Its keys are deleted afterwards.
pub async fn measure(connection: &mut MultiplexedConnection, events: usize, keys: usize) -> Result<Floor> {
    let () = redis::cmd("FUNCTION").arg("LOAD").arg("REPLACE").arg(LIBRARY).query_async(connection).await?;
    let stream = |key: usize| format!("floor:N{key}");
    let lease = |key: usize| format!("floor:N{key}:lease");
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
    for key in 0..keys {
        let () = redis::pipe()
            .cmd("XGROUP")
            .arg("CREATE")
            .arg(stream(key))
            .arg(GROUP)
            .arg("0")
            .ignore()
            .cmd("SET")
            .arg(lease(key))
            .arg(TOKEN)
            .ignore()
            .query_async(connection)
            .await?;
    }
    let start = Instant::now();
    let rounds = events.div_ceil(keys);
    // At most as many calls on their way as there are keys: a key's next event waits for the answer to the last one.
    let width = PIPELINE.min(keys);
    for first in (0..keys).step_by(width) {
        for round in 0..rounds {
            let mut pipeline = redis::pipe();
            for key in first..keys.min(first + width) {
                let last = if round == 0 { String::new() } else { format!("1-{}", round - 1) };
                let call = pipeline.cmd("FCALL").arg("floor_commit_take").arg(2).arg(stream(key)).arg(lease(key));
                call.arg(GROUP).arg(TOKEN).arg(last);
            }
            let answers: Vec<redis::Value> = pipeline.query_async(connection).await?;
            std::hint::black_box(answers);
        }
    }
    let handle = start.elapsed();
    for key in 0..keys {
        let () = redis::cmd("DEL").arg(stream(key)).arg(lease(key)).query_async(connection).await?;
    }
    Ok(Floor { publish, handle })
}
