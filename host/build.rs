//! Puts the SDKs and templates of `guest-sdk/` into the binary, for `keyrail new`: what a project needs is there without a
//! network, and of the version of the host that it is made for.
//!
//! Of each language: `template*/` whole, what `sdk.files` lists (a path a line, folders end with `/`), and `wit/`.
//!
//! And says which version this is: a release names its commit.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What building and testing in a folder leaves there.
const LEFT_BEHIND: [&str; 8] =
    ["target", "node_modules", "__pycache__", ".venv", "build", ".pytest_cache", "Cargo.lock", ".git"];

fn main() {
    println!("cargo::rustc-env=KEYRAIL_VERSION={}", version());
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("..");
    let sdks = root.join("guest-sdk");
    // Of the path of each file in a scaffold's sources, where it is.
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    add(&mut files, "wit", &root.join("wit"));
    for sdk in entries(&sdks) {
        let language = name(&sdk);
        for folder in entries(&sdk).into_iter().filter(|path| path.is_dir() && name(path).starts_with("template")) {
            add(&mut files, &format!("{language}/{}", name(&folder)), &folder);
        }
        let list = sdk.join("sdk.files");
        println!("cargo::rerun-if-changed={}", list.display());
        for line in fs::read_to_string(&list).unwrap_or_default().lines().map(str::trim).filter(|line| !line.is_empty())
        {
            let path = sdk.join(line.trim_end_matches('/'));
            assert!(path.exists(), "{} names {line}, which is not there", list.display());
            add(&mut files, &format!("{language}/sdk/{}", line.trim_end_matches('/')), &path);
        }
    }
    let mut code = String::from("/// Path and content of each file.\nstatic FILES: &[(&str, &[u8])] = &[\n");
    for (path, source) in &files {
        let source = source.canonicalize().expect("it was listed");
        let source = source.to_str().expect("a path that cargo takes is text");
        writeln!(code, "    ({path:?}, include_bytes!({source:?})),").expect("a String takes all");
    }
    code.push_str("];\n");
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("scaffold.rs"), code).expect("the output folder can be written to");
}

/// `0.1.0 (3b21cd1a0f6e)`. The commit is what `KEYRAIL_COMMIT` says (an image is built without `.git`), or git. Only in releases:
/// a build while working would be made anew for every commit.
fn version() -> String {
    println!("cargo::rerun-if-env-changed=KEYRAIL_COMMIT");
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let release = variable("PROFILE").as_deref() == Some("release");
    let commit = variable("KEYRAIL_COMMIT").or_else(|| if release { commit() } else { None });
    let version = variable("CARGO_PKG_VERSION").expect("cargo sets it");
    commit.map_or_else(|| version.clone(), |commit| format!("{version} ({commit})"))
}

/// The commit that is checked out, with `-dirty` if files differ from it. None without git, or outside a checkout.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    // A line is added to it whenever another commit is checked out.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
}

/// Adds a file, or every file of a folder.
fn add(files: &mut BTreeMap<String, PathBuf>, at: &str, path: &Path) {
    if path.is_file() {
        // Files and not folders: builds of components leave things there, for which the host need not be built again.
        println!("cargo::rerun-if-changed={}", path.display());
        files.insert(at.into(), path.into());
        return;
    }
    for entry in entries(path).into_iter().filter(|entry| !LEFT_BEHIND.contains(&name(entry).as_str())) {
        add(files, &format!("{at}/{}", name(&entry)), &entry);
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).map(|listed| listed.flatten().map(|entry| entry.path()).collect());
    let mut entries: Vec<_> = listed.unwrap_or_default();
    entries.sort();
    entries
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
