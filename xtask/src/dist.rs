//! `cargo xtask dist`: a release. One program that needs nothing of the machine but the kernel, and an archive around it.
//!
//! The program is linked statically against glibc (docs/decisions/0009-static-glibc.md). Archives are the same bytes for the same
//! commit: sorted, without the builder's names and times.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{notices, process, workspace};

const PROFILE: &str = "dist";
/// Shells, and where their completions are looked for.
const SHELLS: [(&str, &str); 3] = [("bash", "keyrail.bash"), ("zsh", "_keyrail"), ("fish", "keyrail.fish")];
/// What goes in as it is.
const FILES: [&str; 5] = [
    "LICENSE",
    "CHANGELOG.md",
    "docs/reference/keyrail.schema.json",
    "deploy/systemd/keyrail.service",
    "deploy/systemd/keyrail.sysusers",
];

/// With a target that is named, these are not used for build scripts and macros, which cannot be static. The crate `getrandom`
/// would look for the kernel's call with `dlsym`, which finds nothing in a static program, and fall back to `/dev/urandom`,
/// which an empty root has not: so it is told to call it.
const FLAGS: &str = r#"-C target-feature=+crt-static --cfg getrandom_backend="linux_getrandom""#;

/// Only the program, put where `to` says.
pub(crate) fn binary(to: &Path) -> Result<()> {
    let built = build()?;
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(&built, to).with_context(|| format!("cannot write {}", to.display()))?;
    process::step("dist", &format!("made {}", to.display()));
    Ok(())
}

/// The archive, in the target folder's `dist-archives/`.
pub(crate) fn archive() -> Result<()> {
    let program = build()?;
    let said = process::output(Command::new(&program).arg("--version"))?;
    let version = env!("CARGO_PKG_VERSION");
    let out = workspace::target_dir()?.join("dist-archives");
    let name = format!("keyrail-{version}-{}-linux", std::env::consts::ARCH);
    let folder = out.join(&name);
    // What an earlier run left.
    let _ = fs::remove_dir_all(&folder);
    for inner in ["bin", "man", "completions"] {
        fs::create_dir_all(folder.join(inner))?;
    }
    fs::copy(&program, folder.join("bin/keyrail"))?;
    process::run(Command::new(&program).arg("man").arg(folder.join("man")))?;
    for (shell, file) in SHELLS {
        let script = process::output(Command::new(&program).args(["completions", shell]))?;
        fs::write(folder.join("completions").join(file), script + "\n")?;
    }
    for file in FILES {
        let from = workspace::root().join(file);
        let to = folder.join(from.file_name().context("every entry is a file")?);
        fs::copy(&from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    notices::write(&folder, &target()?)?;
    let archive = pack(&out, &name)?;
    process::step("dist", &format!("{said}: made {}", archive.display()));
    Ok(())
}

fn build() -> Result<PathBuf> {
    let target = target()?;
    if !target.ends_with("-linux-gnu") {
        bail!("releases are built on Linux with glibc, and this is {target}");
    }
    process::step("dist", &format!("building a static keyrail for {target} (many minutes the first time)"));
    let flags = format!("CARGO_TARGET_{}_RUSTFLAGS", target.replace('-', "_").to_uppercase());
    let mut cargo = workspace::cargo();
    cargo.args([
        "build",
        "--locked",
        "--package",
        "keyrail",
        "--bin",
        "keyrail",
        "--profile",
        PROFILE,
        "--target",
        &target,
    ]);
    process::run(cargo.env(flags, FLAGS).env_remove("RUSTFLAGS"))?;
    let program = workspace::target_dir()?.join(&target).join(PROFILE).join("keyrail");
    is_static(&program)?;
    Ok(program)
}

/// An interpreter in its headers would mean libraries that have to be there where it runs.
fn is_static(program: &Path) -> Result<()> {
    const INTERPRETER: u32 = 3;
    let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let kinds = elf_segments(&bytes).with_context(|| format!("{} is no ELF file of 64 bits", program.display()))?;
    if kinds.contains(&INTERPRETER) {
        bail!("{} is not static", program.display());
    }
    Ok(())
}

/// The kinds of the program headers.
fn elf_segments(bytes: &[u8]) -> Option<Vec<u32>> {
    let at = |offset: usize, length: usize| bytes.get(offset..offset.checked_add(length)?);
    let u16_at = |offset| Some(u16::from_le_bytes(at(offset, 2)?.try_into().ok()?));
    if at(0, 6)? != [0x7f, b'E', b'L', b'F', 2, 1] {
        return None;
    }
    let table = usize::try_from(u64::from_le_bytes(at(32, 8)?.try_into().ok()?)).ok()?;
    let (size, count) = (usize::from(u16_at(54)?), usize::from(u16_at(56)?));
    let kind = |index: usize| Some(u32::from_le_bytes(at(table + index * size, 4)?.try_into().ok()?));
    (0..count).map(kind).collect()
}

fn target() -> Result<String> {
    let about = process::output(workspace::rustc().arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

fn pack(out: &Path, name: &str) -> Result<PathBuf> {
    let archive = format!("{name}.tar.gz");
    let time = workspace::commit_time_s()?;
    let mut tar = Command::new("tar");
    tar.current_dir(out).args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mode=u+rw,go=rX",
        "--format=gnu",
    ]);
    process::run(tar.arg(format!("--mtime=@{time}")).args(["--use-compress-program=gzip -9n", "-cf", &archive, name]))?;
    let sum = process::output(Command::new("sha256sum").arg(&archive).current_dir(out))?;
    fs::write(out.join(format!("{archive}.sha256")), sum + "\n")?;
    Ok(out.join(archive))
}

#[cfg(test)]
mod tests {
    use super::elf_segments;

    #[test]
    fn this_test_has_segments_and_rubbish_has_none() {
        let own = std::fs::read(std::env::current_exe().unwrap_or_default()).unwrap_or_default();
        assert!(elf_segments(&own).is_some_and(|kinds| kinds.contains(&3)));
        assert_eq!(elf_segments(b"#!/bin/sh\n"), None);
        assert_eq!(elf_segments(&own[..40]), None);
    }
}
