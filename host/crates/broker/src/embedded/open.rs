//! Opening a store, and every way in which that fails, as one clear line.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::backends::InMemoryBackend;
use redb::{Database, DatabaseError, StorageError};
use tokio::sync::broadcast;

use super::deliveries::LiveDeliveries;
use super::records::counters::FORMAT;
use super::tables::{self, Memory};
use super::writer::Writer;
use super::{EmbeddedBroker, EmbeddedSettings, Shared, Store};
use crate::Error;

/// Why a store was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the file, or another broker of this one.
    #[error("{} is in use by another process; is a host running on it? the other commands reach it through its socket", .0.display())]
    InUse(PathBuf),
    /// Something else is in the file.
    #[error("{} is not a keyrail store; give the path of one, or of a file that does not exist yet, for example {}", .0.display(), beside(.0).display())]
    NotAStore(PathBuf),
    /// It was written by another release.
    #[error("{} was written in format {found} and this release reads format {FORMAT}; use the release that wrote it", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// The file is a folder.
    #[error("{} is a folder; give the path of a file in it, for example {}", .0.display(), .0.join("keyrail.db").display())]
    Folder(PathBuf),
    /// The file's folder is not there.
    #[error("{}", no_folder(.0))]
    NoFolder(PathBuf),
    /// A device, a pipe, or a file of the kernel's.
    #[error("{} cannot hold a store, since it is no ordinary file; give the path of a file on a local disk", .0.display())]
    NotAFile(PathBuf),
    /// The file may not be read and written.
    #[error("no permission to read and write {}; change its owner or mode, or give another path", .0.display())]
    Permission(PathBuf),
    /// The file is a store and damaged.
    #[error("{} is damaged: {why}; restore it from a copy", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        why: String,
    },
    /// Anything else.
    #[error("cannot open {}: {why}; give another path, or look closer with keyrail doctor", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What was said.
        why: String,
    },
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        Self::Unusable(error.to_string())
    }
}

/// A path that may be meant by whoever named another program's file.
fn beside(path: &Path) -> PathBuf {
    path.with_file_name("keyrail.db")
}

fn no_folder(path: &Path) -> String {
    let parent = path.parent().unwrap_or(Path::new("/"));
    let (path, folder) = (path.display(), parent.display());
    match parent.metadata() {
        Ok(found) if found.is_dir() => format!("{path} cannot be made in {folder}; give a path on a local disk"),
        Ok(_) => format!("{folder} is a file, so {path} cannot be in it; give another path"),
        Err(_) => format!("the folder of {path} does not exist; create it first: mkdir -p {folder}"),
    }
}

impl OpenError {
    pub(super) fn of_io(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Self::NotAStore(path),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Permission(path),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NoFolder(path),
            io::ErrorKind::IsADirectory => Self::Folder(path),
            io::ErrorKind::NotSeekable => Self::NotAFile(path),
            _ => Self::Other { path, why: error.to_string() },
        }
    }

    pub(super) fn of(path: &Path, error: DatabaseError) -> Self {
        let error = match error {
            DatabaseError::Storage(StorageError::Io(error)) => return Self::of_io(path, error),
            error => error,
        };
        let path = path.to_owned();
        match error {
            DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => Self::InUse(path),
            DatabaseError::Storage(StorageError::Corrupted(why)) => Self::Damaged { path, why },
            other => Self::Other { path, why: other.to_string() },
        }
    }
}

impl EmbeddedBroker {
    /// Opens the store in this file, or makes one if there is no such file. The leases of whoever had it before have lapsed.
    pub fn open(path: impl AsRef<Path>, settings: EmbeddedSettings) -> Result<Self, OpenError> {
        let path = path.as_ref();
        // Opening a pipe would wait for its other end.
        if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            return Err(OpenError::NotAFile(path.into()));
        }
        let database = Database::builder()
            .set_cache_size(settings.cache_max_bytes)
            .create(path)
            .map_err(|error| OpenError::of(path, error))?;
        Self::start(database, Store::File, settings, path, path.display().to_string())
    }

    /// A store in memory: it goes with the broker.
    pub fn memory(settings: EmbeddedSettings) -> Result<Self, OpenError> {
        let path = Path::new("memory");
        let database = Database::builder()
            .set_cache_size(settings.cache_max_bytes)
            .create_with_backend(InMemoryBackend::new())
            .map_err(|error| OpenError::of(path, error))?;
        Self::start(database, Store::Memory, settings, path, "memory".into())
    }

    pub(super) fn start(
        database: Database,
        store: Store,
        settings: EmbeddedSettings,
        path: &Path,
        address: String,
    ) -> Result<Self, OpenError> {
        let other = |error: &dyn std::fmt::Display| OpenError::Other { path: path.into(), why: error.to_string() };
        let found = tables::prepare(&database).map_err(|error| match error {
            Error::Unavailable(why) => OpenError::Damaged { path: path.into(), why },
            error => other(&error),
        })?;
        if found != FORMAT {
            return Err(OpenError::Format { path: path.into(), found });
        }
        let memory = Memory::load(&database).map_err(|error| other(&error))?;
        let (bells, _) = broadcast::channel(settings.bells_max);
        let shared = Arc::new(Shared {
            database,
            store,
            live: Arc::default(),
            members: Arc::default(),
            deliveries: LiveDeliveries::default(),
            bells,
            settings,
            address,
        });
        shared.disown_all().map_err(|error| other(&error))?;
        let writer = Writer::start(shared.clone(), memory).map_err(|error| other(&error))?;
        Ok(Self { shared, writer })
    }
}
