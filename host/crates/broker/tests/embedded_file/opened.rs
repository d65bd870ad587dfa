//! A path that is a store, and all that is none.

use std::path::Path;

use keyrail_broker::CheckOutcome;
use keyrail_broker::embedded::{EmbeddedBroker, EmbeddedSettings, OpenError, diagnose};

use super::{open, place};

#[test]
fn opening_fails_with_one_clear_line() {
    let (folder, path) = place();
    let refused = |path: &Path| match EmbeddedBroker::open(path, EmbeddedSettings::default()) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error,
    };
    let one_line = |error: &OpenError, part: &str| {
        let text = error.to_string();
        assert!(text.contains(part) && !text.contains('\n'), "{text}");
    };

    let held = open(&path);
    let error = refused(&path);
    assert!(matches!(error, OpenError::InUse(_)));
    one_line(&error, "is in use by another process; is a host running on it?");
    drop(held);
    drop(open(&path));

    for garbage in [b"{\"category\":\"order\"}\n".to_vec(), vec![0; 1 << 20], b"x".to_vec()] {
        let other = folder.path().join("orders.jsonl");
        std::fs::write(&other, &garbage).unwrap();
        let error = refused(&other);
        assert!(matches!(error, OpenError::NotAStore(_)), "{error:?}");
        one_line(&error, "is not a keyrail store");
        one_line(&error, "keyrail.db");
        assert_eq!(std::fs::read(&other).unwrap(), garbage, "it is left as it was");
    }

    let cut = folder.path().join("cut.db");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&cut, &whole[..whole.len() / 3]).unwrap();
    one_line(&refused(&cut), "cut.db");

    let error = refused(folder.path());
    assert!(matches!(error, OpenError::Folder(_)), "{error:?}");
    let error = refused(&folder.path().join("nowhere/keyrail.db"));
    assert!(matches!(error, OpenError::NoFolder(_)), "{error:?}");
    one_line(&error, "create it first: mkdir -p");
    let error = refused(&path.join("keyrail.db"));
    assert!(matches!(error, OpenError::NoFolder(_)), "{error:?}");
    one_line(&error, "is a file, so");
    let error = refused(Path::new("/proc/keyrail.db"));
    one_line(&error, "/proc/keyrail.db");
    one_line(&error, "give");
    for no_file in ["/proc/version", "/dev/null"] {
        let error = refused(Path::new(no_file));
        assert!(matches!(error, OpenError::NotAFile(_) | OpenError::Permission(_)), "{error:?}");
        one_line(&error, "give");
    }

    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, b"").unwrap();
    drop(open(&empty));
}

#[test]
fn a_look_at_a_store_changes_nothing_and_says_what_it_is() {
    let (folder, path) = place();
    let outcome = |path: &Path, name: &str| {
        let check = diagnose(path).into_iter().find(|check| check.name == name);
        check.map(|check| (check.outcome, check.says))
    };
    let says = |path: &Path, name: &str, expected: CheckOutcome, part: &str| {
        let (found, text) = outcome(path, name).unwrap_or_else(|| panic!("{name} was not looked at"));
        assert!(found == expected && text.contains(part) && !text.contains('\n'), "{name}: {found:?} {text}");
    };
    says(&path, "file", CheckOutcome::Passed, "is not there yet");
    assert!(outcome(&path, "store").is_none());
    assert!(!path.exists());

    let held = open(&path);
    says(&path, "store", CheckOutcome::Passed, "in use");
    says(&path, "holder", CheckOutcome::Passed, &format!("process {}", std::process::id()));
    drop(held);
    let before = std::fs::read(&path).unwrap();
    says(&path, "file", CheckOutcome::Passed, "bytes");
    says(&path, "store", CheckOutcome::Passed, "a store of format");
    says(&path, "holder", CheckOutcome::Passed, "no process");
    assert!(outcome(&path, "free space").is_some() && outcome(&path, "file system").is_some());
    assert_eq!(std::fs::read(&path).unwrap(), before);
    drop(open(&path));

    let other = folder.path().join("orders.jsonl");
    std::fs::write(&other, b"{\"category\":\"order\"}\n").unwrap();
    says(&other, "store", CheckOutcome::Failed, "is not a keyrail store");
    let cut = folder.path().join("cut.db");
    std::fs::write(&cut, &before[..before.len() / 3]).unwrap();
    says(&cut, "store", CheckOutcome::Warned, "it was not closed, or is damaged");
    says(folder.path(), "file", CheckOutcome::Failed, "is a folder");
    says(&folder.path().join("nowhere/keyrail.db"), "file", CheckOutcome::Failed, "mkdir -p");
    says(Path::new("/dev/null"), "file", CheckOutcome::Failed, "no ordinary file");
}
