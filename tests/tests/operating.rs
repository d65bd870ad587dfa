//! What an operator does at night, with real processes: look, decide, go on. Each story runs on the embedded broker with
//! and without a host that holds it, and on Redis.
#![allow(clippy::unwrap_used, missing_docs)]

use keyrail_broker::testing::RedisServer;
use keyrail_tests::host::Host;
use keyrail_tests::{Ran, guest, partitions, run, run_with_input, states, wait_until};
use serde_json::Value;
use tempfile::TempDir;

const USAGE: i32 = 2;
const HALTED: i32 = 3;
const CHECK_FAILED: i32 = 4;
/// A key that shells, URLs and argument parsers could trip over.
const AWKWARD: &str = "-it's /?&#";

/// Where a story takes place; what it started ends with it.
struct Place {
    broker: String,
    _folder: TempDir,
    _redis: Option<RedisServer>,
}

impl Place {
    fn embedded() -> Self {
        let folder = TempDir::new().unwrap();
        let broker = format!("embedded:{}", folder.path().join("k.redb").display());
        Self { broker, _folder: folder, _redis: None }
    }

    fn redis() -> Self {
        let redis = RedisServer::start().unwrap();
        Self { broker: redis.url(), _folder: TempDir::new().unwrap(), _redis: Some(redis) }
    }

    fn run(&self, args: &[&str]) -> Ran {
        run(&self.broker, args)
    }

