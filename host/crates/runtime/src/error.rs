//! Errors, one type an operation. Each message is one line.

use std::path::PathBuf;

use keyrail_ordering::Refusal;

/// Why the runtime cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A setting out of its range.
    #[error("{name} is {value}; it must be from {least} to {most}")]
    Setting {
        /// Which.
        name: &'static str,
        /// What it is.
        value: u64,
        /// The least it may be.
        least: u64,
        /// The most it may be.
        most: u64,
    },
    /// The cache directory cannot be used.
    #[error("the directory {} for compiled code cannot be used: {why}", .path.display())]
    CacheDir {
        /// Which.
        path: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// The engine does not start.
    #[error("the WebAssembly engine does not start: {0}")]
    Engine(String),
}

/// Why a component was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{} cannot be read: {error}; build it first, or correct the path", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// No bytes.
    #[error("{0} is empty; is it still being written?")]
    Empty(String),
    /// Over the limit.
    #[error("{name} has more than {limit_bytes} bytes, the most that a component may have")]
    TooLarge {
        /// The component.
        name: String,
        /// The limit.
        limit_bytes: u64,
    },
    /// Other bytes.
    #[error("{0} is not a WebAssembly component: it does not start like one; build it for the target wasm32-wasip2")]
    NotWasm(String),
    /// A core module.
    #[error(
        "{0} is a core WebAssembly module, not a component; build it for the target wasm32-wasip2, or wrap it with \
         `wasm-tools component new`"
    )]
    CoreModule(String),
    /// It is damaged, or uses what this host has not switched on.
    #[error("{name} does not compile: {why}")]
    Compile {
        /// The component.
        name: String,
        /// Why.
        why: String,
    },
    /// It does not fit this host: every reason.
    #[error("{}", .0.join("; "))]
    Refused(Vec<String>),
    /// It describes itself with names that are none: every one.
    #[error("{}", joined(.0))]
    Declaration(Vec<Refusal>),
    /// Start-up code or `describe` failed.
    #[error("{name} failed to describe itself: {why}")]
    Describe {
        /// The component.
        name: String,
        /// Why.
        why: String,
    },
}

fn joined(refusals: &[Refusal]) -> String {
    refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Why there is no instance.
#[derive(Debug, thiserror::Error)]
pub enum InstantiateError {
    /// As many live as may. One has to go first; no event is to blame.
    #[error("as many instances live as instances_max allows")]
    NoCapacity,
    /// The component's start-up code failed, or the host could not make one.
    #[error("the component does not start: {0}")]
    Failed(String),
}
