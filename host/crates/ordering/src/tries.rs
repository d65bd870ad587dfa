//! What a failed try leads to.

use crate::{HaltCause, RetryPolicy};

/// A try that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// How.
    pub kind: FailureKind,
    /// What it said.
    pub error: String,
}

/// The kinds of failed tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The handler asked for another try, perhaps not before some time.
    Retry {
        /// The wish.
        after_ms: Option<u64>,
    },
    /// The handler said that no try can succeed.
    Rejected,
    /// The guest trapped.
    Trap,
    /// The guest used more CPU time or wall time than it may.
    Timeout,
    /// The guest wanted more memory than it may have.
    Memory,
    /// An emit was refused.
    Refused,
}

impl FailureKind {
    /// The kind's name in logs and records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry { .. } => "retry",
            Self::Rejected => "reject",
            Self::Trap => "trap",
            Self::Timeout => "timeout",
            Self::Memory => "memory",
            Self::Refused => "refused",
        }
    }
}

/// What follows a failed try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Another try.
    Again {
        /// When it is due.
        after_ms: u64,
    },
    /// No further try: the event is poison, for this reason.
    GiveUp(HaltCause),
}

impl RetryPolicy {
    /// What follows the `attempt`-th failure (1 or more). `chance` is uniform in 0..=1, for the jitter.
    pub fn verdict(&self, attempt: u32, kind: FailureKind, chance: f64) -> Verdict {
        let wish_ms = match kind {
            FailureKind::Rejected => return Verdict::GiveUp(HaltCause::Rejected),
            FailureKind::Retry { after_ms } => after_ms,
            _ => None,
        };
        if attempt >= self.attempts_max {
            return Verdict::GiveUp(HaltCause::Poison);
        }
        Verdict::Again { after_ms: self.backoff_ms(attempt, chance, wish_ms) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reject_gives_up_at_once_and_anything_else_when_the_tries_are_used_up() {
        let policy = RetryPolicy { attempts_max: 2, ..RetryPolicy::default() };
        assert_eq!(policy.verdict(1, FailureKind::Rejected, 0.0), Verdict::GiveUp(HaltCause::Rejected));
        assert!(matches!(policy.verdict(1, FailureKind::Trap, 0.0), Verdict::Again { .. }));
        assert_eq!(policy.verdict(2, FailureKind::Trap, 0.0), Verdict::GiveUp(HaltCause::Poison));
        let wish = FailureKind::Retry { after_ms: Some(9_000) };
        assert_eq!(policy.verdict(1, wish, 0.0), Verdict::Again { after_ms: 9_000 });
    }
}
