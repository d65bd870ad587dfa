//! What a handler may use: the runtime's settings, with their names in the configuration.

use std::path::PathBuf;

use keyrail_runtime::Settings;
use serde::{Deserialize, Serialize};

use super::zeros;

/// What a handler may use. Each limit acts on one call of one handler unless it says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RuntimeConfig {
    /// Linear memory of an instance.
    pub memory_max_bytes: usize,
    /// Elements in the tables of an instance.
    pub table_elements_max: usize,
    /// Time that the guest itself computes.
    pub cpu_max_ms: u64,
    /// Time that a call may take in all, waiting for the host included.
    pub wall_max_ms: u64,
    /// Size of one state value.
    pub state_value_max_bytes: usize,
    /// Size of all state writes of a call.
    pub state_changes_max_bytes: usize,
    /// Size of one emitted event.
    pub emit_max_bytes: usize,
    /// Emitted events of a call.
    pub emits_max: usize,
    /// Log lines of a call; further ones are dropped and counted.
    pub log_lines_max: usize,
    /// Size of a log line; the rest is cut.
    pub log_line_max_bytes: usize,
    /// Stack of the guest.
    pub stack_max_bytes: usize,
    /// Instances that live at once, over all handlers.
    pub instances_max: u32,
    /// Calls after which an instance is replaced by a fresh one.
    pub instance_calls_max: u32,
    /// Time that a component may take to describe itself.
    pub describe_max_ms: u64,
    /// How often running guests are looked at.
    pub epoch_tick_ms: u64,
    /// Where compiled handlers are kept: a folder, `auto` for the user's cache folder, `off` for nowhere.
    pub cache_dir: String,
}

/// As the runtime has them, but that compiled handlers are kept.
impl Default for RuntimeConfig {
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            memory_max_bytes: settings.memory_max_bytes,
            table_elements_max: settings.table_elements_max,
            cpu_max_ms: settings.cpu_max_ms,
            wall_max_ms: settings.wall_max_ms,
            state_value_max_bytes: settings.state_value_max_bytes,
            state_changes_max_bytes: settings.state_changes_max_bytes,
            emit_max_bytes: settings.emit_max_bytes,
            emits_max: settings.emits_max,
            log_lines_max: settings.log_lines_max,
            log_line_max_bytes: settings.log_line_max_bytes,
            stack_max_bytes: settings.stack_max_bytes,
            instances_max: settings.instances_max,
            instance_calls_max: settings.instance_calls_max,
            describe_max_ms: settings.describe_max_ms,
            epoch_tick_ms: settings.epoch_tick_ms,
            cache_dir: "auto".into(),
        }
    }
}

impl RuntimeConfig {
    /// The folder for compiled handlers, if they are to be kept. `auto` needs a home folder, and does without otherwise.
    pub fn cache_folder(&self) -> Option<PathBuf> {
        match self.cache_dir.as_str() {
            "off" | "" => None,
            "auto" => {
                let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
                let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
                Some(base.join("keyrail").join("compiled"))
            }
            path => Some(path.into()),
        }
    }

    pub(super) fn problems(&self) -> Vec<String> {
        let values = [
            ("memory_max_bytes", self.memory_max_bytes as u64),
            ("cpu_max_ms", self.cpu_max_ms),
            ("wall_max_ms", self.wall_max_ms),
            ("stack_max_bytes", self.stack_max_bytes as u64),
            ("instances_max", u64::from(self.instances_max)),
            ("instance_calls_max", u64::from(self.instance_calls_max)),
            ("describe_max_ms", self.describe_max_ms),
            ("epoch_tick_ms", self.epoch_tick_ms),
        ];
        zeros("runtime", &values)
    }
}

impl From<&RuntimeConfig> for Settings {
    fn from(config: &RuntimeConfig) -> Self {
        Self {
            memory_max_bytes: config.memory_max_bytes,
            table_elements_max: config.table_elements_max,
            cpu_max_ms: config.cpu_max_ms,
            wall_max_ms: config.wall_max_ms,
            state_value_max_bytes: config.state_value_max_bytes,
            state_changes_max_bytes: config.state_changes_max_bytes,
            emit_max_bytes: config.emit_max_bytes,
            emits_max: config.emits_max,
            log_lines_max: config.log_lines_max,
            log_line_max_bytes: config.log_line_max_bytes,
            stack_max_bytes: config.stack_max_bytes,
            instances_max: config.instances_max,
            instance_calls_max: config.instance_calls_max,
            describe_max_ms: config.describe_max_ms,
            epoch_tick_ms: config.epoch_tick_ms,
            cache_dir: config.cache_folder(),
        }
    }
}
