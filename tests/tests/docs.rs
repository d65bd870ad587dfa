//! The documentation: what it quotes, Keyrail says; what it has, the book shows. Links are checked by `cargo xtask book`.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

/// Where a text may go on after a name or number that was put in: that long, and no further.
const GAP_MAX: usize = 120;

fn repository(path: &str) -> PathBuf {
    let tests = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
    Path::new(&tests).parent().unwrap().join(path)
}

fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, endings, found);
        } else if path.extension().is_some_and(|ending| endings.iter().any(|one| ending == *one)) {
            found.push(path);
        }
    }
}

/// All that a host says: its sources, with texts that go over several lines of source put together.
fn sources() -> String {
    let mut paths = vec![];
    for folder in ["host/src", "host/crates/broker/src", "host/crates/ordering/src", "host/crates/runtime/src"] {
        files(&repository(folder), &["rs", "lua"], &mut paths);
    }
    let mut all = String::new();
    for path in paths {
        let text = fs::read_to_string(path).unwrap();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            all.push_str(line);
            while all.ends_with('\\') {
                all.pop();
                all.push_str(lines.next().unwrap_or_default().trim_start());
            }
            all.push('\n');
        }
    }
    all.replace("\\\"", "\"")
}

/// Whether some text of the sources has these parts, one after the other.
fn is_said(sources: &str, quoted: &str) -> bool {
    let parts: Vec<&str> = quoted.split('…').map(str::trim).filter(|part| part.len() > 2).collect();
    let Some((first, rest)) = parts.split_first() else { return false };
    sources.match_indices(first).any(|(at, _)| {
        let mut end = at + first.len();
        rest.iter().all(|part| {
            let Some(next) = sources[end..].find(part).filter(|next| *next <= GAP_MAX) else { return false };
            end += next + part.len();
            true
        })
    })
}

/// What stands in backticks in the first column of the tables.
fn quoted(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |")).map(|(text, _)| text).collect()
}

#[test]
fn every_error_text_of_the_page_is_one_that_a_host_says() {
    let page = fs::read_to_string(repository("docs/operating/troubleshooting.md")).unwrap();
    let (sources, texts) = (sources(), quoted(&page));
    assert!(texts.len() > 80, "only {} texts were found: has the page another form now?", texts.len());
    let unknown: Vec<_> = texts.into_iter().filter(|text| !is_said(&sources, text)).collect();
    assert!(unknown.is_empty(), "nobody says so any more: {unknown:#?}");
}

#[test]
fn a_text_that_nobody_says_is_noticed() {
    let sources = "\"the broker does not answer: {0}\"\n\"nothing {name} else\"";
    assert!(is_said(sources, "the broker does not answer: …"));
    assert!(is_said(sources, "nothing … else"));
    assert!(!is_said(sources, "nothing … other"));
    assert!(!is_said(sources, "the broker does not answer … else … broker"));
    assert!(!is_said(sources, "…"));
}

/// The sections of the configuration, as `keyrail::config::Config` has them.
fn sections() -> Vec<String> {
    let config = fs::read_to_string(repository("host/src/config.rs")).unwrap();
    let fields = config.split("pub struct Config {").nth(1).unwrap().split("\n}").next().unwrap();
    let sections = fields.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(": "));
    sections.filter(|(_, of)| of.ends_with("Config,")).map(|(name, _)| name.to_string()).collect()
}

/// `engine.lease_ttl_ms` and its like, in backticks. Not in blocks of code: there `client.publish` is a call.
fn settings_in(page: &str, sections: &[String]) -> Vec<String> {
    let prose: String = page.split("```").step_by(2).collect();
    let quoted = prose.split('`').skip(1).step_by(2);
    let words = quoted.flat_map(|text| text.split(|c: char| !(c.is_ascii_alphanumeric() || "._".contains(c))));
    let dotted = words.filter_map(|word| word.split_once('.').map(|(section, name)| (word, section, name)));
    // Not `redis.Redis` of a script, nor `runtime.NAME`.
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || "._".contains(c)) && !name.ends_with('.');
    let is_setting = |section: &str, name: &str| {
        sections.iter().any(|known| known == section) && !name.is_empty() && is_name(name) && !is_file_or_host(name)
    };
    dotted.filter(|(_, section, name)| is_setting(section, name)).map(|(word, ..)| word.to_string()).collect()
}

fn is_file_or_host(name: &str) -> bool {
    ["rs", "md", "py", "conf", "org", "com"].contains(&name.rsplit('.').next().unwrap_or_default())
}

#[test]
fn every_setting_that_a_page_names_is_there() {
    let mut paths =
        vec![repository("host/crates/runtime/src/limits.rs"), repository("host/crates/ordering/src/retry.rs")];
    files(&repository("host/src/config"), &["rs"], &mut paths);
    let fields: String = paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let (sections, mut pages, mut unknown, mut seen) = (sections(), vec![], vec![], 0);
    files(&repository("docs"), &["md"], &mut pages);
    for page in pages.into_iter().chain([repository("README.md")]) {
        for setting in settings_in(&fs::read_to_string(&page).unwrap(), &sections) {
            seen += 1;
            let name = setting.rsplit('.').next().unwrap();
            if !fields.contains(&format!(" {name}:")) {
                unknown.push(format!("{}: {setting}", page.display()));
            }
        }
    }
    assert!(seen > 50, "only {seen} settings were found");
    assert!(unknown.is_empty(), "no such settings: {unknown:#?}");
}

/// A page outside of the summary is in no book.
#[test]
fn the_book_has_every_page() {
    let docs = repository("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut pages = vec![];
    files(&docs, &["md"], &mut pages);
    let shown = |page: &PathBuf| page.strip_prefix(&docs).unwrap().to_str().unwrap().to_owned();
    let left_out: Vec<_> = pages
        .iter()
        .map(shown)
        .filter(|page| page != "SUMMARY.md" && !summary.contains(&format!("({page})")))
        .collect();
    assert!(left_out.is_empty(), "docs/SUMMARY.md lacks {left_out:?}");
}

/// Pages that the book does not show itself.
#[test]
fn links_of_the_readmes_lead_somewhere() {
    for page in ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"] {
        let text = fs::read_to_string(repository(page)).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            let here = !target.contains("://") && !file.is_empty();
            assert!(!here || repository(file).exists(), "{page}: {target} is not there");
        }
    }
}
