//! The parent's side of compiling in a child process.
//!
//! Component and code travel through files without a name, in a folder that is ours alone: no other process can change what
//! this one is about to trust.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use super::work::Job;
use crate::Settings;
use crate::clock::monotonic;

/// What is read of the child's standard error.
const ERROR_MAX_BYTES: u64 = 2_048;
/// The most code that is taken.
const CODE_MAX_BYTES: u64 = 2 << 30;
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Why there is no code.
#[derive(Debug)]
pub(super) enum Failure {
    /// Because of the component.
    Component(String),
    /// Because no child can be had.
    Process(String),
}

/// Ends with the call, whatever happens to it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended already is no trouble.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The code of a component, or why there is none. Blocks, and must: the child ends with the *thread* that started it.
pub(super) fn compile(
    command: &[OsString],
    job: &Job,
    settings: &Settings,
    dir: Option<&Path>,
    bytes: &[u8],
) -> Result<Vec<u8>, Failure> {
    let no_process = |error: io::Error| Failure::Process(error.to_string());
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::Process("no program is named".into()));
    };
    let job = serde_json::to_string(job).map_err(|error| Failure::Process(error.to_string()))?;
    let temporary = std::env::temp_dir();
    // The folder of compiled code may have gone away.
    let nameless = || match dir.map(tempfile::tempfile_in) {
        Some(Ok(file)) => Ok(file),
        _ => tempfile::tempfile_in(&temporary),
    };
    let (mut component, mut code, mut said) =
        (nameless().map_err(no_process)?, nameless().map_err(no_process)?, nameless().map_err(no_process)?);
    component.write_all(bytes).and_then(|()| component.rewind()).map_err(no_process)?;

    let mut child = Command::new(program);
    child.args(arguments).arg(job).env_clear().current_dir("/");
    child.stdin(component).stdout(code.try_clone().map_err(no_process)?).stderr(said.try_clone().map_err(no_process)?);
    let mut child = Running(child.spawn().map_err(no_process)?);
    let limit = Duration::from_millis(settings.compile_max_ms);
    let Some(status) = wait(&mut child.0, limit).map_err(no_process)? else {
        return Err(Failure::Component(format!(
            "compiling took more than {} ms (runtime.compile_max_ms)",
            limit.as_millis()
        )));
    };
    if !status.success() {
        let said = read_all(&mut said, ERROR_MAX_BYTES).unwrap_or_default();
        return Err(Failure::Component(reason(status, &String::from_utf8_lossy(&said), settings)));
    }
    read_all(&mut code, CODE_MAX_BYTES).map_err(no_process)
}

/// None when it has not ended in time.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let deadline = monotonic() + limit;
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status)),
            None if monotonic() >= deadline => return Ok(None),
            None => std::thread::sleep(LOOK_EVERY),
        }
    }
}

fn reason(status: ExitStatus, said: &str, settings: &Settings) -> String {
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    match status.signal() {
        Some(signal) => format!(
            "the compiling process was ended by signal {signal}, perhaps for lack of memory (runtime.compile_memory_max_bytes is \
             {}): {said}",
            settings.compile_memory_max_bytes
        ),
        None if said.is_empty() => format!("the compiling process ended with {status}"),
        None => said,
    }
}

fn read_all(file: &mut File, max_bytes: u64) -> io::Result<Vec<u8>> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}
