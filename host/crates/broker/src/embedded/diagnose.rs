//! A look at a store's file without changing it, for an operator who wants to know why a host does not start.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use redb::{DatabaseError, ReadOnlyDatabase, ReadableDatabase};
use rustix::fs::{access, major, minor, statfs, statvfs};

use super::open::OpenError;
use super::records::counters::{self, FORMAT, FORMAT_NAME};
use crate::{Check, CheckOutcome};

/// What every file of the store begins with, whatever its format.
const MAGIC: &[u8] = b"redb";
/// Less free space than this fails: a transaction may need as much.
const SPACE_MIN_BYTES: u64 = 64 << 20;
/// Less free space than this warns.
const SPACE_WARN_BYTES: u64 = 1 << 30;

/// Looks at the file of an embedded broker, and at where it is.
pub fn diagnose(path: impl AsRef<Path>) -> Vec<Check> {
    let path = path.as_ref();
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let (file, exists) = check_file(path, folder);
    let usable = file.outcome != CheckOutcome::Failed;
    let mut checks = vec![file];
    if usable && exists {
        checks.push(check_store(path));
        checks.push(check_holder(path));
    }
    if folder.is_dir() {
        checks.push(check_space(folder));
        checks.push(check_file_system(folder));
    }
    checks
}

fn passed(name: &'static str, says: String) -> Check {
    Check { name, outcome: CheckOutcome::Passed, says }
}

fn warned(name: &'static str, says: String) -> Check {
    Check { name, outcome: CheckOutcome::Warned, says }
}

fn failed(name: &'static str, says: String) -> Check {
    Check { name, outcome: CheckOutcome::Failed, says }
}

/// Whether the file is there, or can be made; and whether it is there.
fn check_file(path: &Path, folder: &Path) -> (Check, bool) {
    let name = "file";
    let error = match fs::metadata(path) {
        Ok(found) if found.is_dir() => OpenError::Folder(path.into()),
        Ok(found) if !found.is_file() => OpenError::NotAFile(path.into()),
        Ok(found) => match OpenOptions::new().read(true).write(true).open(path) {
            Ok(_) => return (passed(name, format!("{} has {} bytes", path.display(), found.len())), true),
            Err(error) => OpenError::of_io(path, error),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder.is_dir() => {
            let may_write = access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK);
            match may_write {
                Ok(()) => {
                    let says = format!("{} is not there yet; the first host makes it", path.display());
                    return (passed(name, says), false);
                }
                Err(_) => OpenError::Permission(path.into()),
            }
        }
        Err(error) => OpenError::of_io(path, error),
    };
    (failed(name, error.to_string()), false)
}

/// Whether it is a store of this release's format.
fn check_store(path: &Path) -> Check {
    let name = "store";
    let mut start = vec![];
    let read = File::open(path).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut start));
    match read {
        Err(error) => return failed(name, OpenError::of_io(path, error).to_string()),
        Ok(0) => return passed(name, "it is empty; the first host makes a store of it".into()),
        Ok(_) if start != MAGIC => return failed(name, OpenError::NotAStore(path.into()).to_string()),
        Ok(_) => {}
    }
    let database = match ReadOnlyDatabase::open(path) {
        Ok(database) => database,
        Err(DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch) => {
            return passed(name, "it is a store, and in use".into());
        }
        Err(DatabaseError::RepairAborted) => {
            return warned(
                name,
                "it was not closed, or is damaged; the next host repairs it, or says what is wrong".into(),
            );
        }
        Err(error) => return failed(name, OpenError::of(path, error).to_string()),
    };
    match format_of(&database) {
        Ok(Some(FORMAT)) => passed(name, format!("it is a store of format {FORMAT}")),
        Ok(Some(found)) => failed(name, OpenError::Format { path: path.into(), found }.to_string()),
        Ok(None) => failed(name, OpenError::NotAStore(path.into()).to_string()),
        Err(why) => failed(name, OpenError::Damaged { path: path.into(), why }.to_string()),
    }
}

/// None if it is a store of something else.
fn format_of(database: &ReadOnlyDatabase) -> Result<Option<u64>, String> {
    let text = |error: redb::Error| error.to_string();
    let txn = database.begin_read().map_err(|error| text(error.into()))?;
    let counters = match txn.open_table(counters::TABLE) {
        Ok(counters) => counters,
        Err(redb::TableError::TableDoesNotExist(_) | redb::TableError::TableTypeMismatch { .. }) => return Ok(None),
        Err(error) => return Err(text(error.into())),
    };
    let row = counters.get(FORMAT_NAME).map_err(|error| text(error.into()))?;
    Ok(row.map(|row| row.value()))
}

