//! What a guest says: `logging.log`, standard output and standard error, to `tracing`, with handler, key and event, up to a
//! limit a call and a limit a minute.
//!
//! Invariant: a secret that was given to the guest is not in a line of it, nor in what is recorded of a failed call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use keyrail_ordering::Key;
use tracing::Level;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::clock::monotonic;
use crate::grants::Mask;
use crate::limits::Limits;
use crate::usage::{Counters, count};

/// How much of its end is kept of what a call writes to standard error: a panic's message.
const LAST_WORDS_MAX_BYTES: usize = 512;
/// What a guest may write at once.
const WRITE_MAX_BYTES: usize = 64 << 10;

/// Where a guest's lines go. Shared by the store and its standard streams.
#[derive(Debug, Clone)]
pub(crate) struct Log(Arc<Mutex<Lines>>);

#[derive(Debug)]
struct Lines {
    count_max: u64,
    line_max_bytes: usize,
    handler: Arc<str>,
    rate: Arc<LogRate>,
    counters: Arc<Counters>,
    mask: Arc<Mask>,
    /// The event that is being handled, and its key.
    event: Arc<str>,
    key: Option<Key>,
    /// The trace that the event is part of.
    trace_id: Option<u128>,
    count: u64,
    last_words: Vec<u8>,
    /// Begun lines of standard output and standard error.
    begun: [Vec<u8>; 2],
}

/// How many lines a handler may log in a minute, all its instances together.
#[derive(Debug)]
pub(crate) struct LogRate {
    max_per_minute: u64,
    /// The minute, counted from anywhere, and its lines.
    minute: Mutex<(u64, u64)>,
}

/// What a line is to the rate.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    Take,
    /// The first that is dropped in this minute.
    DropFirst,
    Drop,
}

impl LogRate {
    pub(crate) fn new(max_per_minute: u64) -> Self {
        Self { max_per_minute, minute: Mutex::default() }
    }

    fn turn(&self, now: Duration) -> Turn {
        let mut minute = self.minute.lock().unwrap_or_else(PoisonError::into_inner);
        let this = now.as_secs() / 60;
        if minute.0 != this {
            *minute = (this, 0);
        }
        minute.1 += 1;
        match minute.1 {
            line if line <= self.max_per_minute => Turn::Take,
            line if line == self.max_per_minute + 1 => Turn::DropFirst,
            _ => Turn::Drop,
        }
    }
}

/// One of the two standard streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    Stdout,
    Stderr,
}

impl Log {
    pub(crate) fn new(
        handler: Arc<str>,
        limits: &Limits,
        rate: Arc<LogRate>,
        counters: Arc<Counters>,
        mask: Arc<Mask>,
    ) -> Self {
        Self(Arc::new(Mutex::new(Lines {
            count_max: limits.log_lines_max,
            line_max_bytes: usize::try_from(limits.log_line_max_bytes).unwrap_or(usize::MAX),
            handler,
            rate,
            counters,
            mask,
            event: Arc::from(""),
            key: None,
            trace_id: None,
            count: 0,
            last_words: Vec::new(),
            begun: [Vec::new(), Vec::new()],
        })))
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What must not be seen of what the guest was given.
    pub(crate) fn mask(&self) -> Arc<Mask> {
        self.lines().mask.clone()
    }

    /// Begins a call: the count starts anew.
    pub(crate) fn begin(&self, event: Arc<str>, key: Option<Key>, trace_id: Option<u128>) {
        let mut lines = self.lines();
        lines.event = event;
        lines.key = key;
        lines.trace_id = trace_id;
        lines.count = 0;
        lines.last_words.clear();
    }

    /// Ends a call: lines without an end are written. Answers with the end of what was written to standard error.
    pub(crate) fn end(&self) -> String {
        let mut lines = self.lines();
        for channel in [Channel::Stdout, Channel::Stderr] {
            lines.end_line(channel);
        }
        lines.mask.hide(String::from_utf8_lossy(&lines.last_words).trim()).into_owned()
    }

    /// The guest tried what it is not granted. Not a line of its own, but limited like one.
    pub(crate) fn denied(&self, what: &str) {
        self.lines().line(Level::WARN, "denied", what);
    }

    /// One line of `logging.log`.
    pub(crate) fn line(&self, level: Level, context: &str, message: &str) {
        self.lines().line(level, context, message);
    }
}

impl Lines {
    fn line(&mut self, level: Level, context: &str, message: &str) {
        self.count += 1;
        let (handler, event) = (self.handler.as_ref(), self.event.as_ref());
        let key = self.key.as_ref().map(Key::as_str);
        let trace_id = self.trace_id.map(|trace_id| format!("{trace_id:032x}"));
        let trace_id = trace_id.as_deref();
        if self.count > self.count_max {
            count(&self.counters.log_lines_dropped);
            if self.count == self.count_max + 1 {
                tracing::warn!(target: "keyrail::guest", handler, key, event, trace_id, "further lines of this call are dropped");
            }
            return;
        }
        match self.rate.turn(monotonic()) {
            Turn::Take => {}
            Turn::Drop => return count(&self.counters.log_lines_dropped),
            Turn::DropFirst => {
                count(&self.counters.log_lines_dropped);
                tracing::warn!(
                    target: "keyrail::guest", handler, key, event, trace_id,
                    "the handler logs more than log_lines_per_minute_max; its further lines of this minute are dropped"
                );
                return;
            }
        }
        let (context, message) = (self.mask.hide(context), self.mask.hide(message));
        let context = cut(&context, self.line_max_bytes);
        let message = cut(&message, self.line_max_bytes);
        match level {
            Level::ERROR => {
                tracing::error!(target: "keyrail::guest", handler, key, event, trace_id, context, "{message}")
            }
            Level::WARN => {
                tracing::warn!(target: "keyrail::guest", handler, key, event, trace_id, context, "{message}")
            }
            Level::INFO => {
                tracing::info!(target: "keyrail::guest", handler, key, event, trace_id, context, "{message}")
            }
            Level::DEBUG => {
                tracing::debug!(target: "keyrail::guest", handler, key, event, trace_id, context, "{message}")
            }
            Level::TRACE => {
                tracing::trace!(target: "keyrail::guest", handler, key, event, trace_id, context, "{message}")
            }
        }
    }

