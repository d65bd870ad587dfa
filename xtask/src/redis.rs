//! The Redis server that tests and benchmarks start for themselves.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::process;

/// Makes sure that `redis-server` can be started, installing it where that is possible.
pub(crate) fn ensure(task: &str) -> Result<()> {
    if let Some(version) = version() {
        process::step(task, &version);
        return Ok(());
    }
    process::step(task, "redis-server is missing: installing it with apt-get");
    let apt = |args: &[&str]| {
        process::run(Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()))
    };
    let installed = apt(&["update", "-qq"]).and_then(|()| apt(&["install", "-y", "-qq", "redis-server"]));
    match (installed, version()) {
        (_, Some(version)) => process::step(task, &version),
        (Err(error), None) => {
            bail!(
                "redis-server could not be installed ({error}); install Redis 7 or later, e.g. apt-get install redis-server"
            )
        }
        (Ok(()), None) => bail!("redis-server is installed, yet cannot be started; is it on the PATH?"),
    }
    Ok(())
}

fn version() -> Option<String> {
    let output = Command::new("redis-server").arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.split(" sha").next().unwrap_or_default().to_string())
}