/// Which process has the file.
fn check_holder(path: &Path) -> Check {
    let name = "holder";
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let holder = fs::metadata(path).ok().and_then(|file| {
        let place = format!("{:02x}:{:02x}:{}", major(file.dev()), minor(file.dev()), file.ino());
        holder_of(&locks, &place)
    });
    let Some(pid) = holder else { return passed(name, "no process that can be seen from here has it".into()) };
    let command = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let command = command.trim();
    let command = if command.is_empty() { String::new() } else { format!(" ({command})") };
    passed(name, format!("process {pid}{command} has it; other commands reach it through its socket"))
}

/// The process that holds a lock on the file at this place (device and inode), as the kernel lists it.
fn holder_of(locks: &str, place: &str) -> Option<u32> {
    let of_line = |line: &str| {
        let words: Vec<_> = line.split_whitespace().filter(|word| *word != "->").collect();
        let [_, _, _, _, pid, at, ..] = words[..] else { return None };
        // Locks of an open file have no process; the kernel says -1.
        (at == place).then(|| pid.parse().ok()).flatten()
    };
    locks.lines().find_map(of_line)
}

fn check_space(folder: &Path) -> Check {
    let name = "free space";
    let free = match statvfs(folder) {
        Ok(found) => found.f_bavail.saturating_mul(found.f_frsize),
        Err(error) => return warned(name, format!("{} does not say: {error}", folder.display())),
    };
    let says = format!("{} MiB are free in {}", free >> 20, folder.display());
    match free {
        free if free < SPACE_MIN_BYTES => failed(name, format!("{says}; free at least {} MiB", SPACE_MIN_BYTES >> 20)),
        free if free < SPACE_WARN_BYTES => warned(name, format!("{says}; a full disk stops every partition")),
        _ => passed(name, says),
    }
}

fn check_file_system(folder: &Path) -> Check {
    let name = "file system";
    let kind = match statfs(folder) {
        Ok(found) => found.f_type as u64,
        Err(error) => return warned(name, format!("{} does not say: {error}", folder.display())),
    };
    match file_system(kind) {
        FileSystem::Local => passed(name, "it is local".into()),
        FileSystem::Memory => warned(name, "it is in memory, and gone with the machine; use a disk".into()),
        FileSystem::Remote(what) => warned(
            name,
            format!("it is {what}: locks and flushes may not hold what they promise there; use a local disk, or Redis"),
        ),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum FileSystem {
    Local,
    Memory,
    Remote(&'static str),
}

/// By the numbers of `statfs(2)`; one that is not known counts as local.
fn file_system(kind: u64) -> FileSystem {
    // The kernel's field is signed on some machines, so a large number arrives with its sign.
    match kind & 0xffff_ffff {
        0x6969 => FileSystem::Remote("NFS"),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => FileSystem::Remote("SMB"),
        0x0102_1997 => FileSystem::Remote("9p"),
        0x00c3_6400 => FileSystem::Remote("Ceph"),
        0x5346_414f => FileSystem::Remote("AFS"),
        0x0bd0_0bd0 => FileSystem::Remote("Lustre"),
        0x6573_5546 => FileSystem::Remote("FUSE, perhaps over a network"),
        0x0102_1994 | 0x8584_58f6 => FileSystem::Memory,
        _ => FileSystem::Local,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_by_the_place_of_the_file() {
        let locks = "1: FLOCK  ADVISORY  WRITE 27193 fe:00:10626185 0 EOF\n\
                     2: OFDLCK ADVISORY  WRITE -1 fe:00:77 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 12 fe:00:77 0 EOF\n";
        assert_eq!(holder_of(locks, "fe:00:10626185"), Some(27_193));
        assert_eq!(holder_of(locks, "fe:00:77"), Some(12));
        assert_eq!(holder_of(locks, "fe:00:7"), None);
        assert_eq!(holder_of("rubbish\n1: 2", "fe:00:7"), None);
    }

    #[test]
    fn network_file_systems_are_known_by_their_numbers() {
        assert_eq!(file_system(0x6969), FileSystem::Remote("NFS"));
        assert_eq!(file_system(0xffff_ffff_ff53_4d42), FileSystem::Remote("SMB"), "with its sign");
        assert_eq!(file_system(0xef53), FileSystem::Local, "ext4");
        assert_eq!(file_system(0x0102_1994), FileSystem::Memory);
    }
}
