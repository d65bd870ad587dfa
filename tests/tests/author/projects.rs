//! `keyrail new`: a project that builds, in every language.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use keyrail_tests::{repository, run_in};

use super::Author;

/// Those that have a template.
const LANGUAGES: [&str; 6] = ["rust", "ts", "js", "python", "go", "c"];

#[test]
fn a_new_project_builds_and_passes_its_test() {
    let author = Author::new();
    let made = author.keyrail(&["new", "order-counter", "--lang", "rust"]).ok();
    assert!(made.out.contains("cargo build --release --target wasm32-wasip2"), "{}", made.out);
    let project = author.path("order-counter");
    assert!(!files(&project).iter().any(|file| file.to_str().unwrap().contains(".tmpl")));

    // What the README says: its tests, ...
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("projects");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["test", "--target-dir"]).arg(&target).current_dir(&project);
    let tested = cargo.output().unwrap();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stderr));
    // ... and the component, by whichever toolchain is here.
    let component = project.join("handler.wasm");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["xtask", "component"]).args([&project, &component]).current_dir(repository(""));
    let built = cargo.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));

    let in_project = |args: &[&str]| run_in(&project, args, "");
    let component = component.to_str().unwrap();
    let checked = in_project(&["check", component]).ok();
    assert!(
        checked.out.contains("order-counter 0.1.0") && checked.out.contains("order/OrderPlaced"),
        "{}",
        checked.out
    );
    in_project(&["test", component, "events.jsonl", "--expect", "expected.jsonl"]).ok();
    let bad = r#"{"category":"order","type":"OrderPlaced","data":{"order_id":"o-1","amount_cents":-1}}"#;
    fs::write(project.join("bad.jsonl"), bad).unwrap();
    let ran = in_project(&["test", component, "bad.jsonl"]);
    assert!(ran.code == 3 && ran.out.contains("an order cannot cost less than nothing"), "{ran:#?}");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_language_has_a_whole_project_and_no_folder_is_overwritten() {
    let author = Author::new();
    for language in LANGUAGES {
        author.keyrail(&["new", "order-counter", "--lang", language, "--dir", language]).ok();
        let project = author.path(language);
        for file in ["README.md", "events.jsonl", "expected.jsonl", "keyrail/wit/keyrail.wit"] {
            assert!(project.join(file).exists(), "{language} has no {file}");
        }
        assert!(project.join("keyrail/sdk").is_dir(), "{language} has no SDK");
        // What is ours goes in as it is; the rest is filled in.
        let own = files(&project).into_iter().filter(|file| !file.starts_with(project.join("keyrail")));
        for file in own {
            let text = fs::read_to_string(&file).unwrap();
            assert!(!text.contains("{{name"), "{} is not filled in", file.display());
        }
        let again = author.keyrail(&["new", "order-counter", "--lang", language, "--dir", language]);
        again.refused(2, "is not empty");
    }
    author.write("file", "");
    author.keyrail(&["new", "a", "--lang", "rust", "--dir", "file"]).refused(2, "is a file");
    author.keyrail(&["new", "Order Counter", "--lang", "rust"]).refused(2, "cannot be the name");
    author.keyrail(&["new", "a", "--lang", "cobol"]).refused(2, "invalid value");
}
