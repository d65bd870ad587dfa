//! Programs that tests and benchmarks start for themselves: looked for, and installed where that is possible.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::process;

/// A program of Debian's.
struct Need {
    program: &'static str,
    package: &'static str,
    /// Which one it must be, for people.
    wanted: &'static str,
    /// What stands after the part of its version that is worth showing.
    shown_until: &'static str,
}

/// Makes sure that `redis-server` can be started.
pub(crate) fn redis(task: &str) -> Result<()> {
    let wanted = "Redis 7 or later";
    Need { program: "redis-server", package: "redis-server", wanted, shown_until: " sha" }.ensure(task)
}

/// Makes sure that `promtool` can be started, which checks the alert rules.
pub(crate) fn promtool(task: &str) -> Result<()> {
    Need { program: "promtool", package: "prometheus", wanted: "Prometheus", shown_until: "(" }.ensure(task)
}

impl Need {
    fn ensure(&self, task: &str) -> Result<()> {
        let Self { program, package, wanted, .. } = self;
        if let Some(version) = self.version() {
            process::step(task, &version);
            return Ok(());
        }
        process::step(task, &format!("{program} is missing: installing it with apt-get"));
        let apt = |args: &[&str]| {
            process::run(
                Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()),
            )
        };
        let installed = apt(&["update", "-qq"]).and_then(|()| apt(&["install", "-y", "-qq", package]));
        match (installed, self.version()) {
            (_, Some(version)) => process::step(task, &version),
            (Err(error), None) => {
                bail!("{program} could not be installed ({error}); install {wanted}, e.g. apt-get install {package}")
            }
            (Ok(()), None) => bail!("{program} is installed, yet cannot be started; is it on the PATH?"),
        }
        Ok(())
    }

    fn version(&self) -> Option<String> {
        let output = Command::new(self.program).arg("--version").stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let line = text.lines().next().unwrap_or_default();
        output.status.success().then(|| line.split(self.shown_until).next().unwrap_or_default().trim().to_string())
    }
}
