//! When a failed event is tried again: exponential back-off with jitter and a cap.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::option::{self, OptionError};

/// How often and how soon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RetryPolicy {
    /// Tries an event gets in all, 1 or more.
    pub attempts_max: u32,
    /// Hosts that may die on an event before it halts.
    pub crashes_max: u32,
    /// Wait after the first failure; doubles with each further one.
    pub backoff_base_ms: u64,
    /// The longest wait, whatever the guest wishes.
    pub backoff_cap_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts_max: 5, crashes_max: 5, backoff_base_ms: 200, backoff_cap_ms: 60_000 }
    }
}

/// The longest wait that a handler may ask for: a day.
const WAIT_MAX_MS: u64 = 24 * 3_600 * 1_000;
/// The most tries that a handler may ask for.
const TRIES_MAX: u64 = 1_000;

impl RetryPolicy {
    /// This policy with what a handler's options say: `retry-attempts-max`, `retry-crashes-max`, `retry-backoff-base-ms`,
    /// `retry-backoff-cap-ms`. Other options are not looked at.
    pub fn with_options(&self, options: &[(String, String)]) -> Result<Self, OptionError> {
        let mut policy = self.clone();
        for (name, value) in options {
            let number = |min, max| option::number(name, value, min, max);
            match name.as_str() {
                "retry-attempts-max" => policy.attempts_max = number(1, TRIES_MAX)? as u32,
                "retry-crashes-max" => policy.crashes_max = number(1, TRIES_MAX)? as u32,
                "retry-backoff-base-ms" => policy.backoff_base_ms = number(0, WAIT_MAX_MS)?,
                "retry-backoff-cap-ms" => policy.backoff_cap_ms = number(0, WAIT_MAX_MS)?,
                _ => {}
            }
        }
        Ok(policy)
    }

    /// The wait after the `attempt`-th failure (1 or more). `chance` is uniform in 0..=1 and spreads the wait over its
    /// upper half, so that keys that failed together do not return together. A guest's wish can lengthen the wait up to
    /// the cap, never shorten it.
    pub fn backoff_ms(&self, attempt: u32, chance: f64, wish_ms: Option<u64>) -> u64 {
        let doublings = attempt.saturating_sub(1).min(63);
        let full = self.backoff_base_ms.saturating_mul(1 << doublings).min(self.backoff_cap_ms);
        let spread = (full as f64 / 2.0 * (1.0 + chance.clamp(0.0, 1.0))) as u64;
        spread.max(wish_ms.unwrap_or(0)).min(self.backoff_cap_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_wait_doubles_up_to_the_cap() {
        let policy = RetryPolicy { backoff_base_ms: 100, backoff_cap_ms: 1_000, ..RetryPolicy::default() };
        let waits: Vec<_> = (1..=6).map(|attempt| policy.backoff_ms(attempt, 1.0, None)).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!(policy.backoff_ms(1, 0.0, None), 50);
    }

    #[test]
    fn a_wish_lengthens_and_never_shortens() {
        let policy = RetryPolicy { backoff_base_ms: 100, backoff_cap_ms: 1_000, ..RetryPolicy::default() };
        assert_eq!(policy.backoff_ms(1, 1.0, Some(500)), 500);
        assert_eq!(policy.backoff_ms(1, 1.0, Some(1)), 100);
        assert_eq!(policy.backoff_ms(1, 1.0, Some(u64::MAX)), 1_000);
    }

    #[test]
    fn a_handler_sets_its_own() {
        let options = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        let base = RetryPolicy::default();
        let own = base.with_options(&options(&[("retry-attempts-max", "9"), ("other", "x")])).unwrap();
        assert_eq!(own, RetryPolicy { attempts_max: 9, ..base.clone() });
        for bad in ["0", "-1", "many", "1001"] {
            let error = base.with_options(&options(&[("retry-attempts-max", bad)])).unwrap_err();
            assert!(error.to_string().contains("from 1 to 1000"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn never_over_the_cap_and_never_panics(
            attempt: u32, chance in -1.0f64..2.0, base: u64, cap: u64, wish: Option<u64>,
        ) {
            let policy = RetryPolicy { backoff_base_ms: base, backoff_cap_ms: cap, ..RetryPolicy::default() };
            prop_assert!(policy.backoff_ms(attempt, chance, wish) <= cap);
        }
    }
}
