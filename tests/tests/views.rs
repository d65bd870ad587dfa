//! What is seen of a fleet at work: the overview, searches, what is followed live, and the commands that show it.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use keyrail_broker::testing::RedisServer;
use keyrail_tests::host::Host;
use keyrail_tests::{DEADLINE, Ran, guest, keyrail, run, run_with_input, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

const USAGE: i32 = 2;

/// A Redis, and a folder for sockets and output.
struct Place {
    redis: RedisServer,
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        // What was written outlives the server's process.
        let redis = RedisServer::start_with(&["--appendonly", "yes"]).unwrap();
        let place = Self { redis, folder: TempDir::new().unwrap() };
        run(&place.redis.url(), &["register", guest("probe").to_str().unwrap()]).ok();
        place
    }

    /// A host of the probe that serves a socket, and the way to it.
    fn host(&self, name: &str, args: &[&str]) -> (Host, String) {
        let socket = self.folder.path().join(name);
        let serve = format!("api.socket={}", socket.display());
        let quick =
            ["--set", "engine.retry.attempts_max=2", "--set", "engine.retry.backoff_base_ms=10", "--set", &serve];
        let args: Vec<_> = quick.iter().chain(args).copied().collect();
        let host = Host::up(&self.redis.url(), &["probe"], &args);
        (host, format!("socket:{}", socket.display()))
    }

    fn publish(&self, lines: &str) {
        run_with_input(&self.redis.url(), &["publish", "-"], lines).ok();
    }

    /// Runs a command that follows, with its output in a file.
    fn follow(&self, broker: &str, args: &[&str]) -> Following {
        let out = self.folder.path().join(format!("out-{}", args.join("-").replace('/', "_")));
        let err = out.with_extension("err");
        let mut command = Command::new(keyrail());
        command.args(["--broker", broker]).args(args).stdin(Stdio::null());
        let child = command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap()).spawn().unwrap();
        let following = Following { child, out };
        wait_until("it follows", || std::fs::read_to_string(&err).unwrap().contains("following"));
        following
    }
}

/// A command under way. Killed when dropped.
struct Following {
    child: Child,
    out: PathBuf,
}

