//! What the operator sets: defaults and ceilings of the limits of handlers, and what holds for the whole host.

use std::path::PathBuf;

use crate::limits::Limits;
use crate::manifest::HostPattern;
use crate::{Compiler, SetupError};

/// The largest guest stack that may be set: each call in flight holds one, and a host must survive its overflow.
const STACK_CEILING_BYTES: u64 = 64 << 20;
const STACK_FLOOR_BYTES: u64 = 64 << 10;
/// The address space of one 32-bit linear memory.
const MEMORY_CEILING_BYTES: u64 = 4 << 30;
const INSTANCES_CEILING: u64 = 10_000;
const DAY_MS: u64 = 86_400_000;

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $least:expr, $default:expr, $ceiling:expr;)*) => {
        /// What guests may use. The limits are what a handler gets whose manifest does not wish otherwise.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Settings {
            $($(#[$doc])* pub $name: u64,)*
            /// The most that a manifest may wish for.
            pub ceiling: Limits,
            /// Bytes of stack of a guest.
            pub stack_max_bytes: u64,
            /// Instances that live at the same time, over all handlers. An instance of many parts counts as more than one.
            pub instances_max: u32,
            /// Time of instantiating and describing a component when it is loaded, in milliseconds.
            pub describe_max_ms: u64,
            /// How often a running guest is looked at, in milliseconds: it then yields, and its CPU time is counted.
            pub epoch_tick_ms: u64,
            /// Where compiled code is kept; none for nowhere.
            pub cache_dir: Option<PathBuf>,
            /// Where large components are compiled.
            pub compiler: Compiler,
            /// Time of compiling one component in a child process, in milliseconds.
            pub compile_max_ms: u64,
            /// Bytes of memory of a compiling child process.
            pub compile_memory_max_bytes: u64,
            /// The hosts that a manifest may grant HTTP to; none for all.
            pub http_hosts: Option<Vec<HostPattern>>,
            /// The variables of the host's environment that a manifest may name as secrets: those that start so. Empty for none.
            pub secrets_env_prefix: String,
            /// The folder whose files a manifest may name as secrets; none for no file.
            pub secrets_dir: Option<PathBuf>,
        }

        impl Default for Settings {
            fn default() -> Self {
                Self {
                    $($name: $default,)*
                    ceiling: Limits::default(),
                    stack_max_bytes: 1 << 20,
                    instances_max: 1_000,
                    describe_max_ms: 5_000,
                    epoch_tick_ms: 10,
                    cache_dir: None,
                    compiler: Compiler::InProcess,
                    compile_max_ms: 900_000,
                    compile_memory_max_bytes: 2 << 30,
                    http_hosts: None,
                    secrets_env_prefix: "KEYRAIL_SECRET_".into(),
                    secrets_dir: None,
                }
            }
        }
    };
}

crate::with_limits!(settings);

impl Settings {
    /// Refuses what cannot work, and what would let a guest end the process.
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        let within = |name, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) { Ok(()) } else { Err(SetupError::Setting { name, value, least, most }) }
        };
        if let Some(&(name, value, least)) = Limits::defaults(self).too_small().first() {
            return Err(SetupError::Setting { name, value, least, most: u64::MAX });
        }
        let ceiling = Limits::ceiling(self);
        within("memory_max_bytes", ceiling.memory_max_bytes, 1, MEMORY_CEILING_BYTES)?;
        within("table_elements_max", ceiling.table_elements_max, 1, 10_000_000)?;
        within("cpu_max_ms", ceiling.cpu_max_ms, 1, DAY_MS)?;
        within("wall_max_ms", ceiling.wall_max_ms, 1, DAY_MS)?;
        within("stack_max_bytes", self.stack_max_bytes, STACK_FLOOR_BYTES, STACK_CEILING_BYTES)?;
        within("instances_max", self.instances_max.into(), 1, INSTANCES_CEILING)?;
        within("describe_max_ms", self.describe_max_ms, 1, DAY_MS)?;
        within("epoch_tick_ms", self.epoch_tick_ms, 1, 1_000)?;
        within("compile_max_ms", self.compile_max_ms, 1, DAY_MS)?;
        within("compile_memory_max_bytes", self.compile_memory_max_bytes, 64 << 20, 1 << 40)
    }
}
