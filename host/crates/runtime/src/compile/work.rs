//! The child's side: a component on standard input, its code on standard output.

use std::io::{self, Read, Write};

use rustix::process::{Pid, Resource, Rlimit, Signal};
use serde::{Deserialize, Serialize};

use crate::engine::{self, Layout};
use crate::{COMPONENT_MAX_BYTES, Settings};

/// What it adds to its nice value: everything else of the machine goes first.
const NICENESS: i32 = 10;

/// What the child must know: as much of the settings as the code depends on, and its limits.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Job {
    layout: Layout,
    stack_max_bytes: u64,
    memory_max_bytes: u64,
    parent: i32,
}

impl Job {
    pub(super) fn new(layout: Layout, settings: &Settings) -> Self {
        Self {
            layout,
            stack_max_bytes: settings.stack_max_bytes,
            memory_max_bytes: settings.compile_memory_max_bytes,
            parent: rustix::process::getpid().as_raw_nonzero().get(),
        }
    }
}

/// Does the work of a compiling child process: reads a component from standard input and writes its code to standard output.
/// `job` is the argument that the parent added. The error is why the component does not compile, in one line.
///
/// Lowers the priority of the process, limits its memory, and has it end with its parent: nothing for another process.
pub fn compile_component(job: &str) -> Result<(), String> {
    let job: Job = serde_json::from_str(job).map_err(|error| format!("this is no job of a Keyrail host: {error}"))?;
    restrict(&job).map_err(|error| format!("the compiling process cannot be restricted: {error}"))?;
    let settings = Settings { stack_max_bytes: job.stack_max_bytes, ..Settings::default() };
    let engine = engine::for_compiling(&settings, job.layout).map_err(|error| super::one_line(&error))?;
    let mut bytes = Vec::new();
    io::stdin().lock().take(COMPONENT_MAX_BYTES).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let code = engine.precompile_component(&bytes).map_err(|error| super::one_line(&error))?;
    let mut out = io::stdout().lock();
    out.write_all(&code).and_then(|()| out.flush()).map_err(|error| error.to_string())
}

fn restrict(job: &Job) -> rustix::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have ended before that was set.
    if rustix::process::getppid().map(Pid::as_raw_nonzero).map(std::num::NonZero::get) != Some(job.parent) {
        return Err(rustix::io::Errno::SRCH);
    }
    rustix::process::nice(NICENESS)?;
    // Data and not address space: the latter is reserved in large pieces and never used.
    let limit = Some(job.memory_max_bytes);
    rustix::process::setrlimit(Resource::Data, Rlimit { current: limit, maximum: limit })?;
    let none = Some(0);
    rustix::process::setrlimit(Resource::Core, Rlimit { current: none, maximum: none })
}
