//! `cargo xtask guests`: every handler of this repository as a component in `guests/` of the target folder.
//!
//! Whether something must be rebuilt is cargo's decision; a file is only replaced when its content changed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::toolchain::{Choice, TARGET, Toolchain};
use crate::{languages, process, workspace};

const PROFILE: &str = "guest";

/// A component to build. The list is [`GUESTS`].
struct Guest {
    /// The name of the file, without `.wasm`.
    name: &'static str,
    package: &'static str,
    features: &'static [&'static str],
    /// Features that need a libc with sockets.
    socket_features: &'static [&'static str],
}

const GUESTS: [Guest; 12] = [
    Guest::plain("itinerary", "itinerary"),
    Guest::plain("order-fulfilment", "order-fulfilment"),
    Guest::plain("order-process", "order-process"),
    Guest::plain("conformance-rust", "conformance"),
    Guest::plain("conformance-sink", "conformance-sink"),
    Guest { socket_features: &["network"], ..Guest::plain("probe", "test-guests") },
    Guest { features: &["lacks-key"], ..Guest::plain("probe-lacks-key", "test-guests") },
    Guest { features: &["unordered"], ..Guest::plain("probe-unordered", "test-guests") },
    Guest::plain("counter-1", "test-versions"),
    Guest::plain("wit-0.1.0", "wit-0-1-0"),
    Guest { features: &["v2"], ..Guest::plain("counter-2", "test-versions") },
    Guest { features: &["broken"], ..Guest::plain("counter-3", "test-versions") },
];

impl Guest {
    const fn plain(name: &'static str, package: &'static str) -> Self {
        Self { name, package, features: &[], socket_features: &[] }
    }

    /// As `--features` takes them when several packages are built.
    fn features(&self, toolchain: &Toolchain) -> Vec<String> {
        let sockets = if toolchain.has_sockets() { self.socket_features } else { &[] };
        self.features.iter().chain(sockets).map(|feature| format!("{}/{feature}", self.package)).collect()
    }
}

/// Builds all, in every language, and answers with the folder that holds them.
pub(crate) fn build(choice: Choice) -> Result<PathBuf> {
    let folder = build_rust(choice)?;
    languages::build(&folder)?;
    Ok(folder)
}

/// Builds those in Rust: nothing but Rust is needed.
pub(crate) fn build_rust(choice: Choice) -> Result<PathBuf> {
    let target_dir = workspace::target_dir()?;
    let folder = target_dir.join("guests");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;

    let toolchain = Toolchain::prepare(choice)?;
    let build_dir = toolchain.target_dir(&target_dir);
    process::step("guests", &format!("building with {}", toolchain.name()));

    if !toolchain.has_sockets() {
        process::step("guests", "its libc has no sockets, so `probe` does not try the network");
    }

    // Variants one by one: they are of a package that is built already, and its file is the last build's.
    let (together, apart): (Vec<&Guest>, Vec<&Guest>) = GUESTS.iter().partition(|guest| guest.features.is_empty());
    let groups = std::iter::once(together).chain(apart.into_iter().map(|guest| vec![guest]));
    for group in groups {
        let mut cargo = toolchain.cargo_build();
        cargo.args(["--quiet", "--profile", PROFILE, "--target-dir"]).arg(&build_dir);
        for guest in &group {
            cargo.args(["--package", guest.package]);
            for feature in guest.features(&toolchain) {
                cargo.args(["--features", &feature]);
            }
        }
        process::run(&mut cargo)?;
        for guest in group {
            let built = guest.package.replace('-', "_") + ".wasm";
            let built = build_dir.join(TARGET).join(PROFILE).join(built);
            place(&built, &folder.join(format!("{}.wasm", guest.name)))?;
        }
    }
    Ok(folder)
}

/// Builds one project outside of this workspace: its library is called `handler`.
pub(crate) fn component(project: &Path, output: &Path, choice: Choice) -> Result<()> {
    let project = fs::canonicalize(project).with_context(|| format!("cannot find {}", project.display()))?;
    let toolchain = Toolchain::prepare(choice)?;
    // One folder for all projects: they share their dependencies.
    let build_dir = toolchain.target_dir(&workspace::target_dir()?.join("projects"));
    let mut cargo = toolchain.cargo_build();
    cargo.args(["--quiet", "--release", "--target-dir"]).arg(&build_dir).current_dir(&project);
    process::run(&mut cargo)?;
    let output = std::path::absolute(output)?;
    place(&build_dir.join(TARGET).join("release/handler.wasm"), &output)
}

/// Copies if the content differs, in one step: a host may be watching the file.
fn place(built: &Path, to: &Path) -> Result<()> {
    let content = fs::read(built).with_context(|| format!("cannot read {}", built.display()))?;
    let unchanged = fs::read(to).is_ok_and(|present| present == content);
    if !unchanged {
        let partial = to.with_extension(format!("{}.partial", std::process::id()));
        fs::write(&partial, &content).with_context(|| format!("cannot write {}", partial.display()))?;
        fs::rename(&partial, to).with_context(|| format!("cannot replace {}", to.display()))?;
    }
    let kilobytes = content.len().div_ceil(1000);
    process::step(
        "guests",
        &format!("{} {kilobytes} kB, {}", to.display(), if unchanged { "unchanged" } else { "new" }),
    );
    Ok(())
}
