//! The limits of guests. Each has a unit in its name, acts, and has a test that shows it.

use std::path::PathBuf;

use crate::SetupError;

/// The largest guest stack that may be set: each call in flight holds one, and a host must survive its overflow.
const STACK_CEILING_BYTES: usize = 64 << 20;
const STACK_FLOOR_BYTES: usize = 64 << 10;
/// The address space of one 32-bit linear memory.
const MEMORY_CEILING_BYTES: usize = 4 << 30;
const MEMORY_FLOOR_BYTES: usize = 1 << 20;
const INSTANCES_CEILING: u32 = 10_000;

/// What a guest may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of linear memory of one instance, all its memories together.
    pub memory_max_bytes: usize,
    /// Elements of one table.
    pub table_elements_max: usize,
    /// CPU time of one call, in milliseconds. Waiting for the host does not count. It acts at the first tick after it.
    pub cpu_max_ms: u64,
    /// Time of one call by the wall clock, in milliseconds, waiting for the host included.
    pub wall_max_ms: u64,
    /// Bytes of one state value.
    pub state_value_max_bytes: usize,
    /// Bytes of names and values of all state changes of one call.
    pub state_changes_max_bytes: usize,
    /// Bytes of names, headers and data of one emit.
    pub emit_max_bytes: usize,
    /// Emits of one call.
    pub emits_max: usize,
    /// Lines that one call may log, standard output and standard error included. Further ones are dropped, with one line that
    /// says so.
    pub log_lines_max: usize,
    /// Bytes of one log line; the rest is cut off.
    pub log_line_max_bytes: usize,
    /// Bytes of stack of a guest.
    pub stack_max_bytes: usize,
    /// Instances that live at the same time.
    pub instances_max: u32,
    /// Calls of one instance, before a fresh one takes its place.
    pub instance_calls_max: u32,
    /// Time of instantiating and describing a component when it is loaded, in milliseconds.
    pub describe_max_ms: u64,
    /// How often a running guest is looked at, in milliseconds: it then yields, and its CPU time is counted.
    pub epoch_tick_ms: u64,
    /// Where compiled code is kept; none for nowhere.
    pub cache_dir: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            memory_max_bytes: 128 << 20,
            table_elements_max: 20_000,
            cpu_max_ms: 1_000,
            wall_max_ms: 10_000,
            state_value_max_bytes: 1 << 20,
            state_changes_max_bytes: 4 << 20,
            emit_max_bytes: 1 << 20,
            emits_max: 256,
            log_lines_max: 100,
            log_line_max_bytes: 4_096,
            stack_max_bytes: 1 << 20,
            instances_max: 1_000,
            instance_calls_max: 256,
            describe_max_ms: 5_000,
            epoch_tick_ms: 10,
            cache_dir: None,
        }
    }
}

impl Settings {
    /// Refuses what cannot work, and what would let a guest end the process.
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        let within = |name, value: u64, least: u64, most: u64| {
            if (least..=most).contains(&value) { Ok(()) } else { Err(SetupError::Setting { name, value, least, most }) }
        };
        within(
            "memory_max_bytes",
            self.memory_max_bytes as u64,
            MEMORY_FLOOR_BYTES as u64,
            MEMORY_CEILING_BYTES as u64,
        )?;
        within("table_elements_max", self.table_elements_max as u64, 1, 10_000_000)?;
        within("stack_max_bytes", self.stack_max_bytes as u64, STACK_FLOOR_BYTES as u64, STACK_CEILING_BYTES as u64)?;
        within("instances_max", self.instances_max.into(), 1, INSTANCES_CEILING.into())?;
        within("instance_calls_max", self.instance_calls_max.into(), 1, u32::MAX.into())?;
        within("cpu_max_ms", self.cpu_max_ms, 1, 86_400_000)?;
        within("wall_max_ms", self.wall_max_ms, 1, 86_400_000)?;
        within("describe_max_ms", self.describe_max_ms, 1, 86_400_000)?;
        within("epoch_tick_ms", self.epoch_tick_ms, 1, 1_000)
    }
}
