"""An aircraft's itinerary, from its departures and arrivals: everything in it depends on their order.

The Rust example `examples/itinerary` in Python.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from digest import EMPTY, add
from flight_time import unix_seconds
from keyrail import Context, EventHandler, Timestamp, message

#: Late: more than this.
LATE_MINUTES = 15
#: How long after a late arrival a late departure counts as its consequence.
PROPAGATES_SECONDS = 6 * 60 * 60


@message(category="flight")
class FlightDeparted:
    """An aircraft left."""

    #: Which aircraft: the key.
    tail_number: str
    #: Two letters.
    carrier: str
    #: The carrier's number of the flight.
    flight: int
    origin: str
    destination: str
    #: When, in UTC.
    at: Timestamp
    #: Negative when early.
    delay_minutes: int


@message(category="flight")
class FlightArrived:
    """An aircraft came in. Its fields are those of its departure."""

    tail_number: str
    carrier: str
    flight: int
    origin: str
    destination: str
    at: Timestamp
    delay_minutes: int


@dataclass
class Aircraft:
    """The state of one aircraft: the value `itinerary`."""

    #: Departed, and not arrived since.
    airborne: bool = False
    arrived: int = 0
    departed: int = 0
    #: Over the ids of all events, in order: shows any loss, repeat or swap.
    digest: str = EMPTY
    last_airport: str = ""
    #: The sum of positive arrival delays.
    minutes_late: int = 0
    #: Departures while airborne.
    overlaps: int = 0
    #: Late departures soon after a late arrival.
    propagated: int = 0
    #: What `propagated` is computed from, `at` and `delay_minutes`; not part of the result.
    last_arrival: dict | None = None

    @classmethod
    def read(cls, ctx: Context) -> Aircraft:
        return cls(**ctx.state.get("itinerary", {}))

    def write(self, ctx: Context) -> None:
        self.digest = add(self.digest, ctx.event.id)
        ctx.state.put("itinerary", asdict(self))

    def came_in_late_before(self, at: str) -> bool:
        """Whether its latest arrival was late and at most six hours before `at`."""
        last = self.last_arrival
        if last is None or last["delay_minutes"] <= LATE_MINUTES:
            return False
        return unix_seconds(at) - unix_seconds(last["at"]) <= PROPAGATES_SECONDS


handler = EventHandler(name="itinerary-python", version="1.0.0", sequential_by="tail_number")


@handler.on
def departed(event: FlightDeparted, ctx: Context) -> None:
    aircraft = Aircraft.read(ctx)
    aircraft.departed += 1
    aircraft.overlaps += aircraft.airborne
    aircraft.airborne = True
    if event.delay_minutes > LATE_MINUTES and aircraft.came_in_late_before(event.at):
        aircraft.propagated += 1
    aircraft.last_airport = event.origin
    aircraft.write(ctx)


@handler.on
def arrived(event: FlightArrived, ctx: Context) -> None:
    aircraft = Aircraft.read(ctx)
    aircraft.arrived += 1
    aircraft.airborne = False
    aircraft.minutes_late += max(event.delay_minutes, 0)
    aircraft.last_airport = event.destination
    aircraft.last_arrival = {"at": event.at, "delay_minutes": event.delay_minutes}
    aircraft.write(ctx)
