//! A process that is killed loses nothing that was answered.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use keyrail_broker::contract::Subject;
use keyrail_broker::contract::story::{CommitWords, READ_MAX, Story, commit, source};
use keyrail_broker::embedded::{EmbeddedBroker, EmbeddedSettings, OpenError};

use super::{open, place, story};

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
            .args(["--exact", "killed::child_that_is_killed", "--nocapture"])
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
