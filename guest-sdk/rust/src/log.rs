//! Logging: `keyrail_guest::info!("{} orders", n)`.
//!
//! Lines go to the host's log, outside the commit: an event that is tried again logs again.

use std::fmt;

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Steps.
    Trace,
    /// For whoever looks for a fault.
    Debug,
    /// What happened.
    Info,
    /// Something is off.
    Warn,
    /// Something failed.
    Error,
    /// Somebody must act.
    Critical,
}

/// Writes one line. `context` groups lines; the macros give the module's path.
pub fn log(level: Level, context: &str, message: &str) {
    crate::host::log(level, context, message);
}

/// What the macros call.
#[doc(hidden)]
pub fn write(level: Level, context: &str, message: fmt::Arguments<'_>) {
    // Most lines of small guests are literals: no formatting, no allocation.
    match message.as_str() {
        Some(text) => log(level, context, text),
        None => log(level, context, &message.to_string()),
    }
}

macro_rules! level_macros {
    ($dollar:tt $($name:ident $level:ident $what:literal;)+) => { $(
        #[doc = $what]
        #[macro_export]
        macro_rules! $name {
            ($dollar($dollar arg:tt)+) => {
                $crate::log::write($crate::log::Level::$level, ::core::module_path!(), ::core::format_args!($dollar($dollar arg)+))
            };
        }
    )+ };
}

level_macros! { $
    trace Trace "Logs a step.";
    debug Debug "Logs for whoever looks for a fault.";
    info Info "Logs what happened.";
    warn Warn "Logs that something is off.";
    error Error "Logs that something failed.";
    critical Critical "Logs that somebody must act.";
}