    fn rows(&self, args: &[&str]) -> Vec<Value> {
        let args: Vec<_> = args.iter().copied().chain(["--json"]).collect();
        self.run(&args).ok().out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn publish(&self, lines: &str) {
        run_with_input(&self.broker, &["publish", "-"], lines).ok();
    }

    fn host(&self, args: &[&str]) -> Host {
        let quick = ["--set", "engine.retry.attempts_max=2", "--set", "engine.retry.backoff_base_ms=10"];
        let args: Vec<_> = quick.iter().chain(args).copied().collect();
        Host::up(&self.broker, &["probe"], &args)
    }

    /// Registers the probe; lets a host run until `key` stands on its second event, then lets it end.
    fn with_halted(self, key: &str) -> Self {
        self.run(&["register", guest("probe").to_str().unwrap()]).ok();
        self.publish(&(event(key, "count") + &event(key, "reject") + &event(key, "count")));
        let host = Host::start(&self.broker, &["probe"], &["--until-idle"]);
        assert_eq!(host.wait(), HALTED);
        self
    }

    fn head(&self, key: &str) -> String {
        let heads = self.rows(&["head", "show", "probe", key]);
        heads[0]["entry"].as_str().unwrap().to_string()
    }

    fn count(&self, key: &str) -> Value {
        states(&self.broker, "probe").get(key).map_or(Value::Null, |state| state["count"].clone())
    }

    fn until_settled(&self, key: &str) {
        wait_until("everything of the key is settled", || {
            let rows = partitions(&self.broker, "probe");
            rows.iter().all(|row| row["key"] != key || (row["waiting"] == 0 && row["halted"].is_null()))
        });
    }
}

fn event(key: &str, mode: &str) -> String {
    serde_json::json!({"category": "probe", "type": "Probe", "data": {"key": key, "mode": mode, "n": 0}}).to_string()
        + "\n"
}

/// Each story with a host that stays up beside it and without, on both brokers.
fn everywhere(key: &str, story: impl Fn(&Place)) {
    for place in [Place::embedded(), Place::redis()] {
        story(&place.with_halted(key));
    }
    for place in [Place::embedded(), Place::redis()] {
        let place = place.with_halted(key);
        let host = place.host(&[]);
        story(&place);
        assert_eq!(host.terminate(), 0);
    }
}

#[test]
fn a_halted_key_is_seen_understood_and_skipped() {
    everywhere(AWKWARD, |place| {
        let halted = place.rows(&["halted", "probe"]);
        assert_eq!(halted.len(), 1, "{halted:?}");
        assert_eq!((&halted[0]["key"], &halted[0]["cause"]), (&AWKWARD.into(), &"rejected".into()), "{halted:?}");
        let shown = place.run(&["head", "show", "probe", AWKWARD, "--group", "probe"]).ok().out;
        for part in
            ["is halted at", "rejected", "asked to reject", "\"mode\": \"reject\"", "2 events", "head set-aside"]
        {
            assert!(shown.contains(part), "no {part:?} in {shown}");
        }
        let entry = place.head(AWKWARD);
        assert!(shown.contains(&format!("--expect {entry} ")), "{shown}");

        place.run(&["head", "skip", "probe", AWKWARD, "--reason", "x"]).refused(USAGE, "--expect");
        let wrong = ["head", "skip", "probe", AWKWARD, "--expect", "99-0", "--reason", "x"];
        place.run(&wrong).refused(1, &format!("{entry} is"));
        assert_eq!(place.head(AWKWARD), entry);
        let skip = ["head", "skip", "probe", AWKWARD, "--expect", entry.as_str(), "--reason", "a test", "--as", "ann"];
        assert!(place.run(&skip).ok().out.contains("is skipped"));
        place.run(&skip).refused(1, "");
        let audit = place.rows(&["audit"]);
        assert_eq!(
            (&audit[0]["action"], &audit[0]["who"], &audit[0]["reason"]),
            (&"skip".into(), &"ann".into(), &"a test".into())
        );
        assert_eq!(audit.len(), 1, "{audit:?}");
        assert_eq!(place.rows(&["halted"]).len(), 0);
    });
}

#[test]
fn a_head_is_set_aside_redriven_and_purged_while_the_host_runs() {
    for place in [Place::embedded(), Place::redis()] {
        let place = place.with_halted("k1");
        let host = place.host(&[]);
        let entry = place.head("k1");
        place.run(&["head", "set-aside", "probe", "k1", "--expect", &entry, "--reason", "later"]).ok();
        place.until_settled("k1");
        assert_eq!(place.count("k1"), 2, "the one after it has run");
        let letters = place.rows(&["dlq", "list", "probe", "k1"]);
        let id = letters[0]["id"].as_str().unwrap();
        assert_eq!((letters.len(), &letters[0]["origin"]), (1, &entry.as_str().into()), "{letters:?}");
        let shown = place.run(&["dlq", "show", "probe", "k1", id]).ok().out;
        assert!(shown.contains("asked to reject") && shown.contains("dlq redrive probe k1"), "{shown}");

        // It fails again, since nothing was mended, and halts the key again.
        let redriven = place.run(&["dlq", "redrive", "probe", "k1", id, "--reason", "mended"]).ok().out;
        assert!(redriven.contains("is published again"), "{redriven}");
        assert_eq!(place.rows(&["dlq", "list"]).len(), 0);
        wait_until("it halts again", || place.rows(&["halted"]).len() == 1);
        let entry = place.head("k1");
        place.run(&["head", "set-aside", "probe", "k1", "--expect", &entry, "--reason", "no"]).ok();
        let all = ["dlq", "purge", "probe", "--all", "--reason", "no use"];
        place.run(&all).refused(USAGE, "1 event would go");
        assert_eq!(place.rows(&["dlq", "list"]).len(), 1);
        place.run(&[&all[..], &["--yes"]].concat()).ok();
        assert_eq!(place.rows(&["dlq", "list"]).len(), 0);
        let actions: Vec<_> = place.rows(&["audit", "--limit", "3"]).iter().map(|row| row["action"].clone()).collect();
        assert_eq!(actions, ["purge", "set-aside", "redrive"]);
        assert_eq!(host.terminate(), 0);
    }
}

#[test]
fn a_retry_gives_all_tries_again() {
    for place in [Place::embedded(), Place::redis()] {
        let place = place.with_halted("k1");
        let host = place.host(&[]);
        let generation = || partitions(&place.broker, "probe")[0]["generation"].as_u64();
        let before = generation();
        place.run(&["head", "retry", "probe", "k1", "--reason", "try again"]).ok();
        // It is rejected again, by an owner that came after the retry.
        wait_until("it halts again", || place.rows(&["halted"]).len() == 1 && generation() > before);
        assert_eq!(place.rows(&["audit"])[0]["action"], "retry");
        assert_eq!(host.terminate(), 0);
    }
}

#[test]
fn what_is_paused_does_not_run_until_it_is_resumed() {
    for place in [Place::embedded(), Place::redis()] {
        place.run(&["register", guest("probe").to_str().unwrap()]).ok();
        place.run(&["pause", "probe", "k1", "--reason", "under investigation"]).ok();
        let again = place.run(&["pause", "probe", "k1", "--reason", "again"]).ok().out;
        assert!(again.contains("was paused already"), "{again}");
        let host = place.host(&[]);
        place.publish(&(event("k1", "count") + &event("k2", "count")));
        place.until_settled("k2");
        assert_eq!((place.count("k1"), place.count("k2")), (Value::Null, 1.into()));
        let paused = place.rows(&["paused"]);
        assert_eq!((&paused[0]["key"], &paused[0]["reason"]), (&"k1".into(), &"under investigation".into()));
        let rows = partitions(&place.broker, "probe");
        let row = |key: &str| rows.iter().find(|row| row["key"] == key).unwrap();
        assert_eq!((&row("k1")["paused"], &row("k2")["paused"]), (&true.into(), &false.into()));
        let shown = place.run(&["head", "show", "probe", "k1"]).ok().out;
        assert!(shown.contains("none while it is paused"), "{shown}");
        let found = place.run(&["doctor"]).ok().out;
        assert!(found.contains(&format!("keyrail --broker {} paused", place.broker)), "{found}");
        place.run(&["resume", "probe", "k1"]).ok();
        place.until_settled("k1");
        assert_eq!(place.count("k1"), 1);
        assert_eq!(host.terminate(), 0);
    }
}

#[test]
fn two_hosts_are_members_and_one_that_ends_is_not() {
    let place = Place::redis();
    let one = place.host(&[]);
    let two = place.host(&[]);
    wait_until("both are members", || place.rows(&["members"]).len() == 2);
    assert!(place.run(&["members"]).ok().out.contains("2 hosts: "));
    let doctor = place.rows(&["doctor"]);
    let check = |name: &str| doctor.iter().find(|row| row["check"] == name).unwrap_or_else(|| panic!("{doctor:?}"));
    assert_eq!(check("members")["outcome"], "ok");
    assert_eq!(two.terminate(), 0);
    assert_eq!(place.rows(&["members"]).len(), 1, "one that ends in order leaves at once");
    assert_eq!(one.terminate(), 0);
    assert!(place.run(&["members"]).ok().out.contains("no host is up"));
}

#[test]
fn the_doctor_says_what_to_change_and_fails_by_its_code() {
    let gone = run("redis://127.0.0.1:1", &["doctor"]);
    assert_eq!(gone.code, CHECK_FAILED, "{gone:?}");
    assert!(gone.out.contains("FAILED") && gone.out.contains("127.0.0.1:1"), "{gone:?}");
    let wrong = run("memory", &["--set", "engine.lease_ttl_ms=soon", "doctor"]);
    assert_eq!(wrong.code, CHECK_FAILED, "{wrong:?}");
    assert!(wrong.out.contains("configuration") && wrong.out.contains("engine.lease_ttl_ms"), "{wrong:?}");
    let place = Place::embedded();
    assert_eq!(place.run(&["doctor"]).code, CHECK_FAILED, "there is no file");
    let place = place.with_halted("k1");
    let found = place.run(&["doctor"]).ok().out;
    assert!(found.contains(&format!("keyrail --broker {} halted", place.broker)), "{found}");
}

#[test]
fn a_backfill_waits_for_the_primary_lane_and_is_named_so() {
    for place in [Place::embedded(), Place::redis()] {
        place.run(&["register", guest("probe").to_str().unwrap()]).ok();
        run_with_input(&place.broker, &["publish", "--lane", "backfill", "-"], &event("k1", "reject")).ok();
        place.publish(&event("k1", "count"));
        let host = Host::start(&place.broker, &["probe"], &["--until-idle"]);
        assert_eq!(host.wait(), HALTED);
        assert_eq!(place.count("k1"), 1, "the primary event came first");
        let entry = place.head("k1");
        assert!(entry.starts_with("backfill/"), "{entry}");
        place.run(&["head", "skip", "probe", "k1", "--expect", &entry, "--reason", "old"]).ok();
        assert_eq!(place.rows(&["halted"]).len(), 0);
    }
}
