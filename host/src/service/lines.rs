//! Cutting a byte stream into lines, with bounded memory.
//!
//! Lines of one chunk share its bytes; only a line that runs over a chunk's end is copied. A line beyond the limit is
//! counted and dropped, never held.

use bytes::Bytes;

/// A line as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawLine {
    /// From 1, empty lines counted.
    pub number: u64,
    /// What stands on it.
    pub text: LineText,
}

/// What stands on a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineText {
    /// All of it, without the line break.
    Whole(Bytes),
    /// More than the limit.
    TooLong {
        /// How much.
        bytes: u64,
    },
}

/// Cuts chunks into lines.
#[derive(Debug)]
pub struct LineSplitter {
    number: u64,
    max_bytes: usize,
    partial: Vec<u8>,
    /// Bytes of the present line that were dropped since it is too long; 0 while it is not.
    dropped: u64,
}

impl LineSplitter {
    /// The first line gets this number.
    pub fn new(first_number: u64, max_bytes: usize) -> Self {
        Self { number: first_number, max_bytes, partial: vec![], dropped: 0 }
    }

    /// The lines that end within this chunk. Empty ones are counted and left out.
    pub fn push(&mut self, chunk: &Bytes) -> Vec<RawLine> {
        let mut lines = vec![];
        let mut rest = 0..chunk.len();
        while let Some(length) = chunk[rest.clone()].iter().position(|byte| *byte == b'\n') {
            let end = rest.start + length;
            let line = if self.partial.is_empty() && self.dropped == 0 && length <= self.max_bytes {
                LineText::Whole(chunk.slice(rest.start..end))
            } else {
                self.add(&chunk[rest.start..end]);
                self.take()
            };
            lines.extend(self.numbered(line));
            rest.start = end + 1;
        }
        self.add(&chunk[rest]);
        lines
    }

    /// The last line, if it has no line break.
    pub fn finish(&mut self) -> Option<RawLine> {
        let line = self.take();
        self.numbered(line)
    }

    /// The number of the line that has not ended yet.
    pub fn next_number(&self) -> u64 {
        self.number
    }

    fn add(&mut self, part: &[u8]) {
        if self.dropped > 0 || self.partial.len() + part.len() > self.max_bytes {
            self.dropped += (self.partial.len() + part.len()) as u64;
            self.partial = vec![];
        } else {
            self.partial.extend_from_slice(part);
        }
    }

    fn take(&mut self) -> LineText {
        match std::mem::take(&mut self.dropped) {
            0 => LineText::Whole(std::mem::take(&mut self.partial).into()),
            bytes => LineText::TooLong { bytes },
        }
    }

    fn numbered(&mut self, text: LineText) -> Option<RawLine> {
        let number = self.number;
        self.number += 1;
        match &text {
            LineText::Whole(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => None,
            _ => Some(RawLine { number, text }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&str], max_bytes: usize) -> Vec<String> {
        let mut splitter = LineSplitter::new(1, max_bytes);
        let mut lines: Vec<_> = chunks.iter().flat_map(|c| splitter.push(&Bytes::from((*c).to_string()))).collect();
        lines.extend(splitter.finish());
        let show = |line: RawLine| match line.text {
            LineText::Whole(bytes) => format!("{}={}", line.number, String::from_utf8_lossy(&bytes)),
            LineText::TooLong { bytes } => format!("{}>{bytes}", line.number),
        };
        lines.into_iter().map(show).collect()
    }

    #[test]
    fn lines_do_not_depend_on_chunks() {
        let text = "a\n\nbc\r\n \nlast";
        let expected = ["1=a", "3=bc\r", "5=last"];
        assert_eq!(split(&[text], 100), expected);
        for at in 0..=text.len() {
            let (left, right) = text.split_at(at);
            assert_eq!(split(&[left, right], 100), expected, "{at}");
        }
        let single: Vec<_> = text.split("").collect();
        assert_eq!(split(&single, 100), expected);
    }

    #[test]
    fn a_line_beyond_the_limit_is_counted_not_held() {
        for chunks in [&["1234\n12345\n6"][..], &["1234\n123", "45\n6"], &["1234\n12", "3", "4", "5\n6"]] {
            assert_eq!(split(chunks, 4), ["1=1234", "2>5", "3=6"]);
        }
        assert_eq!(split(&["123456789"], 4), ["1>9"]);
        assert_eq!(split(&[""], 4), [""; 0]);
    }
}
