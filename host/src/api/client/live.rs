//! Following what happens, through the host: server-sent events.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use reqwest::Method;
use serde::Deserialize;

use super::{Client, given};
use crate::access::AccessError;
use crate::service::{Following, Overview, Tailed};

/// A line longer than this is no event of ours.
const LINE_MAX_BYTES: usize = 64 << 20;

/// One event.
#[derive(Debug, PartialEq, Eq)]
struct SentEvent {
    name: String,
    data: String,
}

/// Lines to events, as far as we write them: `event:` and `data:`, ended by an empty line; `:` is a comment.
#[derive(Debug, Default)]
struct Parser {
    line: Vec<u8>,
    name: String,
    data: String,
}

impl Parser {
    /// The events that these bytes complete.
    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<SentEvent>, String> {
        let mut events = vec![];
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + part.len() > LINE_MAX_BYTES {
                return Err(format!("a line has more than {LINE_MAX_BYTES} bytes"));
            }
            self.line.extend_from_slice(part);
            if part.last() == Some(&b'\n') {
                let line = std::mem::take(&mut self.line);
                let line = String::from_utf8(line).map_err(|error| error.to_string())?;
                events.extend(self.take_line(line.trim_end_matches(['\r', '\n'])));
            }
        }
        Ok(events)
    }

    fn take_line(&mut self, line: &str) -> Option<SentEvent> {
        if line.is_empty() {
            let event = SentEvent { name: std::mem::take(&mut self.name), data: std::mem::take(&mut self.data) };
            return (!event.data.is_empty()).then_some(event);
        }
        let (field, value) = line.split_once(':')?;
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            _ => {}
        }
        None
    }
}

impl Client {
    /// The whole fleet at one glance.
    pub async fn overview(&self) -> Result<Overview, AccessError> {
        self.answer(self.at(Method::GET, &["overview"], &[])?).await
    }

    /// Follows what is published. Ends with an error when the connection does.
    pub async fn tail(
        &self,
        following: &Following,
    ) -> Result<BoxStream<'static, Result<Tailed, AccessError>>, AccessError> {
        let query = given(&[
            ("category", following.category.as_deref()),
            ("key", following.key.as_deref()),
            ("data", Some(if following.data { "true" } else { "false" })),
        ]);
        let response = self.send(self.at(Method::GET, &["tail"], &query)?).await?;
        let following =
            Followed { bytes: response.bytes_stream().boxed(), parser: Parser::default(), ready: VecDeque::new() };
        Ok(stream::try_unfold(following, |mut following| async { Ok(Some((following.next().await?, following))) })
            .boxed())
    }
}

struct Followed {
    bytes: BoxStream<'static, Result<Bytes, reqwest::Error>>,
    parser: Parser,
    ready: VecDeque<Tailed>,
}

impl Followed {
    async fn next(&mut self) -> Result<Tailed, AccessError> {
        let broken = |why: &str| AccessError::Unavailable(format!("the host ended what was followed: {why}"));
        loop {
            if let Some(tailed) = self.ready.pop_front() {
                return Ok(tailed);
            }
            let bytes = match self.bytes.next().await {
                Some(Ok(bytes)) => bytes,
                Some(Err(error)) => return Err(broken(&error.to_string())),
                None => return Err(broken("it stops; see its log")),
            };
            for event in self.parser.feed(&bytes).map_err(|why| broken(&why))? {
                self.ready.extend(understood(&event).map_err(|error| broken(&error.to_string()))?);
            }
        }
    }
}

/// What an event tells; none for one of a later release.
fn understood(event: &SentEvent) -> Result<Option<Tailed>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Missed {
        count: u64,
    }
    Ok(match event.name.as_str() {
        "entry" => Some(Tailed::Entry(serde_json::from_str(&event.data)?)),
        "missed" => Some(Tailed::Missed { count: serde_json::from_str::<Missed>(&event.data)?.count }),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn events_come_out_however_the_bytes_are_cut() {
        let text =
            ": hello\n\nevent: entry\ndata: {\"a\":1}\n\nevent: missed\r\ndata:{\r\ndata: \"count\":3}\r\n\r\n:\n\n";
        for size in [1, 2, 7, 1_000] {
            let mut parser = Parser::default();
            let parts = text.as_bytes().chunks(size).flat_map(|part| parser.feed(part).unwrap());
            let events: Vec<_> = parts.collect();
            let event = |name: &str, data: &str| SentEvent { name: name.into(), data: data.into() };
            let expected = [event("entry", "{\"a\":1}"), event("missed", "{\n\"count\":3}")];
            assert_eq!(events, expected, "in parts of {size}");
        }
        assert!(matches!(
            understood(&SentEvent { name: "missed".into(), data: "{\"count\":3}".into() }).unwrap(),
            Some(Tailed::Missed { count: 3 })
        ));
        assert!(understood(&SentEvent { name: "later".into(), data: "x".into() }).unwrap().is_none());
        Parser::default().feed(b"\xff\n").unwrap_err();
    }
}
