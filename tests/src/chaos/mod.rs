//! Chaos on Redis: three hosts, flights, and random faults; at the end every aircraft must have exactly its history.
//!
//! Faults come from a seed, so that the same plan can be run again; when they strike depends on the machine.

mod canary;
mod faults;
mod history;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use keyrail_broker::testing::RedisServer;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::{guest, keyrail, run};
use canary::Canary;
use faults::{Fault, Slot};
use history::History;

/// Hosts.
const HOSTS: usize = 3;
/// Lines in one run of `keyrail publish`.
const CHUNK_LINES: usize = 5_000;
/// How long everything may take to be settled once the faults are over.
const SETTLE_MAX: Duration = Duration::from_mins(5);

/// What to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The events; January by default.
    pub file: Option<PathBuf>,
    /// How often the file is published, each lap with ids of its own.
    pub laps: u64,
    /// How many faults.
    pub faults: u64,
    /// What the plan is made from.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug)]
pub struct Summary {
    /// Faults by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Events published.
    pub events: u64,
    /// Keys.
    pub keys: usize,
    /// Changes of hands.
    pub changes_of_hands: u64,
    /// Events that a host ran and was not allowed to commit: run again by another.
    pub refused: usize,
    /// The longest that a key waited for one event.
    pub longest_pause: Duration,
    /// From the first event to the last.
    pub took: Duration,
}

/// Runs the plan. An error tells what is not as it must be.
pub fn run_plan(plan: &Plan) -> Result<Summary> {
    let start = Instant::now();
    // Every write is on the disk before it is answered: what was answered survives a kill of the server.
    let mut redis = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"])?;
    let url = redis.url();
    run(&url, &["register", guest("itinerary").to_str().expect("a plain path")]).ok();
    let mut slots: Vec<Slot> = (0..HOSTS).map(|_| Slot::new(redis.port())).collect();
    let mut history = History::default();
    let lines = history.lines(plan)?;
    let events = lines.len() as u64;
    let published = AtomicBool::new(false);
    let (mut struck, mut chance) = (BTreeMap::new(), StdRng::seed_from_u64(plan.seed));
    let canary = Canary::start(url.clone());
    let done = std::thread::scope(|scope| -> Result<()> {
        let publisher = scope.spawn(|| {
            let done = publish(&url, &lines);
            published.store(true, SeqCst);
            done
        });
        for _ in 0..plan.faults {
            std::thread::sleep(Duration::from_millis(chance.random_range(100..900)));
            let fault = Fault::draw(&mut chance);
            *struck.entry(fault.name()).or_insert(0) += 1;
            fault.strike(&mut redis, &mut slots)?;
        }
        for slot in &mut slots {
            slot.heal();
        }
        publisher.join().map_err(|_| anyhow::anyhow!("the publisher panicked"))?
    });
    done?;
    let longest_pause = canary.stop();
    settle(&url)?;
    let wrong = history.compare(&url);
    let refused = slots.iter().map(Slot::refused_commits).sum();
    for slot in &mut slots {
        ensure!(slot.failed_tries() == 0, "an event failed that should not: {}", slot.log());
        slot.end();
    }
    let mut connection = redis::Client::open(url)?.get_connection()?;
    let changes_of_hands = redis::cmd("GET").arg("__generation__").query(&mut connection)?;
    ensure!(wrong.is_empty(), "{} of {} aircraft differ, the first: {}", wrong.len(), history.keys(), wrong[0]);
    Ok(Summary {
        faults: struck,
        events,
        keys: history.keys(),
        changes_of_hands,
        refused,
        longest_pause,
        took: start.elapsed(),
    })
}

/// Publishes everything, as often as it takes: ids are remembered, so a repeat changes nothing.
fn publish(url: &str, lines: &[String]) -> Result<()> {
    use std::io::Write;
    for chunk in lines.chunks(CHUNK_LINES) {
        let text = chunk.join("\n") + "\n";
        let mut tries = 0;
        loop {
            let mut command = Command::new(keyrail());
            command.args(["--broker", url, "publish", "-"]).stdin(Stdio::piped());
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
            if let Some(mut input) = child.stdin.take() {
                // It may end early, when the server is away.
                let _ = input.write_all(text.as_bytes());
            }
            if child.wait()?.success() {
                break;
            }
            tries += 1;
            ensure!(tries < 100, "publishing failed {tries} times");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    Ok(())
}

/// Waits until nothing is left to do.
fn settle(url: &str) -> Result<()> {
    let start = Instant::now();
    let mut connection = redis::Client::open(url)?.get_connection()?;
    loop {
        let ready: u64 = redis::cmd("ZCARD").arg("flight:__behind__:itinerary").query(&mut connection)?;
        let halted: u64 = redis::cmd("SCARD").arg("flight:__halted__:itinerary").query(&mut connection)?;
        ensure!(halted == 0, "{halted} aircraft are halted");
        if ready == 0 {
            return Ok(());
        }
        if start.elapsed() > SETTLE_MAX {
            bail!("{ready} aircraft still wait, {SETTLE_MAX:?} after the last fault");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
