//! What a file adds: it outlives the process, and it can be somebody else's, damaged or no store at all.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use keyrail_broker::contract::Subject;
use keyrail_broker::contract::story::{
    CommitWords, READ_MAX, Story, assert_order, billing, commit, halt_record, outgoing, partition, publication, source,
};
use keyrail_broker::embedded::{EmbeddedBroker, EmbeddedSettings, OpenError, diagnose};
use keyrail_broker::{AcquireError, Bell, Broker, CheckOutcome, Publication, Publish};
use keyrail_ordering::{Lane, OwnerId};

fn open(path: &Path) -> EmbeddedBroker {
    EmbeddedBroker::open(path, EmbeddedSettings::default()).unwrap()
}

fn story(path: &Path) -> Story {
    Story::empty(Subject::new(Arc::new(open(path))))
}

/// A path in a folder that is removed at the end.
fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keyrail.db");
    (folder, path)
}

#[tokio::test]
async fn everything_is_there_after_reopening() {
    let (_folder, path) = place();
    let first = Story::begin(Subject::new(Arc::new(open(&path)))).await;
    first.register("audit", "order", Some("client")).await;
    let [_, e2, _] = first.publish("a", ["e1", "e2", "e3"]).await;
    first.publish_to(Lane::Backfill, "a", ["back"]).await;
    first.publish_one(Publication { dedupe_window_ms: 600_000, ..publication("b", "once") }).await.unwrap();
    first.publish("h", ["h1"]).await;
    let acquired = first.acquire("A", "a").await;
    let effects = commit(&acquired.entries[0]).put("total", "1").emit(outgoing("c", "x"));
    first.broker.commit(&acquired.lease, effects).await.unwrap();
    first.broker.fail(&acquired.lease, &acquired.entries[1].at, 1, "no", 600_000).await.unwrap();
    first.broker.release(&acquired.lease).await.unwrap();
    let halting = first.acquire("A", "h").await;
    let record = halt_record(&halting.entries[0].at);
    first.broker.halt(&halting.lease, &record).await.unwrap();
    let catalog = first.broker.catalog().await.unwrap();
    let backlog = first.backlog().await;
    let rows = first.broker.partitions(&source("billing"), 0, 100).await.unwrap();
    drop(first);

    let second = story(&path);
    assert_eq!(second.broker.catalog().await.unwrap(), catalog);
    assert_eq!(second.backlog().await, backlog);
    assert_eq!(second.broker.partitions(&source("billing"), 0, 100).await.unwrap(), rows);
    assert_eq!(second.offered(&source("billing"), READ_MAX).await, ["b"], "a waits for its retry, h stands still");
    let again =
        second.publish_one(Publication { dedupe_window_ms: 600_000, ..publication("b", "once") }).await.unwrap();
    assert!(again.duplicate);
    match second.try_acquire("B", "h").await {
        Err(AcquireError::Halted(found)) => assert_eq!(*found, record),
        other => panic!("{other:?}"),
    }
    let next = second.acquire("B", "a").await;
    assert!(next.lease.generation > acquired.lease.generation);
    assert_order(&next.entries, &["e2", "e3"]);
    let attempts = next.attempts.unwrap();
    assert_eq!((attempts.head.id, attempts.attempts, attempts.crashes), (e2, 1, 0));
    assert!(attempts.wait_ms > 0);
    assert_eq!(next.state.unwrap(), [("total".to_owned(), "1".into())]);
    second.commit(&next.lease, &next.entries[0]).await;
    second.commit(&next.lease, &next.entries[1]).await;
    second.broker.release(&next.lease).await.unwrap();
    assert_eq!(second.drain("B", billing("a")).await, ["back"]);
    assert_eq!(second.broker.route(READ_MAX, 0).await.unwrap().published, 1);
    assert_eq!(second.drain("B", billing("c")).await, ["x"]);
    assert_eq!(second.drain("B", partition("audit", "order", "a")).await, ["e1", "e2", "e3", "back"]);
    let [e4] = second.publish("a", ["e4"]).await;
    assert!(e4 > e2 && e4.epoch == e2.epoch, "sequences go on");
}