    fn write(&mut self, channel: Channel, bytes: &[u8]) {
        if channel == Channel::Stderr {
            self.last_words.extend_from_slice(bytes);
            let excess = self.last_words.len().saturating_sub(LAST_WORDS_MAX_BYTES);
            self.last_words.drain(..excess);
        }
        let mut pieces = bytes.split(|byte| *byte == b'\n');
        let first = pieces.next().unwrap_or_default();
        self.extend_line(channel, first);
        for piece in pieces {
            self.end_line(channel);
            self.extend_line(channel, piece);
        }
    }

    /// What is over the limit is dropped here already: a line without an end must not take the host's memory.
    fn extend_line(&mut self, channel: Channel, piece: &[u8]) {
        let begun = &mut self.begun[channel as usize];
        let room = self.line_max_bytes.saturating_sub(begun.len());
        begun.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    fn end_line(&mut self, channel: Channel) {
        let begun = std::mem::take(&mut self.begun[channel as usize]);
        if begun.is_empty() {
            return;
        }
        let (level, context) = match channel {
            Channel::Stdout => (Level::INFO, "stdout"),
            Channel::Stderr => (Level::WARN, "stderr"),
        };
        self.line(level, context, &String::from_utf8_lossy(&begun));
    }
}

/// The longest start of a text that has at most so many bytes.
fn cut(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

/// A standard stream that writes to a log.
#[derive(Debug, Clone)]
pub(crate) struct Standard {
    pub(crate) log: Log,
    pub(crate) channel: Channel,
}

impl IsTerminal for Standard {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Standard {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // Asked for by WASI 0.3 only, which this host does not link.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for Standard {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.log.lines().write(self.channel, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_MAX_BYTES)
    }
}

#[async_trait::async_trait]
impl Pollable for Standard {
    async fn ready(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(log_lines_max: u64, log_line_max_bytes: u64) -> Log {
        let limits = Limits { log_lines_max, log_line_max_bytes, ..Limits::default() };
        Log::new("h".into(), &limits, Arc::new(LogRate::new(1_000_000)), Arc::default(), Arc::default())
    }

    #[test]
    fn a_minute_has_its_lines_and_the_next_has_them_again() {
        let rate = LogRate::new(2);
        let at = Duration::from_secs;
        let turns = [at(0), at(30), at(59), at(59), at(60)].map(|now| rate.turn(now));
        assert_eq!(turns, [Turn::Take, Turn::Take, Turn::DropFirst, Turn::Drop, Turn::Take]);
    }

    #[test]
    fn lines_are_counted_however_they_are_written() {
        let log = log(10, 100);
        log.begin("e".into(), None, None);
        log.lines().write(Channel::Stdout, b"one\ntw");
        log.lines().write(Channel::Stdout, b"o\n\nthree");
        assert_eq!(log.lines().count, 2);
        log.end();
        assert_eq!(log.lines().count, 3);
    }

    #[test]
    fn a_line_without_an_end_takes_no_more_than_its_limit() {
        let log = log(10, 8);
        for _ in 0..1_000 {
            log.lines().write(Channel::Stderr, &[b'x'; 1_000]);
        }
        assert_eq!(log.lines().begun[1].len(), 8);
        assert_eq!(log.end().len(), LAST_WORDS_MAX_BYTES);
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("", 3), "");
    }
}
