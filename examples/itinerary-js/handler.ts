/**
 * An aircraft's itinerary, from its departures and arrivals: everything in it depends on their order. The Rust example
 * `examples/itinerary` in TypeScript.
 */

import { type Context, eventHandler, integer, message, text, timestamp } from "@keyrail/guest";

import { add, EMPTY } from "./digest.ts";
import { unixSeconds } from "./time.ts";

/** Late: more than this. */
const LATE_MINUTES = 15;
/** How long after a late arrival a late departure counts as its consequence. */
const PROPAGATES_SECONDS = 6 * 60 * 60;

const flight = {
  /** Which aircraft: the key. */
  tail_number: text(),
  /** Two letters. */
  carrier: text(),
  /** The carrier's number of the flight. */
  flight: integer(),
  origin: text(),
  destination: text(),
  /** When, in UTC. */
  at: timestamp(),
  /** Negative when early. */
  delay_minutes: integer(),
};

export const FlightDeparted = message("flight", "FlightDeparted", flight);
export const FlightArrived = message("flight", "FlightArrived", flight);

/** The state of one aircraft: the value `itinerary`. */
export interface Aircraft {
  /** Departed, and not arrived since. */
  airborne: boolean;
  arrived: number;
  departed: number;
  /** Over the ids of all events, in order: shows any loss, repeat or swap. */
  digest: string;
  last_airport: string;
  /** The sum of positive arrival delays. */
  minutes_late: number;
  /** Departures while airborne. */
  overlaps: number;
  /** Late departures soon after a late arrival. */
  propagated: number;
  /** What `propagated` is computed from; not part of the result. */
  last_arrival: { at: string; delay_minutes: number } | null;
}

const NEW: Aircraft = {
  airborne: false,
  arrived: 0,
  departed: 0,
  digest: EMPTY,
  last_airport: "",
  minutes_late: 0,
  overlaps: 0,
  propagated: 0,
  last_arrival: null,
};

export default eventHandler({ name: "itinerary-js", version: "1.0.0", sequentialBy: "tail_number" })
  .on(FlightDeparted, (event, ctx) => {
    update(ctx, (aircraft) => {
      aircraft.departed += 1;
      if (aircraft.airborne) aircraft.overlaps += 1;
      aircraft.airborne = true;
      if (event.delay_minutes > LATE_MINUTES && cameInLateBefore(aircraft, event.at)) aircraft.propagated += 1;
      aircraft.last_airport = event.origin;
    });
  })
  .on(FlightArrived, (event, ctx) => {
    update(ctx, (aircraft) => {
      aircraft.arrived += 1;
      aircraft.airborne = false;
      aircraft.minutes_late += Math.max(event.delay_minutes, 0);
      aircraft.last_airport = event.destination;
      aircraft.last_arrival = { at: event.at, delay_minutes: event.delay_minutes };
    });
  });

/** Reads the aircraft, applies one event, and writes it. */
function update(ctx: Context, apply: (aircraft: Aircraft) => void): void {
  const aircraft = ctx.state.get<Aircraft>("itinerary") ?? { ...NEW };
  apply(aircraft);
  aircraft.digest = add(aircraft.digest, ctx.event.id);
  ctx.state.put("itinerary", aircraft);
}

/** Whether its latest arrival was late and at most six hours before `at`. */
function cameInLateBefore({ last_arrival }: Aircraft, at: string): boolean {
  if (last_arrival === null || last_arrival.delay_minutes <= LATE_MINUTES) return false;
  return unixSeconds(at) - unixSeconds(last_arrival.at) <= PROPAGATES_SECONDS;
}
