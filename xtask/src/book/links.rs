//! Whether every link, image and anchor of the built pages leads somewhere. Links to other hosts are not followed: whether
//! those answer says nothing about a change here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result};

/// What was looked at, and a line for each link that leads nowhere.
pub(crate) struct Checked {
    pub(crate) pages: usize,
    pub(crate) links: usize,
    pub(crate) broken: Vec<String>,
}

/// A page's anchors, and where it leads.
struct Page {
    ids: BTreeSet<String>,
    targets: Vec<String>,
}

pub(crate) fn check(book: &Path) -> Result<Checked> {
    let mut pages = BTreeMap::new();
    read(book, Path::new(""), &mut pages)?;
    let mut checked = Checked { pages: pages.len(), links: 0, broken: vec![] };
    for (path, page) in &pages {
        for target in page.targets.iter().filter(|target| is_here(target)) {
            checked.links += 1;
            if let Err(why) = follow(book, &pages, path, target) {
                checked.broken.push(format!("{}: {target} {why}", path.display()));
            }
        }
    }
    Ok(checked)
}

fn read(book: &Path, folder: &Path, pages: &mut BTreeMap<PathBuf, Page>) -> Result<()> {
    let at = book.join(folder);
    for entry in fs::read_dir(&at).with_context(|| format!("cannot read {}", at.display()))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            read(book, &path, pages)?;
        // The page for a wrong address is served from anywhere: its links begin at the site's root, which is not known here.
        } else if path.extension().is_some_and(|extension| extension == "html") && path != Path::new("404.html") {
            let html = fs::read_to_string(book.join(&path))?;
            let targets = [values(&html, "href"), values(&html, "src")].concat();
            pages.insert(path, Page { ids: values(&html, "id").into_iter().collect(), targets });
        }
    }
    Ok(())
}

/// The values of an attribute, as mdBook writes it. Text cannot be taken for one: there `"` is `&quot;` or stands in no tag
/// that begins with the name and `="`.
fn values(html: &str, name: &str) -> Vec<String> {
    let mark = format!(" {name}=\"");
    let value = |rest: &str| rest.split('"').next().unwrap_or_default().replace("&amp;", "&");
    html.split(&mark).skip(1).map(value).collect()
}

/// Whether it names something of the book: no scheme, and not another host.
fn is_here(target: &str) -> bool {
    let scheme = target.split(['/', '#', '?']).next().unwrap_or_default();
    !scheme.contains(':') && !target.starts_with("//")
}

fn follow(book: &Path, pages: &BTreeMap<PathBuf, Page>, from: &Path, target: &str) -> Result<(), String> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let to = if file.is_empty() { from.to_path_buf() } else { resolve(from, file)? };
    if !book.join(&to).is_file() {
        return Err("is no file of the book".into());
    }
    match pages.get(&to) {
        Some(page) if !anchor.is_empty() && !page.ids.contains(anchor) => Err("has no such anchor".into()),
        _ => Ok(()),
    }
}

/// A path within the book; one that leaves it would be broken wherever the book is published.
fn resolve(from: &Path, file: &str) -> Result<PathBuf, String> {
    let mut to = from.parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(file).components() {
        match part {
            Component::Normal(name) => to.push(name),
            Component::CurDir => {}
            Component::ParentDir if to.pop() => {}
            _ => return Err("leads out of the book".into()),
        }
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own for a test, with these files.
    fn book(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("keyrail-links-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        for (path, text) in files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn links_that_lead_somewhere_are_counted() {
        let index = r#"<a href="a/b.html#there">b</a> <a href="https://example.org/x">x</a> <img src="i.svg" alt="">"#;
        let folder = book(
            "good",
            &[
                ("index.html", index),
                ("a/b.html", r##"<h2 id="there"></h2><a href="../index.html"></a><a href="#there"></a>"##),
                ("i.svg", "<svg/>"),
            ],
        );
        let checked = check(&folder).unwrap();
        assert_eq!((checked.pages, checked.links), (2, 4));
        assert!(checked.broken.is_empty(), "{:?}", checked.broken);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn links_that_lead_nowhere_are_named() {
        let index =
            r##"<a href="gone.html"> <a href="b.html#gone"> <a href="../up.html"> <img src="gone.png"> <a href="#x">"##;
        let folder = book("bad", &[("index.html", index), ("b.html", "")]);
        let broken = check(&folder).unwrap().broken;
        assert_eq!(broken.len(), 5, "{broken:?}");
        assert!(broken[0].starts_with("index.html: gone.html"), "{broken:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}