impl Following {
    fn rows(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.out).unwrap();
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn event(key: &str, mode: &str) -> String {
    json!({"category": "probe", "type": "Probe", "data": {"key": key, "mode": mode, "n": 0}}).to_string() + "\n"
}

fn named(key: &str, id: &str) -> String {
    json!({"category": "probe", "type": "Probe", "id": id, "data": {"key": key, "mode": "count", "n": 0}}).to_string()
        + "\n"
}

fn rows(ran: Ran) -> Vec<Value> {
    ran.ok().out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn overview(broker: &str) -> Value {
    let picture = run(broker, &["top", "--once", "--json", "--interval", "0.1"]).ok().out;
    serde_json::from_str::<Value>(&picture).unwrap()
}

#[test]
fn the_overview_shows_hosts_lag_and_what_stands_still() {
    let place = Place::new();
    place.publish(&(event("k1", "count") + &event("k1", "count") + &event("k2", "reject")));
    let before = overview(&place.redis.url());
    let category = &before["overview"]["categories"][0];
    assert_eq!(
        (&category["category"], &category["published"], &category["keys"]),
        (&"probe".into(), &3.into(), &2.into())
    );
    let group = &category["groups"][0];
    assert_eq!((&group["group"], &group["ready"], &group["halted"]), (&"probe".into(), &2.into(), &0.into()));
    assert_eq!((&group["lag"]["events"], &group["lag"]["exact"]), (&3.into(), &true.into()));
    assert!(group["lag"]["oldest_ms"].is_u64(), "{group}");
    assert_eq!(before["overview"]["hosts"], json!([]));

    let (_one, socket) = place.host("one", &[]);
    let (_two, _) = place.host("two", &[]);
    for broker in [socket.as_str(), &place.redis.url()] {
        wait_until("both hosts are seen, and what halted", || {
            let seen = &overview(broker)["overview"];
            seen["hosts"].as_array().unwrap().len() == 2 && seen["halted"] == 1
        });
        let seen = overview(broker);
        assert_eq!(seen["halted"][0]["key"], "k2", "{seen}");
        let group = &seen["overview"]["categories"][0]["groups"][0];
        assert_eq!((&group["ready"], &group["halted"], &group["lag"]["events"]), (&0.into(), &1.into(), &1.into()));
    }
    wait_until("what was handled is told", || {
        overview(&socket)["overview"]["categories"][0]["groups"][0]["settled"].as_u64() >= Some(2)
    });

    let picture = run(&socket, &["top", "--once", "--interval", "0.1"]).ok().out;
    for part in ["2 hosts", "probe", "1 halted", "probe/k2", "IN/S"] {
        assert!(picture.contains(part), "no {part:?} in\n{picture}");
    }
    assert!(!picture.contains('\u{1b}'), "it steers no terminal");
    run(&socket, &["top"]).refused(USAGE, "top --once");
}

#[test]
fn partitions_are_searched_on_the_server() {
    let place = Place::new();
    let keys = ["client-1", "client-12", "client-2", "other"];
    place.publish(&keys.iter().map(|key| event(key, "count")).collect::<String>());
    place.publish(&event("bad", "reject"));
    let (host, socket) = place.host("one", &[]);
    for broker in [socket.as_str(), &place.redis.url()] {
        let found = |args: &[&str]| -> BTreeSet<String> {
            let args = [&["partitions", "--json"], args].concat();
            rows(run(broker, &args)).iter().map(|row| row["key"].as_str().unwrap().to_string()).collect()
        };
        let set = |keys: &[&str]| keys.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        wait_until("all is settled, and the bad one halts", || {
            found(&["--status", "waiting"]).is_empty() && found(&["--status", "halted"]) == set(&["bad"])
        });
        assert_eq!(found(&["probe", "client-1"]), set(&["client-1"]));
        assert_eq!(found(&["--prefix", "client-1"]), set(&["client-1", "client-12"]));
        assert_eq!(found(&["probe", "--group", "probe"]).len(), 5);
        assert_eq!(found(&["probe", "--limit", "2"]).len(), 2);
        assert_eq!(found(&["probe", "nobody"]), set(&[]));
        let table = run(broker, &["partitions", "probe", "bad"]).ok().out;
        let line = table.lines().find(|line| line.starts_with("bad")).unwrap();
        assert!(!line.contains(&format!("-{}-", host.pid())), "nobody owns what stands still: {line}");
        run(broker, &["partitions", "nowhere"]).refused(1, "unknown category");
        run(broker, &["partitions", "--group", "nobody"]).refused(1, "no handler named");
        run(broker, &["partitions", "probe", "a:b"]).refused(USAGE, "");
        let paused = run(broker, &["pause", "probe", "client-7", "--reason", "x"]).ok().out;
        assert!(paused.contains("nothing was published for that key yet"), "{paused}");
        run(broker, &["resume", "probe", "client-7"]).ok();
        let paused = run(broker, &["pause", "probe", "client-2", "--reason", "x"]).ok().out;
        assert!(!paused.contains("nothing was published"), "{paused}");
        assert_eq!(found(&["--status", "paused"]), set(&["client-2"]));
        run(broker, &["resume", "probe", "client-2"]).ok();
    }
}

#[test]
fn a_follower_sees_every_event_of_a_category_and_of_a_key_in_order() {
    let place = Place::new();
    // What was there before is not shown.
    place.publish(&(named("k1", "before") + &named("k2", "before-2")));
    let (_host, socket) = place.host("one", &["--set", "retention.entries=100"]);
    let category = place.follow(&place.redis.url(), &["tail", "probe", "--json", "--data"]);
    let key = place.follow(&socket, &["tail", "probe", "k1", "--json"]);
    let everything = place.follow(&socket, &["tail", "--json"]);
    let mut ids: Vec<Vec<String>> = vec![vec![], vec![]];
    for n in 0..20 {
        for (index, of_key) in ids.iter_mut().enumerate() {
            let (key, id) = (format!("k{}", index + 1), format!("k{}-{n}", index + 1));
            place.publish(&named(&key, &id));
            of_key.push(id);
        }
    }
    let seen_of = |following: &Following, key: &str| -> Vec<String> {
        let rows = following.rows();
        let of_key = rows.iter().filter(|row| row["key"] == key);
        of_key.map(|row| row["id"].as_str().unwrap().to_string()).collect()
    };
    for following in [&category, &everything] {
        wait_until("everything was seen", || {
            seen_of(following, "k1").len() >= 20 && seen_of(following, "k2").len() >= 20
        });
        assert_eq!((&seen_of(following, "k1"), &seen_of(following, "k2")), (&ids[0], &ids[1]));
    }
    wait_until("everything of the key was seen", || key.rows().len() >= 20);
    assert_eq!(seen_of(&key, "k1"), ids[0]);
    assert_eq!(key.rows().len(), 20, "nothing of another, and nothing missed: {:?}", key.rows());
    assert_eq!(category.rows()[0]["data"]["mode"], "count");
    assert!(key.rows()[0].get("data").is_none());

    let ended = place.follow(&socket, &["tail", "probe", "--json", "--count", "1"]);
    place.publish(&named("k9", "last"));
    let Following { .. } = &ended;
    wait_until("it ends by itself", || ended.rows().len() == 1);
    run(&socket, &["tail", "nowhere"]).refused(1, "unknown category");
}

#[test]
fn what_a_follower_cannot_see_is_counted() {
    let place = Place::new();
    // Nothing is kept, and a handler is quick: some of it is gone before anybody reads it. None of it is lost unsaid.
    let (_host, socket) = place.host("one", &[]);
    let following = place.follow(&socket, &["tail", "probe", "--json"]);
    let one_key = place.follow(&place.redis.url(), &["tail", "probe", "k3", "--json"]);
    let total = 3_000_u64;
    place.publish(&(0..total).map(|n| named(&format!("k{}", n % 7), &format!("e{n}"))).collect::<String>());
    let told_by = |following: &Following| -> (u64, u64) {
        let rows = following.rows();
        let missed = rows.iter().filter_map(|row| row["missed"].as_u64()).sum();
        (rows.iter().filter(|row| row.get("id").is_some()).count() as u64, missed)
    };
    let told = || told_by(&following);
    wait_until("all were seen or counted", || {
        let (seen, missed) = told();
        seen + missed >= total
    });
    let (seen, missed) = told();
    assert_eq!(seen + missed, total, "{seen} seen, {missed} missed");
    let of_key = (0..total).filter(|n| n % 7 == 3).count() as u64;
    wait_until("all of the key were seen or counted", || {
        let (seen, missed) = told_by(&one_key);
        seen + missed >= of_key
    });
    let (of_key_seen, of_key_missed) = told_by(&one_key);
    assert_eq!(of_key_seen + of_key_missed, of_key);
    let rows = following.rows();
    let ids: BTreeSet<_> = rows.iter().filter_map(|row| row["id"].as_str()).collect();
    assert_eq!(ids.len() as u64, seen, "each once");
}

/// Server-sent events over a host's socket, read by a client as simple as any.
struct Stream {
    lines: std::io::Lines<BufReader<UnixStream>>,
}

impl Stream {
    fn open(socket: &str, path: &str) -> Self {
        let mut stream = UnixStream::connect(Path::new(socket.strip_prefix("socket:").unwrap())).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n").unwrap();
        let mut lines = BufReader::new(stream).lines();
        let status = lines.next().unwrap().unwrap();
        assert!(status.contains(" 200 "), "{status}");
        Self { lines }
    }

    /// The data of the next event of this name; none when the stream ends.
    fn next(&mut self, name: &str) -> Option<Value> {
        let mut at = String::new();
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            if let Some(event) = line.strip_prefix("event: ") {
                at = event.to_string();
            }
            if let Some(data) = line.strip_prefix("data: ").filter(|_| at == name) {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
        None
    }
}

#[test]
fn a_dashboard_is_told_what_changes_and_let_go_when_the_host_ends() {
    let place = Place::new();
    let (host, socket) = place.host("one", &["--set", "api.followers_max=2"]);
    let mut live = Stream::open(&socket, "/v1/live");
    let first = live.next("overview").unwrap();
    assert_eq!(first["categories"][0]["category"], "probe", "{first}");
    assert_eq!(live.next("halted").unwrap()["rows"], json!([]));
    place.publish(&event("k1", "reject"));
    let mut seen = live.next("halted").unwrap();
    while seen["rows"].as_array().unwrap().is_empty() {
        seen = live.next("halted").unwrap();
    }
    assert_eq!(seen["rows"][0]["key"], "k1");
    let mut tail = Stream::open(&socket, "/v1/tail?category=probe&data=true");
    place.publish(&named("k2", "one"));
    assert_eq!(tail.next("entry").unwrap()["id"], "one");
    // Two may follow here.
    let third = run(&socket, &["tail", "probe", "--count", "1"]);
    assert!(third.code != 0 && third.err.contains("api.followers_max"), "{third:?}");
    assert_eq!(host.terminate(), 0);
    assert_eq!(tail.next("entry"), None);
    while live.next("overview").is_some() {}
}

#[test]
fn a_follower_survives_the_broker_and_goes_on() {
    let mut place = Place::new();
    let following = place.follow(&place.redis.url(), &["tail", "probe", "--json"]);
    place.publish(&named("k1", "one"));
    wait_until("it is seen", || following.rows().len() == 1);
    place.redis.restart().unwrap();
    place.publish(&named("k1", "two"));
    wait_until("the next is seen too", || following.rows().iter().any(|row| row["id"] == "two"));
    let ids: Vec<_> = following.rows().iter().filter_map(|row| row["id"].as_str().map(String::from)).collect();
    assert_eq!(ids, ["one", "two"]);
}

#[test]
fn nothing_can_be_followed_where_no_host_is() {
    let folder = TempDir::new().unwrap();
    let broker = format!("embedded:{}", folder.path().join("k.redb").display());
    run(&broker, &["register", guest("probe").to_str().unwrap()]).ok();
    run(&broker, &["tail"]).refused(USAGE, "start one with keyrail");
    let picture = run(&broker, &["top", "--once", "--interval", "0.1"]).ok().out;
    assert!(picture.contains("no host is up"), "{picture}");
    let empty = folder.path().join("empty.redb");
    File::create(&empty).unwrap();
    let found = run(&format!("embedded:{}", empty.display()), &["doctor"]).ok().out;
    assert!(found.contains("it is empty"), "{found}");
    assert_eq!(std::fs::metadata(&empty).unwrap().len(), 0, "a look changes nothing");
}

/// In a terminal of `script`, which is in every Debian.
#[test]
fn top_gives_the_terminal_back_however_it_ends() {
    let place = Place::new();
    let (_host, socket) = place.host("one", &[]);
    for end in [End::Key, End::Terminate] {
        let typescript = place.folder.path().join(format!("{end:?}"));
        let pid_file = place.folder.path().join(format!("{end:?}.pid"));
        let run = format!(
            "stty rows 24 cols 80; sh -c 'echo $$ > {}; exec {} --broker {socket} top --interval 0.2'; echo ended-with-$?; stty -a",
            pid_file.display(),
            keyrail().display(),
        );
        let mut command = Command::new("script");
        command.args(["-q", "-e", "-f", "-c", &run]).arg(&typescript).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut script = Killed(command.spawn().unwrap());
        let mut keys = script.0.stdin.take().unwrap();
        let shown = || String::from_utf8_lossy(&std::fs::read(&typescript).unwrap_or_default()).into_owned();
        // Blanks are not drawn, so only words can be looked for.
        wait_until("the picture is there", || shown().contains("probe") && shown().contains("HANDLERS"));
        match end {
            End::Key => keys.write_all(b"?jq").and_then(|()| keys.write_all(b"q")).unwrap(),
            End::Terminate => {
                let pid: i32 = std::fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
                kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
            }
        }
        wait_until("it has ended", || script.0.try_wait().unwrap().is_some());
        let shown = shown();
        // The first is in the command, which `script` writes down as well.
        let after = shown.split("ended-with-").nth(2).unwrap_or_else(|| panic!("{shown}"));
        assert!(after.starts_with('0'), "{shown}");
        assert!(shown.contains("\u{1b}[?1049l"), "the ordinary screen is back");
        assert!(after.contains(" icanon") && after.contains(" echo "), "lines and echo are back: {after}");
    }
}

/// Killed when dropped; whatever runs in its terminal hears a hangup then.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[derive(Debug, Clone, Copy)]
enum End {
    Key,
    Terminate,
}
