//! The trace of one run: its hash, and its lines if they are wanted.

use xxhash_rust::xxh3::Xxh3;

/// Lines as they come.
pub(super) struct Trace {
    hash: Xxh3,
    lines: Option<Vec<String>>,
    count: u64,
}

impl Trace {
    pub(super) fn new(keep: bool) -> Self {
        Self { hash: Xxh3::new(), lines: keep.then(Vec::new), count: 0 }
    }

    pub(super) fn add(&mut self, at_ms: u64, what: &dyn std::fmt::Display) {
        let line = format!("{at_ms:>7} {what}");
        self.hash.update(line.as_bytes());
        self.hash.update(b"\n");
        self.count += 1;
        if let Some(lines) = &mut self.lines {
            lines.push(line);
        }
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash.digest()
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn take_lines(&mut self) -> Vec<String> {
        self.lines.take().unwrap_or_default()
    }
}
