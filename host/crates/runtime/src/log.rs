//! What a guest says: `logging.log`, standard output and standard error, to `tracing`, up to a limit a call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tracing::Level;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// How much of its end is kept of what a call writes to standard error: a panic's message.
const LAST_WORDS_MAX_BYTES: usize = 512;
/// What a guest may write at once.
const WRITE_MAX_BYTES: usize = 64 << 10;

/// Where a guest's lines go. Shared by the store and its standard streams.
#[derive(Debug, Clone)]
pub(crate) struct Log(Arc<Mutex<Lines>>);

#[derive(Debug)]
struct Lines {
    count_max: usize,
    line_max_bytes: usize,
    handler: Arc<str>,
    /// The event that is being handled.
    event: Arc<str>,
    count: usize,
    last_words: Vec<u8>,
    /// Begun lines of standard output and standard error.
    begun: [Vec<u8>; 2],
}

/// One of the two standard streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    Stdout,
    Stderr,
}

impl Log {
    pub(crate) fn new(handler: Arc<str>, count_max: usize, line_max_bytes: usize) -> Self {
        let (event, begun, last_words) = (Arc::from(""), [Vec::new(), Vec::new()], Vec::new());
        Self(Arc::new(Mutex::new(Lines { count_max, line_max_bytes, handler, event, count: 0, last_words, begun })))
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call: the count starts anew.
    pub(crate) fn begin(&self, event: Arc<str>) {
        let mut lines = self.lines();
        lines.event = event;
        lines.count = 0;
        lines.last_words.clear();
    }

    /// Ends a call: lines without an end are written. Answers with the end of what was written to standard error.
    pub(crate) fn end(&self) -> String {
        let mut lines = self.lines();
        for channel in [Channel::Stdout, Channel::Stderr] {
            lines.end_line(channel);
        }
        String::from_utf8_lossy(&lines.last_words).trim().into()
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
        if self.count > self.count_max {
            if self.count == self.count_max + 1 {
                tracing::warn!(target: "keyrail::guest", handler, event, "further lines of this call are dropped");
            }
            return;
        }
        let context = cut(context, self.line_max_bytes);
        let message = cut(message, self.line_max_bytes);
        match level {
            Level::ERROR => tracing::error!(target: "keyrail::guest", handler, event, context, "{message}"),
            Level::WARN => tracing::warn!(target: "keyrail::guest", handler, event, context, "{message}"),
            Level::INFO => tracing::info!(target: "keyrail::guest", handler, event, context, "{message}"),
            Level::DEBUG => tracing::debug!(target: "keyrail::guest", handler, event, context, "{message}"),
            Level::TRACE => tracing::trace!(target: "keyrail::guest", handler, event, context, "{message}"),
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

    fn log(lines_max: usize, line_max_bytes: usize) -> Log {
        Log::new("h".into(), lines_max, line_max_bytes)
    }

    #[test]
    fn lines_are_counted_however_they_are_written() {
        let log = log(10, 100);
        log.begin("e".into());
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
