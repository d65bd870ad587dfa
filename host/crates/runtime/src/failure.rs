//! From how a guest was stopped to what is recorded of the failed try.

use keyrail_ordering::{Failure, FailureKind};
use wasmtime::{PoolConcurrencyLimitError, WasmBacktrace};
use wasmtime_wasi::I32Exit;

/// Functions of a backtrace that are shown.
const FRAMES_MAX: usize = 6;
/// The longest message that is kept of a failed try.
const ERROR_MAX_BYTES: usize = 2_048;

/// How the guest's code was ended before it answered.
#[derive(Debug)]
pub(crate) enum Stop {
    /// By its own fault, a limit of the engine, or an import.
    Trap(wasmtime::Error),
    /// Its time by the wall clock was up; in milliseconds.
    Wall(u64),
}

/// The CPU limit acted. Travels through the guest's frames as an error.
#[derive(Debug, thiserror::Error)]
#[error("the handler used more than {limit_ms} ms of CPU time")]
pub(crate) struct CpuLimit {
    pub(crate) limit_ms: u64,
}

impl Stop {
    /// Whether wasmtime's own pool was full; no guest is to blame.
    pub(crate) fn is_full_pool(&self) -> bool {
        matches!(self, Self::Trap(error) if error.is::<PoolConcurrencyLimitError>())
    }

    /// What to record. `refused` is the memory that the guest asked for in vain, `last_words` the end of its standard error.
    pub(crate) fn into_failure(self, refused: Option<String>, last_words: &str) -> Failure {
        let (kind, mut error) = match &self {
            Self::Wall(limit_ms) => (FailureKind::Timeout, format!("the handler took more than {limit_ms} ms")),
            Self::Trap(error) if error.is::<CpuLimit>() => (FailureKind::Timeout, error.root_cause().to_string()),
            Self::Trap(error) => match refused {
                Some(refused) => (FailureKind::Memory, format!("{refused}; then: {}", message(error))),
                None => (FailureKind::Trap, message(error)),
            },
        };
        let last_words = on_one_line(last_words);
        if !last_words.is_empty() {
            error.push_str("; it wrote: ");
            error.push_str(&last_words);
        }
        if let Self::Trap(trap) = &self {
            error.push_str(&backtrace(trap));
        }
        shorten(&mut error);
        Failure { kind, error }
    }
}

/// One line on an error: the root, which says what happened; the rest of the chain is about where.
fn message(error: &wasmtime::Error) -> String {
    match error.downcast_ref::<I32Exit>() {
        Some(I32Exit(status)) => format!("the handler ended itself with status {status}"),
        None => error.root_cause().to_string(),
    }
}

/// The functions that the guest was in, innermost first, without those of its language's runtime on the way down.
fn backtrace(error: &wasmtime::Error) -> String {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return String::new() };
    let frames = backtrace.frames().iter();
    let names = frames.map(|frame| match frame.func_name() {
        Some(name) => format!("{:#}", rustc_demangle::demangle(name)),
        None => format!("function {}", frame.func_index()),
    });
    let mut names: Vec<_> = names.collect();
    names.dedup(); // recursion
    let own = names.iter().position(|name| !is_of_runtime(name)).unwrap_or_default();
    let shown: Vec<_> = names[own..].iter().take(FRAMES_MAX).map(String::as_str).collect();
    if shown.is_empty() { String::new() } else { format!("; in {}", shown.join(" < ")) }
}

fn is_of_runtime(name: &str) -> bool {
    ["core::", "std::", "alloc::", "__rustc::", "dlmalloc::"].iter().any(|prefix| name.starts_with(prefix))
        || matches!(name, "abort" | "exit" | "_Exit" | "exit_exit")
}

/// What a guest wrote to standard error, on one line, without the advice on its own environment.
fn on_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("note: run with"));
    lines.collect::<Vec<_>>().join(" ")
}

/// Cuts a message that a guest had a part in.
pub(crate) fn shorten(error: &mut String) {
    if error.len() > ERROR_MAX_BYTES {
        error.truncate(error.floor_char_boundary(ERROR_MAX_BYTES));
        error.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_one_line_without_advice() {
        let words = "thread panicked at a.rs:1:\nasked to\nnote: run with `RUST_BACKTRACE=1` environment variable\n";
        assert_eq!(on_one_line(words), "thread panicked at a.rs:1: asked to");
    }

    #[test]
    fn a_long_message_is_cut() {
        let mut error = "é".repeat(ERROR_MAX_BYTES);
        shorten(&mut error);
        assert!(error.len() <= ERROR_MAX_BYTES + '…'.len_utf8());
    }

    #[test]
    fn a_refused_memory_makes_a_trap_a_memory_failure() {
        let trap = || Stop::Trap(wasmtime::Error::msg("wasm trap"));
        assert_eq!(trap().into_failure(None, "").kind, FailureKind::Trap);
        let failure = trap().into_failure(Some("too much".into()), "panicked");
        assert_eq!(failure.kind, FailureKind::Memory);
        assert_eq!(failure.error, "too much; then: wasm trap; it wrote: panicked");
    }
}
