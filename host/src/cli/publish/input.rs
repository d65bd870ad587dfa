//! Reading lines from a file or standard input, gzip or plain, on a thread of its own.
//!
//! Whether it is gzip is told by its first bytes. A file named `.gz` that is not gzip is refused: publishing its bytes as
//! lines would only tell that line 1 is bad.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use anyhow::{Context, Result};
use bytes::{Bytes, BytesMut};
use flate2::bufread::MultiGzDecoder;
use keyrail::service::{LineSplitter, RawLine};
use tokio::sync::{mpsc, oneshot};

use super::super::failure::{Refused, cannot_read};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Bytes read at once.
const CHUNK_BYTES: usize = 64 << 10;
/// What to do about a file that cannot be read.
const GIVE: &str = "give a file of JSON lines, plain or gzip, or - for standard input";
/// Chunks that wait for the publisher.
const CHUNKS_MAX: usize = 4;

/// Lines on their way.
pub(crate) struct Input {
    pub(crate) lines: mpsc::Receiver<Vec<RawLine>>,
    /// Resolves when reading has ended: with the line that reading failed in, if it did.
    pub(crate) ended: oneshot::Receiver<Option<ReadError>>,
    /// Bytes of the file read so far, before unpacking.
    pub(crate) bytes_read: Arc<AtomicU64>,
    /// Size of the file; none for standard input.
    pub(crate) bytes_total: Option<u64>,
}

/// Reading broke off.
#[derive(Debug, thiserror::Error)]
#[error("{name} cannot be read after line {line}: {error}")]
pub(crate) struct ReadError {
    name: String,
    line: u64,
    error: io::Error,
}

/// Where lines come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Stdin,
    File(PathBuf),
}

impl Source {
    /// A file, or standard input for `-` and nothing.
    pub(crate) fn new(path: Option<PathBuf>) -> Self {
        match path {
            Some(path) if path != Path::new("-") => Self::File(path),
            _ => Self::Stdin,
        }
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".into(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Refuses a file that cannot be what it seems, before anything else is done.
    pub(crate) fn check(&self) -> Result<()> {
        let Self::File(path) = self else { return Ok(()) };
        let cannot = cannot_read(path, GIVE);
        let mut file = File::open(path).map_err(&cannot)?;
        let metadata = file.metadata().map_err(&cannot)?;
        if metadata.is_dir() {
            return Err(Refused(format!("{} is a folder; give a file of JSON lines", path.display())).into());
        }
        // What is read from a pipe is gone from it.
        let named_gzip = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
        if metadata.is_file() && named_gzip {
            let mut begin = vec![];
            Read::by_ref(&mut file).take(GZIP_MAGIC.len() as u64).read_to_end(&mut begin).map_err(&cannot)?;
            if begin != GZIP_MAGIC {
                let what = if begin.is_empty() { "it is empty" } else { "its first bytes are not those of gzip" };
                let path = path.display();
                return Err(Refused(format!(
                    "{path} is not a gzip file: {what}; pack it with gzip, or rename it if it is plain JSON lines"
                ))
                .into());
            }
        }
        Ok(())
    }

    /// Opens it and starts reading.
    pub(crate) fn read(&self, line_max_bytes: usize) -> Result<Input> {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let (reader, bytes_total): (Box<dyn Read + Send>, _) = match self {
            Self::Stdin => (Box::new(io::stdin()), None),
            Self::File(path) => {
                let file = File::open(path).map_err(cannot_read(path, GIVE))?;
                let size = file.metadata().ok().filter(fs::Metadata::is_file).map(|metadata| metadata.len());
                (Box::new(file), size)
            }
        };
        let reader = Counting { reader, bytes: bytes_read.clone() };
        let (sender, lines) = mpsc::channel(CHUNKS_MAX);
        let (end, ended) = oneshot::channel();
        let name = self.name();
        thread::Builder::new()
            .name("input".into())
            .spawn(move || {
                let splitter = LineSplitter::new(1, line_max_bytes);
                let failed = read_lines(reader, splitter, &sender).err();
                let _ = end.send(failed.map(|(line, error)| ReadError { name, line, error }));
            })
            .context("cannot start a thread to read")?;
        Ok(Input { lines, ended, bytes_read, bytes_total })
    }
}

/// The bytes, unpacked if they are gzip. The first bytes tell: waits for them.
fn unpacked(reader: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let mut reader = BufReader::with_capacity(CHUNK_BYTES, reader);
    let is_gzip = reader.fill_buf()?.starts_with(&GZIP_MAGIC);
    Ok(if is_gzip { Box::new(MultiGzDecoder::new(reader)) } else { Box::new(reader) })
}

/// Reads to the end. When reading fails, whole lines before the failure have been handed on, and no half one.
fn read_lines(
    reader: impl Read + 'static,
    mut splitter: LineSplitter,
    lines: &mpsc::Sender<Vec<RawLine>>,
) -> Result<(), (u64, io::Error)> {
    let mut reader = unpacked(reader).map_err(|error| (0, error))?;
    loop {
        let mut chunk = BytesMut::zeroed(CHUNK_BYTES);
        let length = match reader.read(&mut chunk) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err((splitter.next_number() - 1, error)),
        };
        if length == 0 {
            break;
        }
        chunk.truncate(length);
        let chunk: Bytes = chunk.freeze();
        if lines.blocking_send(splitter.push(&chunk)).is_err() {
            // The publisher has stopped and says why.
            return Ok(());
        }
    }
    if let Some(line) = splitter.finish() {
        let _ = lines.blocking_send(vec![line]);
    }
    Ok(())
}

struct Counting<R> {
    reader: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(into)?;
        self.bytes.fetch_add(length as u64, Relaxed);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(vec![], Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    async fn read(name: &str, content: &[u8]) -> Result<(Vec<u64>, Option<String>)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let source = Source::File(path);
        source.check()?;
        let mut input = source.read(1_000)?;
        let mut numbers = vec![];
        while let Some(lines) = input.lines.recv().await {
            numbers.extend(lines.into_iter().map(|line| line.number));
        }
        Ok((numbers, input.ended.await.unwrap().map(|error| error.to_string())))
    }

    #[tokio::test]
    async fn gzip_is_told_by_its_bytes() {
        assert_eq!(read("a.jsonl", b"1\n2").await.unwrap().0, [1, 2]);
        assert_eq!(read("a.jsonl", &packed("1\n2\n")).await.unwrap().0, [1, 2]);
        assert_eq!(read("a.gz", &[packed("1\n"), packed("2\n3")].concat()).await.unwrap().0, [1, 2, 3]);
        assert_eq!(read("a.jsonl", b"").await.unwrap().0, [0; 0]);
        for content in [&b"{}\n"[..], b""] {
            let error = read("a.jsonl.gz", content).await.unwrap_err().to_string();
            assert!(error.contains("is not a gzip file"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_cut_gzip_gives_whole_lines_and_says_so() {
        let lines: Vec<_> = (0..20_000_u64).map(|n| format!("{{\"n\":{n},\"square\":{}}}\n", n * n)).collect();
        let text = lines.concat();
        let packed = packed(&text);
        let (numbers, error) = read("a.jsonl.gz", &packed[..packed.len() / 2]).await.unwrap();
        let last = *numbers.last().unwrap();
        assert!(last > 1_000 && last < 20_000, "{last}");
        assert!(error.unwrap().contains(&format!("cannot be read after line {last}")));
    }
}
