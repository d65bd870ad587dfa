//! The way between a client and the broker, and what can happen on it.
//!
//! What was sent is the network's: it arrives, or not, whatever becomes of the sender. So a call that its caller gave up, or
//! whose host was killed, may still be executed, seconds later.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use keyrail_broker::Error;
use tokio::sync::oneshot;

use crate::simulation::dice::Dice;
use crate::simulation::truth::Truth;

/// How long a client waits for an answer.
const PATIENCE_MS: u64 = 400;
/// How late a call that was given up may still be executed.
const LATE_MAX_MS: u64 = 4_000;

/// Takes are few, and late ones hand out what nobody gets: they are so much more often late.
const LATE_TAKES: f64 = 5.0;

/// How bad it is at present. Probabilities of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::simulation) struct Weather {
    pub(in crate::simulation) lost_request: f64,
    pub(in crate::simulation) lost_reply: f64,
    pub(in crate::simulation) late: f64,
    pub(in crate::simulation) slow: f64,
    /// Of a bell: dropped, rung twice, delayed.
    pub(in crate::simulation) bells: f64,
    /// The longest way of a call that is not slow.
    pub(in crate::simulation) way_max_ms: u64,
}

impl Weather {
    pub(in crate::simulation) const CALM: Self =
        Self { lost_request: 0.0, lost_reply: 0.0, late: 0.0, slow: 0.0, bells: 0.0, way_max_ms: 0 };

    pub(in crate::simulation) fn roll(dice: &mut Dice) -> Self {
        let worst = dice.pick(&[0.0, 0.02, 0.05, 0.1, 0.2]);
        let mut up_to = |most: f64| dice.unit() * most;
        Self {
            lost_request: up_to(worst),
            lost_reply: up_to(worst),
            late: up_to(worst * 3.0),
            slow: up_to(worst * 2.0),
            bells: up_to(worst * 4.0),
            way_max_ms: dice.between(0, 5),
        }
    }
}

/// All ways.
pub(in crate::simulation) struct Network {
    pub(in crate::simulation) truth: Arc<Truth>,
    weather: Mutex<Weather>,
    dice: Mutex<Dice>,
}

/// What becomes of one call.
enum Fate {
    /// Executed after this time, answered after that.
    Answered { request_ms: u64, reply_ms: u64 },
    /// Executed after this time; the caller has given up after that.
    Unanswered { request_ms: u64, patience_ms: u64 },
    /// Never executed.
    Lost { patience_ms: u64 },
}

impl Network {
    /// After this time nothing that was sent before is on its way.
    pub(in crate::simulation) const LATEST: Duration = Duration::from_millis(PATIENCE_MS + LATE_MAX_MS + 1);

    pub(in crate::simulation) fn new(truth: Arc<Truth>, dice: Dice) -> Self {
        Self { truth, weather: Mutex::new(Weather::CALM), dice: Mutex::new(dice) }
    }

    fn dice<T>(&self, roll: impl FnOnce(&mut Dice) -> T) -> T {
        roll(&mut self.dice.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn weather(&self) -> Weather {
        *self.weather.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::simulation) fn set_weather(&self, weather: Weather) {
        self.truth.notebook.remark(format!("{weather:?}"));
        *self.weather.lock().unwrap_or_else(PoisonError::into_inner) = weather;
    }

    fn fate(&self, what: &str, is_cut: bool) -> Fate {
        let weather = self.weather();
        self.dice(|dice| {
            // A connection that breaks is noticed sooner than one that is silent.
            let patience_ms = if dice.hits(0.3) { dice.between(0, 20) } else { PATIENCE_MS };
            let way = |dice: &mut Dice| dice.between(0, weather.way_max_ms);
            if is_cut || dice.hits(weather.lost_request) {
                return Fate::Lost { patience_ms };
            }
            if dice.hits(if what == "take" { weather.late * LATE_TAKES } else { weather.late }) {
                let request_ms = patience_ms + dice.between(1, LATE_MAX_MS);
                return Fate::Unanswered { request_ms, patience_ms };
            }
            // Never 0: who asks again and again must not stop the clock.
            let mut request_ms = 1 + way(dice);
            if dice.hits(weather.lost_reply) {
                return Fate::Unanswered { request_ms, patience_ms };
            }
            if dice.hits(weather.slow) {
                request_ms += dice.between(0, PATIENCE_MS / 2);
            }
            Fate::Answered { request_ms, reply_ms: way(dice) }
        })
    }

    /// What becomes of a bell: how often it rings, and how much later.
    pub(super) fn bell(&self) -> (u32, u64) {
        let weather = self.weather();
        self.dice(|dice| {
            if !dice.hits(weather.bells) {
                return (1, 0);
            }
            (dice.between(0, 2) as u32, dice.between(0, 500))
        })
    }
}

/// One client's connection.
#[derive(Clone)]
pub(in crate::simulation) struct Link {
    pub(in crate::simulation) network: Arc<Network>,
    pub(in crate::simulation) client: Arc<str>,
    /// Nothing gets through.
    pub(in crate::simulation) cut: Arc<AtomicBool>,
}

async fn sleep_ms(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

impl Link {
    pub(in crate::simulation) fn new(network: Arc<Network>, client: &str) -> Self {
        Self { network, client: client.into(), cut: Arc::default() }
    }

    fn remark(&self, what: &str, came: &str) {
        self.network.truth.notebook.remark(format!("{} of {} {came}", what, self.client));
    }

    /// Sends an operation that changes something.
    pub(super) async fn send<T, E, F>(&self, what: &'static str, operation: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: FnOnce(Arc<Truth>) -> BoxFuture<'static, Result<T, E>> + Send + 'static,
    {
        let truth = self.network.truth.clone();
        match self.network.fate(what, self.cut.load(Relaxed)) {
            Fate::Answered { request_ms, reply_ms } => {
                let (reply, answer) = oneshot::channel();
                tokio::spawn(async move {
                    sleep_ms(request_ms).await;
                    let result = operation(truth).await;
                    sleep_ms(reply_ms).await;
                    // Whoever asked may be dead.
                    let _ = reply.send(result);
                });
                match answer.await {
                    Ok(result) => result,
                    Err(_) => Err(Error::Unavailable("the operation panicked".into()).into()),
                }
            }
            Fate::Unanswered { request_ms, patience_ms } => {
                self.remark(what, &format!("is not answered; executed in {request_ms} ms"));
                tokio::spawn(async move {
                    sleep_ms(request_ms).await;
                    let _ = operation(truth).await;
                });
                sleep_ms(patience_ms).await;
                Err(Error::Unavailable("no answer in time (simulated)".into()).into())
            }
            Fate::Lost { patience_ms } => {
                self.remark(what, "is lost");
                sleep_ms(patience_ms).await;
                Err(Error::Unavailable("the connection broke (simulated)".into()).into())
            }
        }
    }

    /// The way of a call that changes nothing: to be waited for before it is made.
    pub(super) async fn look(&self, what: &'static str) -> Result<(), Error> {
        match self.network.fate(what, self.cut.load(Relaxed)) {
            Fate::Answered { request_ms, reply_ms } => {
                sleep_ms(request_ms + reply_ms).await;
                Ok(())
            }
            Fate::Unanswered { patience_ms, .. } | Fate::Lost { patience_ms } => {
                self.remark(what, "is lost");
                sleep_ms(patience_ms).await;
                Err(Error::Unavailable("no answer in time (simulated)".into()))
            }
        }
    }
}
