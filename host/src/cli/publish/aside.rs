//! The file that bad lines are written to, as they were, so that they can be mended and published.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use keyrail::service::{LineText, RawLine};

use super::super::failure::{Usage, cannot_write};

pub(super) struct Aside {
    path: PathBuf,
    file: BufWriter<File>,
    lines: u64,
}

impl Aside {
    /// A new file. One that has something in it is not overwritten: these may be lines that nobody mended yet.
    pub(super) fn create(path: PathBuf) -> Result<Self> {
        if fs::metadata(&path).is_ok_and(|found| found.len() > 0) {
            return Err(Usage(format!(
                "{} is there already and not empty; move it, or give another file",
                path.display()
            ))
            .into());
        }
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.map_err(cannot_write(&path))?;
        Ok(Self { path, file: BufWriter::new(file), lines: 0 })
    }

    /// Adds a line as it was read. One that is too long was not kept.
    pub(super) fn add(&mut self, line: &RawLine) -> Result<()> {
        let LineText::Whole(text) = &line.text else { return Ok(()) };
        let written = self.file.write_all(text).and_then(|()| self.file.write_all(b"\n"));
        written.map_err(cannot_write(&self.path))?;
        self.lines += 1;
        Ok(())
    }

    /// Makes sure that everything is in the file, and removes it if that is nothing.
    pub(super) fn finish(mut self) -> Result<()> {
        self.file.flush().map_err(cannot_write(&self.path))?;
        if self.lines == 0 {
            let _ = fs::remove_file(&self.path);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use bytes::Bytes;

    #[test]
    fn lines_are_kept_as_they_were_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bad.jsonl");
        Aside::create(path.clone()).unwrap().finish().unwrap();
        assert!(!path.exists());
        let mut aside = Aside::create(path.clone()).unwrap();
        aside.add(&RawLine { number: 1, text: LineText::Whole(Bytes::from_static(b"\xff x")) }).unwrap();
        aside.add(&RawLine { number: 2, text: LineText::TooLong { bytes: 9 } }).unwrap();
        aside.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"\xff x\n");
        assert!(Aside::create(path).is_err());
    }
}
