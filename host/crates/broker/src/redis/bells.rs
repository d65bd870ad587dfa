//! Bells: pub/sub over a connection of its own.
//!
//! Invariant: a bell is never waited for. After every connect, and whenever the listener fell behind, one
//! [`Bell::Lost`] tells it to look through everything; so nothing depends on a message that can be lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use keyrail_ordering::KeyRules;
use redis::{Client, Msg};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::connection::Timeouts;
use super::keyspace::{self, Listing};
use crate::{Bell, Bells, ReadySource};

/// Bells that wait for the listener; past it they become one [`Bell::Lost`].
const BELLS_MAX: usize = 1_024;
/// Wait after the first failed connect; doubles up to the second.
const BACKOFF_BASE_MS: u64 = 50;
const BACKOFF_CAP_MS: u64 = 2_000;
/// A connection that was silent this long is asked whether it is still there.
const SILENCE_MAX_MS: u64 = 5_000;

/// Listens until the stream is dropped.
pub(super) fn listen(client: Client, timeouts: Timeouts, sources: &[ReadySource], rules: Arc<KeyRules>) -> Bells {
    let channels: HashMap<String, ReadySource> =
        sources.iter().map(|source| (keyspace::listing(source, Listing::Ready), source.clone())).collect();
    let (sender, receiver) = mpsc::channel(BELLS_MAX);
    let listener = Listener { client, timeouts, channels, rules, sender, fell_behind: false };
    let task = tokio::spawn(listener.run());
    let guard = AbortOnDrop(task);
    futures::stream::unfold((receiver, guard), |(mut receiver, guard)| async move {
        receiver.recv().await.map(|bell| (bell, (receiver, guard)))
    })
    .boxed()
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Listener {
    client: Client,
    timeouts: Timeouts,
    channels: HashMap<String, ReadySource>,
    rules: Arc<KeyRules>,
    sender: mpsc::Sender<Bell>,
    fell_behind: bool,
}

impl Listener {
    async fn run(mut self) {
        let mut backoff_ms = BACKOFF_BASE_MS;
        while !self.sender.is_closed() {
            let heard = self.hear_one_connection().await;
            if heard.connected {
                backoff_ms = BACKOFF_BASE_MS;
            }
            tracing::debug!(error = heard.error, "the connection for bells is gone; connecting again");
            sleep(Duration::from_millis(backoff_ms)).await;
            backoff_ms = (backoff_ms * 2).min(BACKOFF_CAP_MS);
        }
    }

    /// Connects, subscribes and listens until the connection breaks.
    async fn hear_one_connection(&mut self) -> Heard {
        let away = |error: &dyn std::fmt::Display| Heard { connected: false, error: error.to_string() };
        let limit = Duration::from_millis(self.timeouts.connect_ms);
        let connection = match timeout(limit, self.client.get_async_pubsub()).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return away(&error),
            Err(elapsed) => return away(&elapsed),
        };
        let (mut sink, mut messages) = connection.split();
        let mut names: Vec<&str> = self.channels.keys().map(String::as_str).collect();
        names.extend([keyspace::OUTBOX, keyspace::MEMBERS, keyspace::CATALOG]);
        let answer = Duration::from_millis(self.timeouts.response_ms);
        match timeout(answer, sink.subscribe(&names)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return away(&error),
            Err(elapsed) => return away(&elapsed),
        }
        self.ring(Bell::Lost);
        let ended = |error: &str| Heard { connected: true, error: error.into() };
        loop {
            match timeout(Duration::from_millis(SILENCE_MAX_MS), messages.next()).await {
                Ok(Some(message)) => {
                    if let Some(bell) = self.understand(&message) {
                        self.ring(bell);
                    }
                }
                Ok(None) => return ended("it was closed"),
                Err(_) => {
                    // A dead network is silent too.
                    if !matches!(timeout(answer, sink.ping::<redis::Value>()).await, Ok(Ok(_))) {
                        return ended("it does not answer");
                    }
                    if self.fell_behind {
                        self.ring(Bell::Lost);
                    }
                }
            }
            if self.sender.is_closed() {
                return ended("nobody listens");
            }
        }
    }

    fn understand(&self, message: &Msg) -> Option<Bell> {
        let channel = message.get_channel_name();
        if channel == keyspace::OUTBOX {
            return Some(Bell::Outbox);
        }
        if channel == keyspace::MEMBERS {
            return Some(Bell::Members);
        }
        if channel == keyspace::CATALOG {
            return Some(Bell::Catalog);
        }
        let source = self.channels.get(channel)?;
        let key = std::str::from_utf8(message.get_payload_bytes()).ok()?;
        if key.is_empty() {
            return Some(Bell::Look { source: source.clone() });
        }
        let key = keyspace::stored_key(key, &self.rules)?;
        Some(Bell::Ready { source: source.clone(), key })
    }

    /// Never waits: a listener that fell behind hears [`Bell::Lost`] as soon as there is room.
    fn ring(&mut self, bell: Bell) {
        if self.fell_behind && bell != Bell::Lost {
            self.fell_behind = self.sender.try_send(Bell::Lost).is_err();
            if self.fell_behind {
                return;
            }
        }
        self.fell_behind = self.sender.try_send(bell).is_err();
    }
}

struct Heard {
    connected: bool,
    error: String,
}
