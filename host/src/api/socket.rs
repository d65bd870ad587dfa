//! The socket file: made for its owner only, in one step, over what a killed host left; removed at an orderly end.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

use super::server::ServeError;

const MODE_OWNER_ONLY: u32 = 0o600;

/// Removes its file when dropped.
#[derive(Debug)]
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody may have removed it already; a host that starts replaces it anyway.
        let _ = fs::remove_file(&self.0);
    }
}

/// Listens at `path`. A socket that nobody listens on is replaced; a living one, or another kind of file, is not.
pub(super) async fn listen(path: &Path) -> Result<(UnixListener, SocketFile), ServeError> {
    let failed = |error: io::Error| ServeError::Socket { path: path.into(), error };
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Err(ServeError::NotASocket(path.into())),
        Ok(_) if UnixStream::connect(path).await.is_ok() => return Err(ServeError::InUse(path.into())),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    // Bound under another name and renamed: nobody sees it before its mode is set, and a dead one is replaced at once.
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(format!(".{}", std::process::id()));
    let fresh = PathBuf::from(fresh);
    let _ = fs::remove_file(&fresh);
    let listener = UnixListener::bind(&fresh).map_err(failed)?;
    let fresh_file = SocketFile(fresh);
    fs::set_permissions(&fresh_file.0, fs::Permissions::from_mode(MODE_OWNER_ONLY)).map_err(failed)?;
    fs::rename(&fresh_file.0, path).map_err(failed)?;
    Ok((listener, SocketFile(path.into())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn a_dead_socket_is_replaced_and_a_living_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.sock");
        let (listener, file) = listen(&path).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE_OWNER_ONLY);
        assert!(matches!(listen(&path).await, Err(ServeError::InUse(_))));
        drop(listener);
        let (_listener, second) = listen(&path).await.unwrap();
        drop(second);
        assert!(!path.exists());
        drop(file);
        fs::write(&path, "data").unwrap();
        assert!(matches!(listen(&path).await, Err(ServeError::NotASocket(_))));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
