//! The dashboard in a real browser, on a real host and a real Redis: every action is taken by its button, and the API tells whether
//! it happened. The stories are in `tests/dashboard`.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use keyrail_broker::testing::RedisServer;
use keyrail_tests::host::Host;
use keyrail_tests::{guest, repository, run, run_in, run_with_input, wait_until};
use serde_json::json;
use tempfile::TempDir;

/// Each of these keys stands on an event that its handler rejects. The last must be shown as the text that it is.
const HALTED: [&str; 5] = ["retry-me", "skip-me", "moved", "aside-me", "<img src=x onerror=alert(1)>"];
const CHROMIUMS: [&str; 3] = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/// Fails with what to install.
fn node() -> Command {
    let version = Command::new("node").arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let major = version.trim().trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    assert!(major.is_some_and(|major| major >= 20), "Node 20 or later is needed (found {version:?}); install nodejs");
    Command::new("node")
}

fn needs_chromium() {
    let named = std::env::var_os("KEYRAIL_CHROMIUM").is_some_and(|path| Path::new(&path).exists());
    let found = named || CHROMIUMS.iter().any(|path| Path::new(path).exists());
    assert!(found, "no Chromium: install Debian's package chromium, or name one in KEYRAIL_CHROMIUM");
}

/// A host with an HTTP API, that can go away and come back at the same address.
struct Place {
    redis: RedisServer,
    folder: TempDir,
    address: String,
    host: Option<Host>,
}

impl Place {
    fn new() -> Self {
        let (redis, folder) = (RedisServer::start().unwrap(), TempDir::new().unwrap());
        // Free now; that another process takes it meanwhile fails the test at once, and says so.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        Self { redis, folder, address, host: None }
    }

    /// A token for these roles.
    fn token(&self, name: &str, roles: &[&str]) -> String {
        let mut args = vec!["token", name, "--file", "tokens.toml"];
        args.extend(roles.iter().flat_map(|role| ["--role", role]));
        run_in(self.folder.path(), &args, "").ok().out.trim().to_string()
    }

    fn start(&mut self) {
        let listen = format!("http.listen={}", self.address);
        let tokens = format!("http.tokens_file={}", self.folder.path().join("tokens.toml").display());
        let quick = ["engine.retry.attempts_max=2", "engine.retry.backoff_base_ms=10"];
        // An idle host settles an event and drops it within a millisecond or two: now and then before the tail has read it,
        // which then counts it as missed. What the story publishes must be there to be seen.
        let kept = ["retention.entries=1000"];
        let settings = [listen.as_str(), tokens.as_str()].into_iter().chain(quick).chain(kept);
        let args: Vec<_> = settings.flat_map(|setting| ["--set", setting]).collect();
        self.host = Some(Host::up(&self.redis.url(), &["probe"], &args));
    }

    fn stop(&mut self) {
        assert_eq!(self.host.take().unwrap().terminate(), 0);
    }

    /// Keys that stand still, and a handler with a canary.
    fn prepare(&self) {
        let broker = self.redis.url();
        let event = |key: &str, mode: &str| {
            let data = json!({ "key": key, "mode": mode, "n": 0 });
            json!({ "category": "probe", "type": "Probe", "data": data }).to_string() + "\n"
        };
        let lines: String = HALTED.iter().map(|key| event(key, "reject")).chain([event("calm", "count")]).collect();
        run_with_input(&broker, &["publish", "-"], &lines).ok();
        let deploy = |name: &str, args: &[&str]| {
            let file = guest(name);
            let args: Vec<_> = ["deploy", file.to_str().unwrap()].iter().chain(args).copied().collect();
            run(&broker, &args).ok();
        };
        deploy("counter-1", &[]);
        deploy("counter-3", &["--canary", "k1"]);
        wait_until("all of them stand still", || {
            run(&broker, &["halted", "--json"]).ok().out.lines().count() == HALTED.len()
        });
    }
}

#[test]
fn every_action_is_taken_in_a_browser_and_happens() {
    needs_chromium();
    let mut place = Place::new();
    let all = place.token("ops", &["publish", "read", "operate", "deploy"]);
    let read = place.token("guest", &["read"]);
    place.start();
    place.prepare();

    let mut stories = node();
    stories.arg(repository("tests/dashboard/run.mjs")).arg(format!("http://{}", place.address));
    stories.env("KEYRAIL_TOKEN", all).env("KEYRAIL_READ_TOKEN", read);
    let mut child = stories.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut answers = child.stdin.take().unwrap();
    // It ends by itself when it takes too long.
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        println!("{line}");
        match line.as_str() {
            "stop" => place.stop(),
            "start" => place.start(),
            _ => continue,
        }
        answers.write_all(b"done\n").unwrap();
    }
    let log = place.host.as_ref().map(Host::log).unwrap_or_default();
    assert!(child.wait().unwrap().success(), "see the lines above; the host said:\n{log}");
}

#[test]
fn what_needs_no_browser_is_right() {
    let output = node().arg("--test").arg(repository("tests/dashboard/units.mjs")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// The dashboard runs where no other host can be reached, under a policy that allows its own files only.
#[test]
fn its_files_name_no_other_host_and_write_no_markup() {
    let mut folders = vec![repository("dashboard")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // Of others, and pinned by its hash.
                folders.extend((!path.ends_with("vendor")).then_some(path));
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            // The one address is the name of a format.
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for bad in ["http://", "https://", "innerHTML", "outerHTML", "insertAdjacentHTML", "style=", "eval("] {
                assert!(!text.contains(bad), "{bad} in {}", path.display());
            }
            files += 1;
        }
    }
    assert!(files > 30, "{files} files were looked at");
}
