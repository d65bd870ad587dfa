//! Components in other languages than Rust: the SDKs' own `build.sh`, as their users run it.
//!
//! A component is built again when a file of its SDK, of its project, or of the WIT has changed. The scripts get the tools
//! that they need by themselves, pinned, into a cache.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::{process, workspace};

const LANGUAGES: [&str; 4] = ["js", "python", "go", "c"];
/// The first build gets compilers over the network.
const BUILD_LIMIT: Duration = Duration::from_mins(15);
/// What builds leave behind in a project.
const LEFT_BEHIND: [&str; 8] =
    ["node_modules", "__pycache__", ".venv", "build", "dist", ".mypy_cache", ".pytest_cache", "target"];

/// Builds every component of the other languages into `folder`.
pub(crate) fn build(folder: &Path) -> Result<()> {
    for language in LANGUAGES {
        let sdk = workspace::root().join("guest-sdk").join(language);
        let example = workspace::root().join("examples").join(format!("itinerary-{language}"));
        for (project, name) in [(sdk.join("conformance"), "conformance"), (example, "itinerary")] {
            build_one(&sdk, &project, &folder.join(format!("{name}-{language}.wasm")))?;
        }
    }
    Ok(())
}

fn build_one(sdk: &Path, project: &Path, to: &Path) -> Result<()> {
    let mut hasher = DefaultHasher::new();
    for input in [sdk, project, &workspace::root().join("wit")] {
        hash_files(input, &mut hasher).with_context(|| format!("cannot read {}", input.display()))?;
    }
    let inputs = format!("{:016x}", hasher.finish());
    let stamp = to.with_extension("inputs");
    if to.exists() && fs::read_to_string(&stamp).is_ok_and(|before| before == inputs) {
        process::step("guests", &format!("{} unchanged", to.display()));
        return Ok(());
    }
    process::step("guests", &format!("building {}", project.display()));
    let mut command = Command::new("bash");
    command.arg(sdk.join("build.sh")).arg(project).arg(to).env("PYTHONDONTWRITEBYTECODE", "1");
    process::run_within(&mut command, BUILD_LIMIT)?;
    fs::write(&stamp, inputs).with_context(|| format!("cannot write {}", stamp.display()))
}

/// Names and contents, in order.
fn hash_files(folder: &Path, hasher: &mut DefaultHasher) -> std::io::Result<()> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if LEFT_BEHIND.contains(&name.as_str()) || path.extension().is_some_and(|extension| extension == "wasm") {
            continue;
        }
        name.hash(hasher);
        if path.is_dir() {
            hash_files(&path, hasher)?;
        } else if path.is_file() {
            fs::read(&path)?.hash(hasher);
        }
    }
    Ok(())
}
