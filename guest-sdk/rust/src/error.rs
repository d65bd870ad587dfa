//! Errors and what they become: retry unless said otherwise, reject where no try can succeed.

use std::fmt;

/// What a handler's method answers.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// What the host is told. Only `Done` keeps the call's state writes and emits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disposition {
    /// Handled.
    Done,
    /// Try again later; nothing else of this key runs before.
    Retry {
        /// Shown to operators.
        reason: String,
        /// A wish: the host's own back-off is the least, its cap the most.
        after_ms: Option<u64>,
    },
    /// No try can succeed: the key halts on this event until an operator decides.
    Reject(String),
}

impl From<Result<()>> for Disposition {
    fn from(result: Result<()>) -> Self {
        match result {
            Ok(()) => Self::Done,
            Err(Error(Failure::Retry { reason, after_ms })) => Self::Retry { reason, after_ms },
            Err(Error(Failure::Reject(reason))) => Self::Reject(reason),
        }
    }
}

/// Why an event was not handled, and whether another try makes sense.
///
/// Any `std::error::Error` becomes a retry with its text through `?`. Like `anyhow::Error` this is not itself a
/// `std::error::Error`.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Failure);

#[derive(Clone, PartialEq, Eq)]
enum Failure {
    Retry { reason: String, after_ms: Option<u64> },
    Reject(String),
}

impl Error {
    /// Try again, after the host's own back-off.
    pub fn retry(reason: impl Into<String>) -> Self {
        Self(Failure::Retry { reason: reason.into(), after_ms: None })
    }

    /// Try again, not before `after_ms`.
    pub fn retry_after(after_ms: u64, reason: impl Into<String>) -> Self {
        Self(Failure::Retry { reason: reason.into(), after_ms: Some(after_ms) })
    }

    /// Give up: the key halts on this event until an operator decides.
    pub fn reject(reason: impl Into<String>) -> Self {
        Self(Failure::Reject(reason.into()))
    }

    /// Its text.
    pub fn reason(&self) -> &str {
        match &self.0 {
            Failure::Retry { reason, .. } | Failure::Reject(reason) => reason,
        }
    }

    /// Whether it gives up.
    pub fn is_reject(&self) -> bool {
        matches!(self.0, Failure::Reject(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_reject() { "reject: " } else { "retry: " })?;
        f.write_str(self.reason())
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        Self::retry(chain(&error))
    }
}

/// An error's text and its causes', in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Many errors already end with their cause.
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// Turns an error into a rejection: `amount.parse::<u64>().or_reject()?`.
pub trait OrReject<T> {
    /// The value, or a rejection with the error's text.
    fn or_reject(self) -> Result<T>;
}

impl<T, E: Into<Error>> OrReject<T> for std::result::Result<T, E> {
    fn or_reject(self) -> Result<T> {
        self.map_err(|error| match error.into().0 {
            Failure::Retry { reason, .. } | Failure::Reject(reason) => Error::reject(reason),
        })
    }
}
