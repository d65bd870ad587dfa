//! What a benchmark found: told on the terminal, and kept as JSON for `docs/benchmarks.md`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// A table. Cells are texts and numbers; units stand in the columns.
pub struct Table {
    name: &'static str,
    columns: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
}

impl Table {
    /// An empty one. `name` is that of its file and of its place in the page.
    pub fn new(name: &'static str, columns: &[&'static str]) -> Self {
        println!("{}", columns.join(" | "));
        Self { name, columns: columns.to_vec(), rows: vec![] }
    }

    /// Adds a row, and tells it at once.
    pub fn row(&mut self, cells: Vec<Value>) {
        assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        let told: Vec<_> =
            cells.iter().map(|cell| cell.as_str().map_or_else(|| cell.to_string(), Into::into)).collect();
        println!("{}", told.join(" | "));
        self.rows.push(cells);
    }

    /// Writes it into the folder that `KEYRAIL_BENCH_OUT` names, if it names one.
    pub fn finish(self) -> Result<()> {
        let Some(folder) = std::env::var_os("KEYRAIL_BENCH_OUT").map(PathBuf::from) else { return Ok(()) };
        fs::create_dir_all(&folder)?;
        let path = folder.join(self.name).with_extension("json");
        let table = json!({ "name": self.name, "columns": self.columns, "rows": self.rows });
        fs::write(&path, serde_json::to_string_pretty(&table)? + "\n")
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

/// A number with as many digits as it is worth.
pub fn number(value: f64) -> Value {
    let rounded = match value.abs() {
        large if large >= 100.0 => value.round(),
        medium if medium >= 10.0 => (value * 10.0).round() / 10.0,
        _ => (value * 100.0).round() / 100.0,
    };
    if rounded.fract() == 0.0 { json!(rounded as i64) } else { json!(rounded) }
}

/// The middle one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// That which `share` of them do not exceed. They are sorted here.
pub fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() as f64 * share) as usize).min(values.len() - 1)]
}
