//! The limits of one handler: each has one name everywhere, a default of the operator's, and a ceiling.
//!
//! They stand in one list, at the end of this file. The name is that of the manifest (`[limits]`), of the configuration
//! (`runtime.NAME` is the default, `runtime.ceiling.NAME` the most that a manifest may wish for) and of the field here. What
//! holds for the whole engine, and so cannot differ between handlers, is in [`Settings`] alone: [`OPERATORS`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Settings;

/// Settings that a manifest cannot change, because they hold for the whole host.
pub(crate) const OPERATORS: [&str; 7] = [
    "stack_max_bytes",
    "instances_max",
    "describe_max_ms",
    "epoch_tick_ms",
    "compile_max_ms",
    "compile_memory_max_bytes",
    "cache_dir",
];

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $least:expr, $default:expr, $ceiling:expr;)*) => {
        /// The limits of one handler. The default is the ceiling that a host has unless its operator sets another.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct Limits {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $ceiling,)* }
            }
        }

        impl Limits {
            /// The names of all limits.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// What a handler gets that wishes for nothing.
            pub(crate) fn defaults(settings: &Settings) -> Self {
                Self { $($name: settings.$name,)* }
            }

            /// The most that a manifest may wish for: a default over its ceiling raises it.
            pub(crate) fn ceiling(settings: &Settings) -> Self {
                Self { $($name: settings.ceiling.$name.max(settings.$name),)* }
            }

            /// Each limit that is below its least value: its name, what it is, and the least.
            pub(crate) fn too_small(&self) -> Vec<(&'static str, u64, u64)> {
                let all = [$((stringify!($name), self.$name, $least)),*];
                all.into_iter().filter(|(_, value, least)| value < least).collect()
            }
        }

        /// What a manifest wishes for; the rest is the operator's default.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Wishes {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<u64>,)*
        }

        impl Wishes {
            /// Sets a limit by its name; false when there is none of this name.
            pub(crate) fn set(&mut self, name: &str, value: u64) -> bool {
                match name {
                    $(stringify!($name) => self.$name = Some(value),)*
                    _ => return false,
                }
                true
            }

            /// The limits of a handler with these wishes, or each wish that is not granted.
            pub(crate) fn limits(&self, settings: &Settings) -> Result<Limits, Vec<String>> {
                let ceiling = Limits::ceiling(settings);
                let mut limits = Limits::defaults(settings);
                let mut refused = Vec::new();
                $(if let Some(wish) = self.$name {
                    let (name, least) = (stringify!($name), $least);
                    if wish > ceiling.$name {
                        refused.push(over(name, wish, ceiling.$name));
                    } else if wish < least {
                        refused.push(format!("the manifest's limits.{name} = {wish} is less than {least}, the least"));
                    }
                    limits.$name = wish;
                })*
                if refused.is_empty() { Ok(limits) } else { Err(refused) }
            }
        }
    };
}

fn over(name: &str, wish: u64, ceiling: u64) -> String {
    format!(
        "the manifest's limits.{name} = {wish} is over this host's ceiling of {ceiling}; lower it, or have the operator raise \
         runtime.ceiling.{name}"
    )
}

/// Hands the list of all limits to a macro: `NAME: LEAST, DEFAULT, CEILING;` each, with its documentation. Whatever has a field
/// for each limit takes it from here.
#[macro_export]
macro_rules! with_limits {
    ($take:ident) => {
        $take! {
            /// Bytes of linear memory of one instance, all its memories together.
            memory_max_bytes: 1 << 20, 128 << 20, 1 << 30;
            /// Bytes of linear memory after which an instance is replaced by a fresh one when its call has ended.
            instance_memory_max_bytes: 1 << 16, 64 << 20, 1 << 30;
            /// Elements of one table.
            table_elements_max: 1, 20_000, 100_000;
            /// CPU time of one call, in milliseconds. Waiting for the host does not count. It acts at the first tick after it.
            cpu_max_ms: 1, 1_000, 30_000;
            /// Time of one call by the wall clock, in milliseconds, waiting for the host included.
            wall_max_ms: 1, 10_000, 50_000;
            /// Reads of committed state of one call.
            state_reads_max: 0, 1_000, 100_000;
            /// Bytes of one state value.
            state_value_max_bytes: 1, 1 << 20, 8 << 20;
            /// Bytes of names and values of all state changes of one call.
            state_changes_max_bytes: 1, 4 << 20, 32 << 20;
            /// Bytes of names, headers and data of one emit.
            emit_max_bytes: 1, 1 << 20, 8 << 20;
            /// Emits of one call.
            emits_max: 0, 256, 4_096;
            /// Lines that one call may log, standard output and standard error included. Further ones are dropped, with one line
            /// that says so.
            log_lines_max: 0, 100, 10_000;
            /// Bytes of one log line; the rest is cut off.
            log_line_max_bytes: 1, 4_096, 64 << 10;
            /// Lines that all instances of the handler on this host may log in a minute. Further ones are dropped, with one line
            /// that says so.
            log_lines_per_minute_max: 0, 60_000, 600_000;
            /// HTTP requests of one call.
            http_requests_max: 0, 100, 1_000;
            /// Bytes of the body of one HTTP response.
            http_response_max_bytes: 0, 8 << 20, 64 << 20;
            /// Time to reach a host over HTTP, in milliseconds: its name, connection and TLS.
            http_connect_max_ms: 1, 5_000, 30_000;
            /// Time until an HTTP response begins, and between two parts of its body, in milliseconds.
            http_wait_max_ms: 1, 10_000, 50_000;
            /// Instances of the handler that live on this host at the same time.
            handler_instances_max: 1, 10_000, 10_000;
            /// Calls of one instance, before a fresh one takes its place.
            instance_calls_max: 1, 256, 1_000_000;
        }
    };
}

with_limits!(limits);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_granted_up_to_the_ceiling() {
        let settings = Settings::default();
        let wishes = Wishes { cpu_max_ms: Some(30_000), ..Wishes::default() };
        let limits = wishes.limits(&settings).unwrap();
        assert_eq!((limits.cpu_max_ms, limits.wall_max_ms), (30_000, settings.wall_max_ms));
        let refused =
            Wishes { cpu_max_ms: Some(30_001), memory_max_bytes: Some(1), ..wishes }.limits(&settings).unwrap_err();
        assert_eq!(refused.len(), 2, "{refused:?}");
        assert!(refused[0].contains("limits.memory_max_bytes = 1 is less than 1048576"), "{refused:?}");
        assert!(refused[1].contains("limits.cpu_max_ms = 30001") && refused[1].contains("runtime.ceiling.cpu_max_ms"));
    }

    #[test]
    fn a_default_over_the_ceiling_raises_it() {
        let settings = Settings { cpu_max_ms: 90_000, ..Settings::default() };
        let wishes = Wishes { cpu_max_ms: Some(90_000), ..Wishes::default() };
        assert_eq!(wishes.limits(&settings).unwrap().cpu_max_ms, 90_000);
    }

    #[test]
    fn every_default_is_within_least_and_ceiling() {
        let settings = Settings::default();
        assert_eq!(Limits::ceiling(&settings), Limits::default());
        assert_eq!(Limits::defaults(&settings).too_small(), []);
    }
}
