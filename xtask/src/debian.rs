//! Programs that tests and benchmarks start, from Debian's packages.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::process;

/// A program, and what it comes with.
pub(crate) struct Program {
    name: &'static str,
    package: &'static str,
    /// What does as well.
    or: &'static str,
}

/// The server that tests and benchmarks start for themselves.
pub(crate) const REDIS: Program =
    Program { name: "redis-server", package: "redis-server", or: "install Redis 7 or later" };

/// The browser that the dashboard is tested in.
pub(crate) const CHROMIUM: Program =
    Program { name: "chromium", package: "chromium", or: "install Chromium, and name its program in KEYRAIL_CHROMIUM" };

/// What alert rules are checked with.
pub(crate) const PROMTOOL: Program = Program { name: "promtool", package: "prometheus", or: "install Prometheus" };

impl Program {
    /// Makes sure that it can be started, installing it where that is possible.
    pub(crate) fn ensure(&self, task: &str) -> Result<()> {
        let Self { name, package, or } = self;
        if let Some(version) = self.version() {
            process::step(task, &version);
            return Ok(());
        }
        process::step(task, &format!("{name} is missing: installing it with apt-get"));
        let apt = |args: &[&str]| {
            process::run(
                Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()),
            )
        };
        let installed = apt(&["update", "-qq"]).and_then(|()| apt(&["install", "-y", "-qq", package]));
        match (installed, self.version()) {
            (_, Some(version)) => process::step(task, &version),
            (Err(error), None) => {
                bail!("{name} could not be installed ({error}); {or}, e.g. apt-get install {package}")
            }
            (Ok(()), None) => bail!("{name} is installed, yet cannot be started; is it on the PATH?"),
        }
        Ok(())
    }

    fn version(&self) -> Option<String> {
        let output = Command::new(self.name).arg("--version").stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output
            .status
            .success()
            .then(|| text.lines().next()?.split(" sha").next().map(|version| version.trim().to_string()))
            .flatten()
    }
}
