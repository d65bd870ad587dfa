//! An aircraft's itinerary, from its departures and arrivals: everything in it depends on their order.
//!
//! `digest` shows any loss, repeat or swap. Try it with `examples/flights/sample.jsonl.gz`.

use keyrail_guest::{Context, Error, Event, Result, export, handler};
use serde::{Deserialize, Serialize};

mod digest;
mod time;

pub use digest::Digest;

/// Late: more than this.
const LATE_MINUTES: i64 = 15;
/// How long after a late arrival a late departure counts as its consequence.
const PROPAGATES_SECONDS: i64 = 6 * 60 * 60;

/// An aircraft left.
#[derive(Debug, Clone, Event, Serialize, Deserialize)]
#[event(category = "flight")]
pub struct FlightDeparted {
    /// Which aircraft: the key.
    pub tail_number: String,
    /// Two letters.
    pub carrier: String,
    /// The carrier's number of the flight.
    pub flight: u64,
    /// Where from.
    pub origin: String,
    /// Where to.
    pub destination: String,
    /// When, in UTC.
    #[event(timestamp)]
    pub at: String,
    /// Negative when early.
    pub delay_minutes: i64,
}

/// An aircraft came in.
#[derive(Debug, Clone, Event, Serialize, Deserialize)]
#[event(category = "flight")]
pub struct FlightArrived {
    /// Which aircraft: the key.
    pub tail_number: String,
    /// Two letters.
    pub carrier: String,
    /// The carrier's number of the flight.
    pub flight: u64,
    /// Where from.
    pub origin: String,
    /// Where to.
    pub destination: String,
    /// When, in UTC.
    #[event(timestamp)]
    pub at: String,
    /// Negative when early.
    pub delay_minutes: i64,
}

/// The state of one aircraft: the value `itinerary`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Aircraft {
    /// Departed, and not arrived since.
    pub airborne: bool,
    /// Arrivals.
    pub arrived: u64,
    /// Departures.
    pub departed: u64,
    /// Over the ids of all events, in order.
    pub digest: Digest,
    /// Where it was last.
    pub last_airport: String,
    /// The sum of positive arrival delays.
    pub minutes_late: i64,
    /// Departures while airborne.
    pub overlaps: u64,
    /// Late departures soon after a late arrival.
    pub propagated: u64,
    /// What `propagated` is computed from; not part of the result.
    pub last_arrival: Option<Arrival>,
}

/// An aircraft's latest arrival.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    /// When, in UTC.
    pub at: String,
    /// How late.
    pub delay_minutes: i64,
}

/// The handler.
pub struct Itinerary;

#[handler(name = "itinerary", sequential_by = "tail_number")]
impl Itinerary {
    fn departed(&self, event: FlightDeparted, ctx: &mut Context) -> Result<()> {
        update(ctx, |aircraft| {
            aircraft.departed += 1;
            aircraft.overlaps += u64::from(aircraft.airborne);
            aircraft.airborne = true;
            if event.delay_minutes > LATE_MINUTES && aircraft.came_in_late_before(&event.at)? {
                aircraft.propagated += 1;
            }
            aircraft.last_airport = event.origin;
            Ok(())
        })
    }

    fn arrived(&self, event: FlightArrived, ctx: &mut Context) -> Result<()> {
        update(ctx, |aircraft| {
            aircraft.arrived += 1;
            aircraft.airborne = false;
            aircraft.minutes_late += event.delay_minutes.max(0);
            aircraft.last_airport = event.destination;
            aircraft.last_arrival = Some(Arrival { at: event.at, delay_minutes: event.delay_minutes });
            Ok(())
        })
    }
}

export!(Itinerary);

/// Reads the aircraft, applies one event, and writes it.
fn update(ctx: &mut Context, apply: impl FnOnce(&mut Aircraft) -> Result<()>) -> Result<()> {
    let mut aircraft: Aircraft = ctx.state("itinerary")?.unwrap_or_default();
    apply(&mut aircraft)?;
    aircraft.digest.add(ctx.event_id());
    ctx.put_state("itinerary", &aircraft)
}

impl Aircraft {
    /// Whether its latest arrival was late and at most six hours before `at`.
    fn came_in_late_before(&self, at: &str) -> Result<bool> {
        let Some(arrival) = &self.last_arrival else { return Ok(false) };
        if arrival.delay_minutes <= LATE_MINUTES {
            return Ok(false);
        }
        let since = seconds(at)? - seconds(&arrival.at)?;
        Ok(since <= PROPAGATES_SECONDS)
    }
}

fn seconds(at: &str) -> Result<i64> {
    time::unix_seconds(at).ok_or_else(|| Error::reject(["not a UTC time such as 2013-01-01T10:17:00Z: ", at].concat()))
}
