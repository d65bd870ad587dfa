//! One more key, of which the time from publishing to settling is watched: the longest pause that a key sees.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The key.
pub(super) const KEY: &str = "CANARY";
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(super) struct Canary {
    stopped: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Canary {
    pub(super) fn start(url: String) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let stopped = stopped.clone();
            move || watch(&url, &stopped)
        });
        Self { stopped, thread }
    }

    /// Ends it; the longest wait.
    pub(super) fn stop(self) -> Duration {
        self.stopped.store(true, SeqCst);
        self.thread.join().unwrap_or_default()
    }
}

fn watch(url: &str, stopped: &AtomicBool) -> Duration {
    let (mut longest, mut n, mut since) = (Duration::ZERO, 0_u64, None::<Instant>);
    let mut connection = None;
    while !stopped.load(SeqCst) {
        std::thread::sleep(LOOK_EVERY);
        if connection.is_none() {
            let client = redis::Client::open(url).expect("a valid address");
            connection = client.get_connection_with_timeout(Duration::from_secs(1)).ok();
            if let Some(connection) = &connection {
                // A server that stands still must not hold this thread for ever.
                let _ = connection.set_read_timeout(Some(Duration::from_secs(10)));
            }
        }
        let Some(open) = connection.as_mut() else { continue };
        let waiting: Result<u64, _> = redis::cmd("XLEN").arg(format!("flight:{KEY}")).query(open);
        match waiting {
            Ok(0) => {
                if let Some(since) = since.take() {
                    longest = longest.max(since.elapsed());
                }
                n += 1;
                if publish(open, n).is_ok() {
                    since = Some(Instant::now());
                } else {
                    connection = None;
                }
            }
            Ok(_) => {}
            Err(_) => connection = None,
        }
    }
    since.map_or(longest, |since| longest.max(since.elapsed()))
}

/// With the public function, as a program in any language would.
fn publish(connection: &mut redis::Connection, n: u64) -> redis::RedisResult<()> {
    let data = format!(
        r#"{{"tail_number":"{KEY}","carrier":"XX","flight":{n},"origin":"EWR","destination":"IAH","at":"2013-01-01T10:17:00Z","delay_minutes":0}}"#
    );
    let stream = format!("flight:{KEY}");
    let id = format!("canary-{n}");
    let arguments = ["flight", KEY, "tail_number", "", "0", &id, "FlightDeparted", "1", "", &data];
    let mut call = redis::cmd("FCALL");
    let _: redis::Value = call.arg("keyrail_publish").arg(1).arg(stream).arg(&arguments).query(connection)?;
    Ok(())
}
