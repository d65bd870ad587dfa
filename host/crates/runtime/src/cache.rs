//! Compiled code on disk, so that a component is compiled once and not at every start.
//!
//! A file is used only if all of this holds: its name has the hash of the component and of the engine (version, options,
//! processor), it begins with our mark, and its checksum is right. Any other is deleted and the component compiled again.
//! The checksum tells damage, not malice: what keeps others from planting code is the directory, which is ours alone.

use std::fs::{self, DirBuilder};
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{AtFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::SetupError;

const MARK: &[u8] = b"keyrail compiled 1\n";
const CHECKSUM_BYTES: usize = 32;
const SUFFIX: &str = "compiled";
const UNFINISHED: &str = "new";
/// A file that is still unfinished after this was left by a host that was killed.
const LEFT_BEHIND: Duration = Duration::from_hours(1);
/// Files that are kept, and their bytes; the ones that were not used for longest go first.
const FILES_MAX: usize = 64;
const FILES_MAX_BYTES: u64 = 2 << 30;
/// The file mode bits of group and others.
const OTHERS: u32 = 0o077;

/// A directory of compiled components.
#[derive(Debug)]
pub(crate) struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// Opens the directory, making it where it is missing. One that cannot be used is done without; one that others may write
    /// to, or look into, is refused.
    pub(crate) fn open(dir: &Path) -> Result<Option<Self>, SetupError> {
        let refused = |why: String| SetupError::CacheDir { path: dir.into(), why };
        let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
        let metadata = match made.and_then(|()| fs::metadata(dir)) {
            Ok(metadata) => metadata,
            Err(error) => {
                tracing::warn!("compiled code is not kept: {} cannot be used: {error}", dir.display());
                return Ok(None);
            }
        };
        let own = rustix::process::geteuid().as_raw();
        if metadata.uid() != own {
            return Err(refused(format!(
                "it belongs to user {}, and this is user {own}; give another",
                metadata.uid()
            )));
        }
        if metadata.mode() & OTHERS != 0 {
            return Err(refused("others may use it; run chmod 700 on it, or give another".into()));
        }
        Ok(Some(Self { dir: dir.into() }))
    }

    /// The directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    fn path(&self, engine: &Engine, content_hash: &str) -> PathBuf {
        let mut hasher = StableHasher(Sha256::new());
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let engine_hash = hex(&hasher.0.finalize()[..8]);
        self.dir.join(format!("{content_hash}-{engine_hash}.{SUFFIX}"))
    }

    /// The component from its compiled code, if there is a good file.
    pub(crate) fn load(&self, engine: &Engine, content_hash: &str) -> Option<Component> {
        let path = self.path(engine, content_hash);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!("compiled code in {} cannot be read: {error}", path.display());
                return None;
            }
        };
        let loaded = unwrap(&bytes).ok_or_else(|| "it is damaged, or no compiled code of ours".to_owned());
        match loaded.and_then(|code| deserialize(engine, code).map_err(|error| format!("{error:#}"))) {
            Ok(component) => {
                mark_as_used(&path);
                Some(component)
            }
            Err(why) => {
                tracing::warn!("compiled code in {} is dropped and made again: {why}", path.display());
                remove(&path);
                None
            }
        }
    }

    /// Keeps compiled code. Without success the component runs all the same, so the failure is only logged.
    pub(crate) fn store(&self, engine: &Engine, content_hash: &str, code: &[u8]) {
        let path = self.path(engine, content_hash);
        if let Err(error) = self.write(&path, code) {
            tracing::warn!("compiled code is not kept in {}: {error}", path.display());
        }
        self.prune(FILES_MAX, FILES_MAX_BYTES);
    }

    /// Written aside and renamed: a reader sees a whole file or none.
    fn write(&self, path: &Path, code: &[u8]) -> io::Result<()> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let aside = self.dir.join(format!("{}-{number}.{UNFINISHED}", std::process::id()));
        let write = || {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
            file.write_all(MARK)?;
            file.write_all(&Sha256::digest(code))?;
            file.write_all(code)?;
            fs::rename(&aside, path)
        };
        write().inspect_err(|_| remove(&aside))
    }

    /// Removes what was not used for longest, and what hosts left that were killed while they wrote.
    fn prune(&self, files_max: usize, max_bytes: u64) {
        let Ok(entries) = fs::read_dir(&self.dir) else { return };
        let mut files: Vec<_> = entries
            .flatten()
            .filter_map(|entry| {
                let metadata = entry.metadata().ok()?;
                Some((metadata.modified().ok()?, metadata.len(), entry.path()))
            })
            .collect();
        files.sort();
        files.reverse();
        let newest = files.first().map(|(used, ..)| *used);
        let (mut count, mut bytes) = (0, 0);
        for (used, size, path) in files {
            let is = |suffix: &str| path.extension().is_some_and(|extension| extension == suffix);
            if is(SUFFIX) {
                count += 1;
                bytes += size;
                if count > 1 && (count > files_max || bytes > max_bytes) {
                    remove(&path);
                }
            } else if is(UNFINISHED)
                && newest.is_some_and(|newest| newest.duration_since(used).is_ok_and(|age| age > LEFT_BEHIND))
            {
                remove(&path);
            }
        }
    }
}

