//! What a program gets that somebody writes by hand for one handler: the floor's fenced sequence, the guest on wasmtime alone,
//! and one write of state in the same step. One instance for all keys, no limits, no retries, no takeover, nothing that is watched.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use keyrail_ordering::EntryId;
use redis::Value;
use redis::aio::MultiplexedConnection;

use crate::bare::{self, Handler, types};
use crate::floor::{GROUP, PIPELINE, ROWS, TOKEN, lease, stream};

/// One of the program's tasks, each of which has keys of its own.
struct Hand {
    connection: MultiplexedConnection,
    handler: Handler,
    keys: Vec<usize>,
}

/// Time for all events on the floor's streams, `batch` a commit: the better of one task, and one for each of two cores.
pub(crate) async fn measure(client: &redis::Client, events: usize, keys: usize, batch: usize) -> Result<Duration> {
    let mut best = Duration::MAX;
    for hands in [1, 2] {
        let rounds = events.div_ceil(keys);
        let mut tasks = vec![];
        for nth in 0..hands {
            let settings = redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_mins(1)));
            let connection = client.get_multiplexed_async_connection_with_config(&settings).await?;
            let handler = Handler::load(&crate::guest("itinerary"))?;
            let keys = (nth..keys).step_by(hands).collect();
            tasks.push(Hand { connection, handler, keys });
        }
        let barrier = Arc::new(tokio::sync::Barrier::new(hands + 1));
        let tasks: Vec<_> = tasks
            .into_iter()
            .map(|mut hand| {
                let barrier = barrier.clone();
                tokio::spawn(async move {
                    barrier.wait().await;
                    hand.work(rounds, batch).await
                })
            })
            .collect();
        barrier.wait().await;
        let start = Instant::now();
        for task in tasks {
            task.await??;
        }
        best = best.min(start.elapsed());
    }
    Ok(best)
}

impl Hand {
    async fn work(&mut self, rounds: usize, batch: usize) -> Result<()> {
        let Self { connection, handler, keys } = self;
        for keys in keys.chunks(PIPELINE) {
            let mut states: Vec<HashMap<String, Vec<u8>>> = vec![HashMap::new(); keys.len()];
            let mut read: Vec<std::vec::IntoIter<types::Event>> = vec![];
            for from in (0..rounds).step_by(batch) {
                if from % ROWS == 0 {
                    let mut pipeline = redis::pipe();
                    for key in keys {
                        crate::floor::read(&mut pipeline, *key, from);
                    }
                    let answers: Vec<Value> = pipeline.query_async(connection).await?;
                    read = answers.into_iter().map(|rows| Ok(events(rows)?.into_iter())).collect::<Result<_>>()?;
                }
                let mut pipeline = redis::pipe();
                for ((key, events), state) in keys.iter().zip(&mut read).zip(&mut states) {
                    let mut last = None;
                    for event in events.take(batch) {
                        handler.call_with(&event, state)?;
                        last = Some(event.sequence);
                    }
                    let Some(last) = last else { continue };
                    let call = pipeline.cmd("FCALL").arg("floor_commit_state").arg(3);
                    call.arg(stream(*key)).arg(lease(*key)).arg(format!("{}:state", stream(*key)));
                    call.arg(GROUP).arg(TOKEN).arg(format!("1-{last}"));
                    for (name, value) in state.iter() {
                        call.arg(name).arg(value);
                    }
                }
                let answers: Vec<Value> = pipeline.query_async(connection).await?;
                std::hint::black_box(answers);
            }
        }
        Ok(())
    }
}

/// Rows of a stream as events.
fn events(rows: Value) -> Result<Vec<types::Event>> {
    let Value::Array(rows) = rows else { bail!("no rows: {rows:?}") };
    rows.into_iter()
        .map(|row| {
            let (id, fields): (String, Vec<Vec<u8>>) = redis::from_redis_value(row)?;
            let mut fields = fields.into_iter().skip(1).step_by(2);
            let mut next = || fields.next().context("a field is missing");
            let (name, event_id, data) = (String::from_utf8(next()?)?, String::from_utf8(next()?)?, next()?);
            let id: EntryId = id.parse()?;
            Ok(bare::event(&event_id, &name, "N1", vec![], data, id))
        })
        .collect()
}