#[tokio::test]
async fn a_process_that_died_owning_entries_is_a_crash_and_holds_nothing() {
    let (_folder, path) = place();
    let first = Story::begin(Subject::new(Arc::new(open(&path)))).await;
    for key in ["held", "released", "caught-up"] {
        first.publish(key, ["e1"]).await;
    }
    first.acquire("A", "held").await;
    let released = first.acquire("A", "released").await;
    first.broker.release(&released.lease).await.unwrap();
    let caught_up = first.acquire("A", "caught-up").await;
    first.commit(&caught_up.lease, &caught_up.entries[0]).await;
    first.publish("caught-up", ["e2"]).await;
    drop(first);

    let second = story(&path);
    let crashes = async |key| second.acquire("B", key).await.attempts.map(|record| record.crashes);
    assert_eq!(crashes("held").await, Some(1));
    assert_eq!(crashes("released").await, None);
    assert_eq!(crashes("caught-up").await, None, "it died with empty hands");
    drop(second);
    let third = story(&path);
    assert_eq!(third.acquire("C", "held").await.attempts.map(|record| record.crashes), Some(2));
}

#[tokio::test]
async fn a_crash_counts_for_the_backfill_head_that_was_running() {
    let (_folder, path) = place();
    let first = Story::begin(Subject::new(Arc::new(open(&path)))).await;
    first.publish_to(Lane::Backfill, "a", ["back"]).await;
    first.acquire("A", "a").await;
    first.publish("a", ["e1"]).await;
    drop(first);
    let second = story(&path).acquire("B", "a").await;
    assert_order(&second.entries, &["back"]);
    assert_eq!(second.attempts.map(|record| (record.head.stream.lane, record.crashes)), Some((Lane::Backfill, 1)));
}

const CHILD_FILE: &str = "KEYRAIL_TEST_CHILD_FILE";

