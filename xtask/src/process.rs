//! Running other programs: an error names the command and what came of it.

use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// How often a program with a deadline is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Prints one step.
pub(crate) fn step(task: &str, what: &str) {
    eprintln!("{task}: {what}");
}

/// Runs to the end; its output is seen.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", line(command)))?;
    success(command, status)
}

/// Runs to the end, or stops the program after `limit`.
pub(crate) fn run_within(command: &mut Command, limit: Duration) -> Result<()> {
    let mut child = command.stdin(Stdio::null()).spawn().with_context(|| format!("cannot start {}", line(command)))?;
    let start = now();
    loop {
        if let Some(status) = child.try_wait()? {
            return success(command, status);
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            bail!("{} took more than {} s and was stopped", line(command), limit.as_secs());
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// What it prints, without the white space around.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {}", line(command)))?;
    success(command, output.status)?;
    let text = String::from_utf8(output.stdout).with_context(|| format!("{} answered no text", line(command)))?;
    Ok(text.trim().to_owned())
}

fn success(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("{} failed: {status}", line(command));
    }
    Ok(())
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[expect(clippy::disallowed_methods, reason = "a limit on a program started here; nothing is leased")]
fn now() -> Instant {
    Instant::now()
}
