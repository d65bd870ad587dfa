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

use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::SetupError;

const MARK: &[u8] = b"keyrail compiled 1\n";
const CHECKSUM_BYTES: usize = 32;
const SUFFIX: &str = "compiled";
/// Files that are kept; the ones written first go first.
const FILES_MAX: usize = 64;
/// The file mode bits of group and others.
const OTHERS: u32 = 0o077;

/// A directory of compiled components.
#[derive(Debug)]
pub(crate) struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// Opens the directory, making it where it is missing. One that others may write to, or look into, is refused.
    pub(crate) fn open(dir: &Path) -> Result<Self, SetupError> {
        let refused = |why: String| SetupError::CacheDir { path: dir.into(), why };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|error| refused(error.to_string()))?;
        let metadata = fs::metadata(dir).map_err(|error| refused(error.to_string()))?;
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
        Ok(Self { dir: dir.into() })
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
            Ok(component) => Some(component),
            Err(why) => {
                tracing::warn!("compiled code in {} is dropped and made again: {why}", path.display());
                remove(&path);
                None
            }
        }
    }

    /// Keeps compiled code. Without success the component runs all the same, so the failure is only logged.
    pub(crate) fn store(&self, engine: &Engine, content_hash: &str, component: &Component) {
        let path = self.path(engine, content_hash);
        let written = component
            .serialize()
            .map_err(|error| format!("{error:#}"))
            .and_then(|code| self.write(&path, &code).map_err(|error| error.to_string()));
        if let Err(why) = written {
            tracing::warn!("compiled code is not kept in {}: {why}", path.display());
        }
        self.prune();
    }

    /// Written aside and renamed: a reader sees a whole file or none.
    fn write(&self, path: &Path, code: &[u8]) -> io::Result<()> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let aside = self.dir.join(format!("{}-{number}.new", std::process::id()));
        let write = || {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
            file.write_all(MARK)?;
            file.write_all(&Sha256::digest(code))?;
            file.write_all(code)?;
            fs::rename(&aside, path)
        };
        write().inspect_err(|_| remove(&aside))
    }

    fn prune(&self) {
        let Ok(entries) = fs::read_dir(&self.dir) else { return };
        let ours =
            entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == SUFFIX));
        let mut files: Vec<_> =
            ours.filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path))).collect();
        files.sort();
        let excess = files.len().saturating_sub(FILES_MAX);
        files[..excess].iter().for_each(|(_, path)| remove(path));
    }
}

/// The code of a file, if mark and checksum are right.
fn unwrap(bytes: &[u8]) -> Option<&[u8]> {
    let (checksum, code) = bytes.strip_prefix(MARK)?.split_at_checked(CHECKSUM_BYTES)?;
    (Sha256::digest(code).as_slice() == checksum).then_some(code)
}

/// The one place where unsafe code is needed: wasmtime trusts compiled code as the process trusts its own.
#[allow(unsafe_code)]
fn deserialize(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: `code` is what `Component::serialize` gave: `store` alone writes files with our mark into a directory that no
    // other user may write to (`open`), and the checksum shows that it is unchanged since. Wasmtime itself refuses code of
    // another engine.
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