/// Not a test by itself: the process that `a_killed_process_loses_nothing_that_was_answered` kills. Publishes and settles
/// for ever, and says so after each answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_is_killed() {
    let Ok(path) = std::env::var(CHILD_FILE) else { return };
    let story = Arc::new(Story::begin(Subject::new(Arc::new(open(Path::new(&path))))).await);
    let mut tasks = vec![];
    for key in ["a", "b", "c", "d"] {
        let publisher = story.clone();
        tasks.push(tokio::spawn(async move {
            for n in 0.. {
                publisher.publish(key, [&format!("{n}")]).await;
                say(&format!("published {key} {n}"));
            }
        }));
        let worker = story.clone();
        tasks.push(tokio::spawn(async move {
            let mut acquired = worker.acquire("A", key).await;
            for n in 0u64.. {
                while acquired.entries.is_empty() {
                    tokio::task::yield_now().await;
                    acquired.entries = worker.broker.take(&acquired.lease, READ_MAX, false).await.unwrap().entries;
                }
                let entry = acquired.entries.remove(0);
                assert_eq!(entry.at.id.sequence, n);
                worker.broker.commit(&acquired.lease, commit(&entry).put("n", &n.to_string())).await.unwrap();
                say(&format!("settled {key} {n}"));
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nsaid {line}").unwrap();
    out.flush().unwrap();
}

/// A child that does not outlive its test, however that ends.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_was_answered() {
    let (_folder, path) = place();
    for round in 1..=3u64 {
        if round > 1 {
            std::fs::remove_file(&path).unwrap();
        }
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_is_killed", "--nocapture"])
            .env(CHILD_FILE, &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut child = Killed(child);
        let mut killed = false;
        let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        let mut said: BTreeSet<(String, String, u64)> = BTreeSet::new();
        for line in lines {
            // The last line may be cut.
            let Ok(line) = line else { break };
            let words: Vec<_> = line.split(' ').collect();
            if let ["said", what, key, n] = words[..]
                && let Ok(n) = n.parse()
            {
                said.insert((what.into(), key.into(), n));
            }
            if said.len() as u64 == 200 * round && !killed {
                assert!(matches!(EmbeddedBroker::open(&path, EmbeddedSettings::default()), Err(OpenError::InUse(_))));
                child.0.kill().unwrap();
                killed = true;
            }
        }
        child.0.wait().unwrap();
        assert!(said.len() as u64 >= 200 * round, "the child ended early, having said {}", said.len());

        let story = story(&path);
        let most =
            |what: &str, key: &str| said.iter().filter(|(w, k, _)| w == what && k == key).map(|(.., n)| *n).max();
        let (rows, _) = story.broker.partitions(&source("billing"), 0, 100).await.unwrap();
        for row in rows {
            let key = row.partition.key().as_str();
            let last = row.last.map(|id| id.sequence);
            let settled = row.settled.map(|id| id.sequence);
            assert!(last >= most("published", key), "{key}: {last:?} of {:?}", most("published", key));
            assert!(settled >= most("settled", key), "{key}: {settled:?} of {:?}", most("settled", key));
            let next = story.acquire("B", key).await;
            let n = story.broker.state(&next.lease, "n").await.unwrap();
            let n = n.map(|n| String::from_utf8(n.to_vec()).unwrap().parse().unwrap());
            assert_eq!(n, settled, "state and settlement land together");
            let ids: Vec<u64> = next.entries.iter().map(|entry| entry.at.id.sequence).collect();
            let from = settled.map_or(0, |n| n + 1);
            assert_eq!(ids, (from..from + ids.len() as u64).collect::<Vec<_>>());
            assert_eq!(next.entries.len() as u64, row.waiting.min(READ_MAX as u64));
        }
    }
}

#[tokio::test]
async fn what_every_group_has_settled_is_dropped() {
    let (_folder, path) = place();
    let broker = Arc::new(open(&path));
    let story = Story::begin(Subject::new(broker.clone())).await;
    story.register("audit", "order", Some("client")).await;
    story.publish("a", ["e1", "e2", "e3"]).await;
    story.drain("A", billing("a")).await;
    assert_eq!(broker.entries_stored().unwrap(), 3, "audit has still to see them");
    let audit = story.acquire_for("A", partition("audit", "order", "a")).await;
    story.commit(&audit.lease, &audit.entries[0]).await;
    assert_eq!(broker.entries_stored().unwrap(), 2);
    story.broker.release(&audit.lease).await.unwrap();
    story.drain("A", partition("audit", "order", "a")).await;
    assert_eq!(broker.entries_stored().unwrap(), 0);
    // A group that comes late starts from what is kept, and takes what was dropped for no gap.
    story.publish("a", ["e4"]).await;
    story.register("late", "order", Some("client")).await;
    let late = story.acquire_for("A", partition("late", "order", "a")).await;
    assert_order(&late.entries, &["e4"]);
    let (_, before) = late.positions.first().unwrap();
    assert!(before.is_followed_by(late.entries[0].at.id));
}

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

#[tokio::test]
async fn time_is_what_the_settings_say() {
    let (lease_ms, wall_ms) = (Arc::new(AtomicU64::new(5)), Arc::new(AtomicU64::new(1_000)));
    let (lease_clock, wall_clock) = (lease_ms.clone(), wall_ms.clone());
    let settings = EmbeddedSettings {
        lease_clock: Arc::new(move || lease_clock.load(SeqCst)),
        wall_clock: Arc::new(move || wall_clock.load(SeqCst)),
        ..EmbeddedSettings::default()
    };
    let story = Story::begin(Subject::new(Arc::new(EmbeddedBroker::memory(settings).unwrap()))).await;
    let window = Publication { dedupe_window_ms: 50, ..publication("a", "e1") };
    story.publish_one(window.clone()).await.unwrap();
    let acquire = async |owner| story.broker.acquire(billing("a"), &OwnerId::new(owner), 100, READ_MAX).await;
    let first = acquire("A").await.unwrap();
    assert_eq!(first.entries[0].recorded_at_ms, 1_000);
    lease_ms.store(104, SeqCst);
    assert!(matches!(acquire("B").await, Err(AcquireError::Held { .. })));
    story.broker.fail(&first.lease, &first.entries[0].at, 1, "no", 30).await.unwrap();
    lease_ms.store(105, SeqCst);
    story.assert_fenced(&first.lease, &first.entries[0]).await;
    assert_eq!(story.offered(&source("billing"), READ_MAX).await, Vec::<String>::new());
    wall_ms.store(1_020, SeqCst);
    let second = acquire("B").await.unwrap();
    assert_eq!(second.attempts.map(|record| record.wait_ms), Some(10));
    wall_ms.store(1_049, SeqCst);
    assert!(story.publish_one(window.clone()).await.unwrap().duplicate);
    wall_ms.store(1_050, SeqCst);
    assert!(!story.publish_one(window).await.unwrap().duplicate);
}

#[tokio::test]
async fn a_slow_listener_is_told_that_bells_were_lost() {
    let settings = EmbeddedSettings { bells_max: 4, ..EmbeddedSettings::default() };
    let story = Story::begin(Subject::new(Arc::new(EmbeddedBroker::memory(settings).unwrap()))).await;
    let mut bells = keyrail_broker::contract::story::listen(story.broker.as_ref(), vec![source("billing")]).await;
    for n in 0..20 {
        story.publish(&format!("k{n}"), ["e1"]).await;
    }
    assert_eq!(keyrail_broker::contract::story::next_bell(&mut bells).await, Bell::Lost);
    assert!(matches!(keyrail_broker::contract::story::next_bell(&mut bells).await, Bell::Ready { .. }));
}

#[tokio::test]
async fn a_batch_of_nothing_is_nothing() {
    let broker = EmbeddedBroker::memory(EmbeddedSettings::default()).unwrap();
    assert!(broker.publish(vec![]).await.unwrap().is_empty());
    assert_eq!(broker.address(), "memory");
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
