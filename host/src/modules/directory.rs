//! A folder of components, for one machine: each `NAME.wasm` is a handler, `NAME.manifest.toml` beside it its manifest.
//!
//! Looked at again and again rather than listened to: links that are swapped, network disks and mounted volumes tell
//! nothing, and a look at a few files costs next to nothing. A file counts once it has stopped changing for one look; what
//! cannot be loaded then is reported once, and what served goes on. A file that is gone is reported, and what it held goes
//! on serving until the host ends.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tracing::warn;

use super::manifest;

/// What tells whether a file has changed, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sign {
    device: u64,
    inode: u64,
    size: u64,
    changed_s: i64,
    changed_ns: i64,
}

impl Sign {
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            changed_s: found.mtime(),
            changed_ns: found.mtime_nsec(),
        })
    }
}

/// A component and its manifest, as they were at one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    component: Sign,
    manifest: Option<Sign>,
}

/// The folder, as it was when it was last looked at.
pub(super) struct Directory {
    path: PathBuf,
    seen: BTreeMap<PathBuf, Seen>,
    /// What was given out, or found gone: not to be given out again as it is.
    known: BTreeMap<PathBuf, Option<Seen>>,
    is_readable: bool,
}

impl Directory {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, seen: BTreeMap::new(), known: BTreeMap::new(), is_readable: true }
    }

    /// Looks; answers with the components that are new or other than before, and have stopped changing.
    pub(super) fn look(&mut self) -> Vec<PathBuf> {
        let now = match list(&self.path) {
            Ok(now) => now,
            Err(error) => {
                if std::mem::take(&mut self.is_readable) {
                    warn!(folder = %self.path.display(), %error, "the folder of handlers cannot be read; what serves goes on");
                }
                return vec![];
            }
        };
        self.is_readable = true;
        for (path, known) in &mut self.known {
            if !now.contains_key(path) && known.take().is_some() {
                warn!(file = %path.display(), "the file is gone; what it held serves until this host ends");
            }
        }
        let settled = |path: &PathBuf, seen: &Seen| {
            self.seen.get(path) == Some(seen) && self.known.get(path) != Some(&Some(*seen))
        };
        let due: Vec<_> =
            now.iter().filter(|(path, seen)| settled(path, seen)).map(|(path, seen)| (path.clone(), *seen)).collect();
        self.seen = now;
        for (path, seen) in &due {
            self.known.insert(path.clone(), Some(*seen));
        }
        due.into_iter().map(|(path, _)| path).collect()
    }
}

fn list(folder: &Path) -> io::Result<BTreeMap<PathBuf, Seen>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if hidden || path.extension().is_none_or(|extension| extension != "wasm") {
            continue;
        }
        if let Some(component) = Sign::of(&path) {
            let manifest = Sign::of(&manifest::beside(&path));
            found.insert(path, Seen { component, manifest });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names(due: &[PathBuf]) -> Vec<String> {
        due.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn c058_a_file_counts_once_it_has_stopped_changing_and_once_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.wasm");
        let mut directory = Directory::new(folder.path().into());
        assert!(directory.look().is_empty());
        for size in 1..10 {
            fs::write(&file, vec![b'x'; size]).unwrap();
            assert!(directory.look().is_empty(), "still being written");
        }
        assert_eq!(names(&directory.look()), ["a.wasm"]);
        assert!(directory.look().is_empty(), "given out already");
        fs::write(folder.path().join("a.manifest.toml"), "clock = true").unwrap();
        assert!(directory.look().is_empty());
        assert_eq!(names(&directory.look()), ["a.wasm"], "its manifest is another");
    }

    #[test]
    fn c058_a_swapped_link_and_a_renamed_file_are_changes_and_a_deleted_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        for version in ["v1", "v2"] {
            fs::create_dir(folder.path().join(version)).unwrap();
            fs::write(folder.path().join(version).join("a.wasm"), version).unwrap();
        }
        let watched = folder.path().join("current");
        std::os::unix::fs::symlink(folder.path().join("v1"), &watched).unwrap();
        let mut directory = Directory::new(watched.clone());
        directory.look();
        assert_eq!(names(&directory.look()), ["a.wasm"]);
        let next = folder.path().join("next");
        std::os::unix::fs::symlink(folder.path().join("v2"), &next).unwrap();
        fs::rename(&next, &watched).unwrap();
        assert!(directory.look().is_empty());
        assert_eq!(names(&directory.look()), ["a.wasm"]);
        fs::remove_file(folder.path().join("v2/a.wasm")).unwrap();
        assert!(directory.look().is_empty() && directory.look().is_empty());
        fs::write(folder.path().join("v2/a.wasm"), "v2").unwrap();
        directory.look();
        assert_eq!(names(&directory.look()), ["a.wasm"], "it has come back");
        fs::remove_dir_all(folder.path().join("v2")).unwrap();
        assert!(directory.look().is_empty());
    }
}
