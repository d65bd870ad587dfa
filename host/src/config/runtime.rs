//! What a handler may use: the runtime's settings, with their names in the configuration.

use std::path::PathBuf;

use keyrail_runtime::manifest::HostPattern;
use keyrail_runtime::{Compiler, Limits, Settings, with_limits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::zeros;

/// The command of the program that compiles a component as a child process. Not for people.
pub const COMPILE_COMMAND: &str = "compile-component";

/// A macro for the sake of the limits: `with_limits` has the one list of them.
macro_rules! runtime_config {
    ($($(#[$doc:meta])* $name:ident: $least:expr, $default:expr, $ceiling:expr;)*) => {
        /// What a handler may use. The limits are defaults: a handler's manifest may wish for another, up to `ceiling`. Each acts
        /// on one call of one handler unless it says otherwise.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct RuntimeConfig {
            $($(#[$doc])* pub $name: u64,)*
            /// The most that a manifest may wish for.
            pub ceiling: Limits,
            /// Stack of the guest.
            pub stack_max_bytes: u64,
            /// Instances that live at once, over all handlers. One of many parts, like Python's, counts as several.
            pub instances_max: u32,
            /// Time that a component may take to describe itself.
            pub describe_max_ms: u64,
            /// How often running guests are looked at.
            pub epoch_tick_ms: u64,
            /// Where compiled handlers are kept: a folder, `auto` for the user's cache folder, `off` for nowhere.
            pub cache_dir: String,
            /// Time that compiling one component may take.
            pub compile_max_ms: u64,
            /// Memory of the process that compiles a component.
            pub compile_memory_max_bytes: u64,
            /// The hosts that manifests may grant HTTP to, with commas between: `api.example.org, *.example.net`. `*` for all.
            pub http_hosts: String,
            /// Variables of the host's environment that manifests may name as secrets: those that start so. Empty for none.
            pub secrets_env_prefix: String,
            /// Folder whose files manifests may name as secrets. Empty for none.
            pub secrets_dir: String,
        }

        /// As the runtime has them, but that compiled handlers are kept.
        impl Default for RuntimeConfig {
            fn default() -> Self {
                let settings = Settings::default();
                Self {
                    $($name: settings.$name,)*
                    ceiling: settings.ceiling,
                    stack_max_bytes: settings.stack_max_bytes,
                    instances_max: settings.instances_max,
                    describe_max_ms: settings.describe_max_ms,
                    epoch_tick_ms: settings.epoch_tick_ms,
                    cache_dir: "auto".into(),
                    compile_max_ms: settings.compile_max_ms,
                    compile_memory_max_bytes: settings.compile_memory_max_bytes,
                    http_hosts: "*".into(),
                    secrets_env_prefix: settings.secrets_env_prefix,
                    secrets_dir: String::new(),
                }
            }
        }

        impl From<&RuntimeConfig> for Settings {
            fn from(config: &RuntimeConfig) -> Self {
                Self {
                    $($name: config.$name,)*
                    ceiling: config.ceiling,
                    stack_max_bytes: config.stack_max_bytes,
                    instances_max: config.instances_max,
                    describe_max_ms: config.describe_max_ms,
                    epoch_tick_ms: config.epoch_tick_ms,
                    cache_dir: config.cache_folder(),
                    compiler: own_compiler(),
                    compile_max_ms: config.compile_max_ms,
                    compile_memory_max_bytes: config.compile_memory_max_bytes,
                    // Checked in `problems`: a host that is none is never left out of the list.
                    http_hosts: config.hosts().unwrap_or_else(|_| Some(vec![])),
                    secrets_env_prefix: config.secrets_env_prefix.clone(),
                    secrets_dir: (!config.secrets_dir.is_empty()).then(|| PathBuf::from(&config.secrets_dir)),
                }
            }
        }
    };
}

with_limits!(runtime_config);

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
            ("memory_max_bytes", self.memory_max_bytes),
            ("cpu_max_ms", self.cpu_max_ms),
            ("wall_max_ms", self.wall_max_ms),
            ("stack_max_bytes", self.stack_max_bytes),
            ("instances_max", u64::from(self.instances_max)),
            ("instance_calls_max", self.instance_calls_max),
            ("describe_max_ms", self.describe_max_ms),
            ("epoch_tick_ms", self.epoch_tick_ms),
            ("compile_max_ms", self.compile_max_ms),
            ("compile_memory_max_bytes", self.compile_memory_max_bytes),
        ];
        let mut problems = zeros("runtime", &values);
        if let Err(why) = self.hosts() {
            problems.push(format!("runtime.http_hosts: {why}"));
        }
        problems
    }

    /// The hosts that manifests may grant; none for all.
    fn hosts(&self) -> Result<Option<Vec<HostPattern>>, String> {
        if self.http_hosts.trim() == "*" {
            return Ok(None);
        }
        let hosts = self.http_hosts.split(',').map(str::trim).filter(|host| !host.is_empty());
        hosts.map(HostPattern::parse).collect::<Result<_, _>>().map(Some)
    }
}

/// This very program, whatever lies under its name by now: an upgrade may have replaced the file.
fn own_compiler() -> Compiler {
    Compiler::Child { command: vec!["/proc/self/exe".into(), COMPILE_COMMAND.into()] }
}