/// The time of the last change is the time of the last use.
fn mark_as_used(path: &Path) {
    let now = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
    };
    // Without it the file only goes a little earlier.
    let _ = rustix::fs::utimensat(rustix::fs::CWD, path, &now, AtFlags::empty());
}

/// The code of a file, if mark and checksum are right.
fn unwrap(bytes: &[u8]) -> Option<&[u8]> {
    let (checksum, code) = bytes.strip_prefix(MARK)?.split_at_checked(CHECKSUM_BYTES)?;
    (Sha256::digest(code).as_slice() == checksum).then_some(code)
}

/// The one place where unsafe code is needed: wasmtime trusts compiled code as the process trusts its own.
#[allow(unsafe_code)]
pub(crate) fn deserialize(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: `code` is what wasmtime gave. Either `store` alone wrote it, as a file with our mark in a directory that no other
    // user may write to (`open`), and the checksum shows that it is unchanged since; or this program itself wrote it as a child
    // process into a file without a name (`compile/child.rs`). Wasmtime itself refuses code of another engine.
    unsafe { Component::deserialize(engine, code) }
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!("{} cannot be removed: {error}", path.display());
    }
}

/// Bytes in lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a String never fails
        text
    })
}

/// `Hash` wants a `Hasher`; the standard one may change with a compiler.
struct StableHasher(Sha256);

impl Hasher for StableHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest: [u8; 32] = self.0.clone().finalize().into();
        u64::from_be_bytes(std::array::from_fn(|index| digest[index]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache { dir: folder.path().into() };
        let path = |name: &str| folder.path().join(name);
        let age = |name: &str, seconds: i64| {
            fs::write(path(name), [0; 100]).unwrap();
            let time = Timespec { tv_sec: 1_000_000 + seconds, tv_nsec: 0 };
            let times = Timestamps { last_access: time, last_modification: time };
            rustix::fs::utimensat(rustix::fs::CWD, path(name), &times, AtFlags::empty()).unwrap();
        };
        for (name, seconds) in
            [("a.compiled", 0), ("b.compiled", 10), ("c.compiled", 20), ("1-0.new", 10), ("other", 0)]
        {
            age(name, seconds);
        }
        mark_as_used(&path("a.compiled")); // decades later
        age("d.compiled", 30);
        cache.prune(3, u64::MAX);
        let left = |name: &str| path(name).exists();
        assert!(left("a.compiled") && !left("b.compiled") && left("c.compiled") && left("d.compiled"));
        assert!(!left("1-0.new") && left("other"), "what is unfinished for long goes, what is not ours stays");
        cache.prune(3, 150);
        assert!(left("a.compiled") && !left("c.compiled") && !left("d.compiled"), "by bytes, and the last one stays");
    }
}
