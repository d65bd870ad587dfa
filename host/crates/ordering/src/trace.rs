//! Where an event stands in a trace, as the W3C's Trace Context writes it into the headers of an event.
//!
//! What cannot be read is no context and never an error: a trace is a help, and no event depends on it.

use std::fmt;

use crate::Event;

/// The header that names trace and span.
pub const TRACEPARENT: &str = "traceparent";
/// The header in which tracing systems keep notes of their own.
pub const TRACESTATE: &str = "tracestate";

/// `00-<32 hex digits>-<16 hex digits>-<2 hex digits>`.
const LENGTH: usize = 55;
/// Longer notes are dropped, as the W3C allows.
const TRACESTATE_MAX_BYTES: usize = 512;

/// A place in a trace. Both ids are not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: u128,
    /// The span that the event comes from.
    pub span_id: u64,
    /// Whether this trace is recorded.
    pub is_sampled: bool,
}

impl TraceContext {
    /// Reads the value of `traceparent`. Only as much of it is looked at as can matter.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let (known, rest) = bytes.split_at_checked(LENGTH)?;
        if known[2] != b'-' || known[35] != b'-' || known[52] != b'-' {
            return None;
        }
        let version = hex(&known[..2])?;
        // Version 0 ends here; a later one may go on after another dash.
        let ends_well = if version == 0 { rest.is_empty() } else { rest.first().is_none_or(|next| *next == b'-') };
        if version == 0xff || !ends_well {
            return None;
        }
        let (trace_id, span_id, flags) = (hex(&known[3..35])?, hex(&known[36..52])? as u64, hex(&known[53..55])?);
        (trace_id != 0 && span_id != 0).then_some(Self { trace_id, span_id, is_sampled: flags & 1 == 1 })
    }

    /// Of an event, from its headers.
    pub fn of(event: &Event) -> Option<Self> {
        event.headers.iter().find(|(name, _)| name == TRACEPARENT).and_then(|(_, value)| Self::parse(value))
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, u8::from(self.is_sampled))
    }
}

/// The headers of an event that tell of its trace, as they are to be handed on: none that cannot be read.
pub fn trace_headers(event: &Event) -> impl Iterator<Item = &(String, String)> {
    let is_traced = TraceContext::of(event).is_some();
    event.headers.iter().filter(move |(name, value)| match name.as_str() {
        TRACEPARENT => is_traced,
        TRACESTATE => is_traced && value.len() <= TRACESTATE_MAX_BYTES,
        _ => false,
    })
}

/// Lower-case hex digits, up to 32 of them.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |value, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(value << 4 | u128::from(digit))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_the_standard_allows_is_read_and_written_alike() {
        let context = TraceContext::parse(GOOD).unwrap();
        assert_eq!(context.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!((context.span_id, context.is_sampled), (0x00f0_67aa_0ba9_02b7, true));
        assert_eq!(context.to_string(), GOOD);
        let unsampled = GOOD.replace("-01", "-00");
        assert!(!TraceContext::parse(&unsampled).unwrap().is_sampled);
        // Further flags, and later versions, which may be longer.
        assert!(TraceContext::parse(&GOOD.replace("-01", "-03")).unwrap().is_sampled);
        assert!(TraceContext::parse(&GOOD.replace("00-4", "01-4")).is_some());
        assert!(TraceContext::parse(&(GOOD.replace("00-4", "cc-4") + "-more")).is_some());
    }

    #[test]
    fn rubbish_is_no_context() {
        let zeros = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32));
        let no_span = format!("00-{}-{}-01", "1".repeat(32), "0".repeat(16));
        let cases = [
            "",
            "00",
            "hello",
            &GOOD[..54],
            &GOOD.to_uppercase(),
            &GOOD.replace('-', "_"),
            &GOOD.replace("00-4", "ff-4"),
            &GOOD.replace("00-4", "0x-4"),
            &format!("{GOOD}-more"),
            &format!("{GOOD} "),
            &GOOD.replace('f', "é"),
            &zeros,
            &no_span,
            &"0".repeat(1 << 20),
            &"é".repeat(55),
        ];
        for text in cases {
            assert_eq!(TraceContext::parse(text), None, "{}", &text.chars().take(60).collect::<String>());
        }
    }
}
