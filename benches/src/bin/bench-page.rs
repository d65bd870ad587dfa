//! Puts what benchmarks found into `docs/benchmarks.json`, and its tables into `docs/benchmarks.md`.
//!
//! `bench-page FOUND DOCS`: every table of the folder FOUND replaces the one of its name. In the page a table stands between
//! `<!-- table NAME -->` and `<!-- end -->`; one that the page does not have is an error.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value, json};

fn main() -> Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [found, docs] = arguments.as_slice() else { bail!("bench-page FOUND DOCS") };
    let (kept, page) = (docs.join("benchmarks.json"), docs.join("benchmarks.md"));
    let mut tables: BTreeMap<String, Value> = match fs::read_to_string(&kept) {
        Ok(text) => {
            serde_json::from_str(&text).with_context(|| format!("{} is not what this wrote", kept.display()))?
        }
        Err(_) => BTreeMap::new(),
    };
    let machine = machine();
    for file in fs::read_dir(found).with_context(|| format!("cannot read {}", found.display()))? {
        let mut table: Map<String, Value> = serde_json::from_slice(&fs::read(file?.path())?)?;
        let name =
            table.remove("name").and_then(|name| name.as_str().map(String::from)).context("a table has a name")?;
        table.insert("measured".into(), machine.clone());
        tables.insert(name, Value::Object(table));
    }
    let mut text = fs::read_to_string(&page)?;
    for (name, table) in &tables {
        text = replaced(&text, name, &rendered(table)?)?;
    }
    fs::write(&page, text)?;
    fs::write(&kept, serde_json::to_string_pretty(&tables)? + "\n")?;
    println!("wrote {} tables into {}", tables.len(), page.display());
    Ok(())
}

/// When and on what.
fn machine() -> Value {
    let told = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string()).unwrap_or_default()
    };
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let redis = told("redis-server", &["--version"]);
    let version = redis.split_whitespace().find_map(|word| word.strip_prefix("v=")).unwrap_or_default().to_string();
    json!({
        "on": told("date", &["-u", "+%Y-%m-%d"]),
        "cores": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "cpu": model.trim_start_matches([' ', '\t', ':']),
        "redis": version,
        "commit": told("git", &["describe", "--always", "--dirty"]),
    })
}

fn rendered(table: &Value) -> Result<String> {
    let list = |value: &Value| value.as_array().cloned().context("a table has columns and rows");
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let columns: Vec<String> = list(&table["columns"])?.iter().map(cell).collect();
    let mut text = line(&columns) + &line(&vec!["---".into(); columns.len()]);
    for row in list(&table["rows"])? {
        text += &line(&list(&row)?.iter().map(cell).collect::<Vec<_>>());
    }
    let measured = |name: &str| cell(&table["measured"][name]);
    Ok(format!(
        "{text}\n*{}, {} cores, Redis {}, commit {}.*\n",
        measured("on"),
        measured("cores"),
        measured("redis"),
        measured("commit")
    ))
}

/// Numbers in thousands.
fn cell(value: &Value) -> String {
    let Some(number) = value.as_i64().filter(|number| number.abs() >= 10_000) else {
        return value.as_str().map_or_else(|| value.to_string(), String::from);
    };
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) && digit.is_ascii_digit() {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn replaced(page: &str, name: &str, table: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- table {name} -->\n"), "<!-- end -->");
    let from = page.find(&begin).with_context(|| format!("the page has no place for {name}: {begin}"))? + begin.len();
    let to = from + page[from..].find(end).with_context(|| format!("the place of {name} has no {end}"))?;
    ensure!(!page[from..to].contains("<!-- table"), "the place of {name} has no {end}");
    Ok(format!("{}\n{table}\n{}", &page[..from], &page[to..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_the_place_of_the_earlier_one_and_of_nothing_else() {
        let page = "a\n<!-- table x -->\nold\n<!-- end -->\nb\n<!-- table y -->\n<!-- end -->\n";
        let once = replaced(page, "x", "new\n").unwrap_or_default();
        assert_eq!(once, "a\n<!-- table x -->\n\nnew\n\n<!-- end -->\nb\n<!-- table y -->\n<!-- end -->\n");
        assert!(replaced(page, "z", "new").is_err());
        assert!(replaced("<!-- table x -->\n<!-- table y -->\n<!-- end -->\n", "x", "new").is_err());
    }

    #[test]
    fn large_numbers_are_read_in_thousands() {
        assert_eq!(cell(&json!(1_234_567)), "1,234,567");
        assert_eq!(
            (cell(&json!(9_999)), cell(&json!(1.25)), cell(&json!("x"))),
            ("9999".into(), "1.25".into(), "x".into())
        );
    }
}
