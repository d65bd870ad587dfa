//! What every language's SDK must do: one suite, run for each language's component of the conformance handler.
//!
//! The component is driven by the real engine over an embedded broker in memory. The handler itself is
//! `guest-sdk/<language>/conformance`; what its actions mean is in `guest-sdk/CONFORMANCE.md`.
//!
//! To add a language, add its name to [`suite!`] and its component to `cargo xtask guests`.
#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod checks;
mod log;
mod world;

/// A module for each language, with every check as a test.
macro_rules! suite {
    ($($language:ident)+) => { $(
        mod $language {
            use crate::{checks, world::Component};

            static COMPONENT: Component = Component::new(concat!("conformance-", stringify!($language)));

            suite!(@ tests
                it_says_what_it_is
                events_of_a_key_run_in_order_and_keys_apart
                state_is_put_replaced_and_removed
                binary_state_comes_back_as_it_was
                emits_arrive_in_order_with_their_headers
                a_refused_emit_fails_the_event_whatever_the_handler_answers
                nothing_of_a_failed_try_is_kept
                tries_run_out
                a_reject_stands_still_at_once
                a_trap_is_a_failed_try
                an_endless_loop_is_stopped
                memory_without_end_is_stopped
                text_passes_through_unchanged
                the_event_is_shown_as_it_is
                lines_reach_the_log
                two_runs_are_equal
            );
        }
    )+ };
    (@ tests $($check:ident)+) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $check() {
            checks::$check(&COMPONENT).await;
        }
    )+ };
}

suite!(rust js python go c);
