//! How guests are built for wasm32-wasip2: with rustup's standard library for that target, or, where it cannot be had,
//! with Debian's packages and a standard library built from source.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;

use crate::{process, workspace};

pub(crate) const TARGET: &str = "wasm32-wasip2";

/// `rustup target add` needs a server that closed networks do not reach, and may wait for it.
const RUSTUP_LIMIT: Duration = Duration::from_mins(2);
const APT_LIMIT: Duration = Duration::from_mins(15);
const PACKAGES: [&str; 5] = ["rustc-web", "cargo-web", "rust-web-src", "lld-22", "wasi-libc"];
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_WASM_LD: &str = "/usr/bin/wasm-ld-22";
const DEBIAN_WASI_LIBC: &str = "/usr/lib/wasm32-wasi";

/// Which one to use.
#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum Choice {
    /// rustup's if it is there or can be added, otherwise Debian's
    #[default]
    Auto,
    /// rustup's
    Rustup,
    /// Debian's
    Debian,
}

/// A way to build, ready for use.
pub(crate) enum Toolchain {
    Rustup,
    Debian {
        /// Links a component out of what `wasm-ld` links.
        component_ld: PathBuf,
    },
}

impl Toolchain {
    /// Finds one, and adds what is missing.
    pub(crate) fn prepare(choice: Choice) -> Result<Self> {
        match choice {
            Choice::Rustup => rustup(),
            Choice::Debian => debian(),
            Choice::Auto => rustup().or_else(|error| {
                process::step("guests", &format!("no standard library for {TARGET} from rustup: {error:#}"));
                debian()
            }),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Rustup => "the installed wasm32-wasip2 target",
            Self::Debian { .. } => "Debian's rustc, with a standard library from source",
        }
    }

    /// Debian's wasi-libc is older than WASI 0.2, and has none.
    pub(crate) fn has_sockets(&self) -> bool {
        matches!(self, Self::Rustup)
    }

    /// Where it builds: compilers do not share folders, so that neither throws the other's work away.
    pub(crate) fn target_dir(&self, target_dir: &Path) -> PathBuf {
        match self {
            Self::Rustup => target_dir.to_path_buf(),
            Self::Debian { .. } => target_dir.join("guests-debian"),
        }
    }

    /// `cargo build` for the target.
    pub(crate) fn cargo_build(&self) -> Command {
        let mut command = match self {
            Self::Rustup => workspace::cargo(),
            Self::Debian { component_ld } => {
                let mut command = Command::new(DEBIAN_CARGO);
                let flags = format!(
                    "-Clinker={} -Clink-arg=--wasm-ld-path={DEBIAN_WASM_LD} -Clink-self-contained=no -L{DEBIAN_WASI_LIBC}",
                    component_ld.display(),
                );
                command
                    .current_dir(workspace::root())
                    .env("PATH", path_with_first("/usr/bin"))
                    .env("RUSTC", DEBIAN_RUSTC)
                    // The standard library is built from source, which only a nightly may; this is how a release does it.
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS", flags);
                for variable in ["RUSTUP_TOOLCHAIN", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTFLAGS", "CARGO"] {
                    command.env_remove(variable);
                }
                command
            }
        };
        command.args(["build", "--target", TARGET]);
        if matches!(self, Self::Debian { .. }) {
            command.arg("-Zbuild-std=std,panic_abort");
        }
        command
    }
}

fn rustup() -> Result<Toolchain> {
    if !has_target()? {
        process::step("guests", &format!("adding {TARGET} with rustup"));
        let mut add = Command::new("rustup");
        add.current_dir(workspace::root()).args(["target", "add", TARGET]);
        process::run_within(&mut add, RUSTUP_LIMIT)?;
        if !has_target()? {
            bail!("rustup added {TARGET}, but not to the toolchain in use");
        }
    }
    Ok(Toolchain::Rustup)
}

/// Whether rustc has a standard library for the target.
fn has_target() -> Result<bool> {
    let folder = process::output(workspace::rustc().args(["--print", "target-libdir", "--target", TARGET]))?;
    Ok(fs::read_dir(folder)
        .is_ok_and(|files| files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("libstd-"))))
}

fn debian() -> Result<Toolchain> {
    if !missing_of_debian().is_empty() {
        install_packages()?;
        let missing = missing_of_debian();
        if !missing.is_empty() {
            bail!("{} were installed, but these are missing: {}", PACKAGES.join(" "), missing.join(", "));
        }
    }
    Ok(Toolchain::Debian { component_ld: component_ld()? })
}

fn missing_of_debian() -> Vec<String> {
    let sources = match process::output(Command::new(DEBIAN_RUSTC).args(["--print", "sysroot"])) {
        Ok(sysroot) => sysroot + "/lib/rustlib/src/rust/library/std/Cargo.toml",
        Err(_) => DEBIAN_RUSTC.to_owned(),
    };
    [DEBIAN_CARGO, DEBIAN_WASM_LD, DEBIAN_WASI_LIBC]
        .into_iter()
        .map(str::to_owned)
        .chain([sources])
        .filter(|path| !Path::new(path).exists())
        .collect()
}

fn install_packages() -> Result<()> {
    let packages = PACKAGES.join(" ");
    let advice = format!("run `rustup target add {TARGET}`, or on Debian 12 as root `apt-get install -y {packages}`");
    let apt_get = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(["-q", "-y", "--no-install-recommends"]).args(arguments);
        command
    };
    if !Path::new("/usr/bin/apt-get").exists() || !is_root() {
        bail!("guests need a Rust standard library for {TARGET}; {advice}");
    }
    process::step("guests", &format!("installing {packages} with apt-get"));
    // Package lists may be absent or old; that shows in the installation.
    if let Err(error) = process::run_within(&mut apt_get(&["update"]), APT_LIMIT) {
        process::step("guests", &format!("went on with the package lists as they are: {error:#}"));
    }
    let mut install = apt_get(&["install"]);
    install.args(PACKAGES);
    process::run_within(&mut install, APT_LIMIT).with_context(|| advice)
}

fn is_root() -> bool {
    process::output(Command::new("id").arg("-u")).is_ok_and(|id| id == "0")
}

/// rustup ships `wasm-component-ld` beside the host's linker; elsewhere it is a crate.
fn component_ld() -> Result<PathBuf> {
    let sysroot = process::output(workspace::rustc().args(["--print", "sysroot"]))?;
    let hosts = fs::read_dir(Path::new(&sysroot).join("lib/rustlib")).into_iter().flatten().flatten();
    let shipped = hosts.map(|host| host.path().join("bin/wasm-component-ld"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|folder| folder.join("wasm-component-ld"));
    let found = shipped.chain(in_path).find(|file| file.is_file());
    found.context("there is no wasm-component-ld; run `cargo install wasm-component-ld`")
}

fn path_with_first(folder: &str) -> OsString {
    let mut path = OsString::from(folder);
    if let Some(rest) = std::env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    path
}
