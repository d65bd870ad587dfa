//! Plain tables: columns as wide as their widest cell.

use std::io::{self, Write};

/// Writes a header and rows, numbers (columns named in `right`) to the right.
pub(crate) fn write(out: &mut impl Write, header: &[&str], right: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..header.len()).map(width).collect();
    let to_right: Vec<_> = header.iter().map(|name| right.contains(name)).collect();
    let mut line = |cells: &[String]| {
        let mut text = String::new();
        for (index, cell) in cells.iter().enumerate() {
            let pad = " ".repeat(widths[index].saturating_sub(cell.chars().count()));
            if index > 0 {
                text.push_str("  ");
            }
            if to_right[index] {
                text.push_str(&pad);
                text.push_str(cell);
            } else {
                text.push_str(cell);
                text.push_str(&pad);
            }
        }
        writeln!(out, "{}", text.trim_end())
    };
    line(&header.iter().map(|name| name.to_uppercase()).collect::<Vec<_>>())?;
    rows.iter().try_for_each(|row| line(row))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut out = vec![];
        let row = |cells: [&str; 3]| cells.map(String::from).to_vec();
        write(&mut out, &["key", "waiting", "note"], &["waiting"], &[row(["a", "12", ""]), row(["long-é", "3", "x"])])
            .unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "KEY     WAITING  NOTE\na            12\nlong-é        3  x\n");
    }
}
