//! Why a configuration was refused.

use std::io;
use std::path::PathBuf;

/// Why a configuration was refused. Each names the place to change.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {error}; correct --config or KEYRAIL_CONFIG, or leave it out", .path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file is not TOML, or has a value or a name that is not allowed.
    #[error("{} line {line}{}: {message}", .path.display(), .field.as_ref().map(|f| format!(", {f}")).unwrap_or_default())]
    File {
        /// Which file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// Which setting, where that is known.
        field: Option<String>,
        /// What is wrong and what is allowed.
        message: String,
    },
    /// A single setting from the environment or a flag.
    #[error("{place}: {message}")]
    Setting {
        /// The variable or the flag.
        place: String,
        /// What is wrong and what is allowed.
        message: String,
    },
    /// Settings that do not fit together, or limits that are none.
    #[error("the configuration does not fit together: {}", .0.join("; "))]
    Problems(Vec<String>),
}
