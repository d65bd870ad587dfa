/**
 * An aircraft's itinerary, from its departures and arrivals: everything in it depends on their order.
 *
 * The digest shows any loss, repeat or swap. The same handler as examples/itinerary, in C.
 */
#include "itinerary.h"

#include <inttypes.h>
#include <stdlib.h>

/** Late: more than this. */
static const int64_t late_minutes = 15;
/** How long after a late arrival a late departure counts as its consequence. */
static const int64_t propagates_seconds = 6 * 60 * 60;

static const keyrail_field flight_fields[] = {
    KEYRAIL_FIELD(struct flight, tail_number), KEYRAIL_FIELD(struct flight, carrier),
    KEYRAIL_FIELD(struct flight, flight),      KEYRAIL_FIELD(struct flight, origin),
    KEYRAIL_FIELD(struct flight, destination), KEYRAIL_TIMESTAMP_FIELD(struct flight, at),
    KEYRAIL_FIELD(struct flight, delay_minutes),
};
const keyrail_message flight_departed = KEYRAIL_MESSAGE("flight", "FlightDeparted", 1, struct flight, flight_fields);
const keyrail_message flight_arrived = KEYRAIL_MESSAGE("flight", "FlightArrived", 1, struct flight, flight_fields);

static const keyrail_field arrival_fields[] = {
    KEYRAIL_TIMESTAMP_FIELD(struct arrival, at),
    KEYRAIL_FIELD(struct arrival, delay_minutes),
};
static const keyrail_type arrival_type = KEYRAIL_TYPE(struct arrival, arrival_fields);

static const keyrail_field aircraft_fields[] = {
    KEYRAIL_FIELD(struct aircraft, airborne),     KEYRAIL_FIELD(struct aircraft, arrived),
    KEYRAIL_FIELD(struct aircraft, departed),     KEYRAIL_FIELD(struct aircraft, digest),
    KEYRAIL_FIELD(struct aircraft, last_airport), KEYRAIL_FIELD(struct aircraft, minutes_late),
    KEYRAIL_FIELD(struct aircraft, overlaps),     KEYRAIL_FIELD(struct aircraft, propagated),
    KEYRAIL_OBJECT_FIELD(struct aircraft, last_arrival, &arrival_type),
};
const keyrail_type aircraft_type = KEYRAIL_TYPE(struct aircraft, aircraft_fields);

/** 64-bit FNV-1a, not reset between ids. */
static keyrail_text add_to_digest(keyrail_text digest, keyrail_text id) {
    uint64_t hash = strtoull(digest.data, NULL, 16);
    for (size_t i = 0; i < id.length; i++) hash = (hash ^ (uint8_t)id.data[i]) * UINT64_C(0x00000100000001b3);
    return keyrail_format("%016" PRIx64, hash);
}

static const keyrail_refusal *read_aircraft(keyrail_context *ctx, struct aircraft *aircraft) {
    bool found;
    *aircraft = (struct aircraft){.digest = keyrail_text_of("cbf29ce484222325"), .last_airport = keyrail_text_of("")};
    return keyrail_state(ctx, "itinerary", &aircraft_type, aircraft, &found);
}

static keyrail_disposition write_aircraft(keyrail_context *ctx, struct aircraft *aircraft) {
    aircraft->digest = add_to_digest(aircraft->digest, ctx->event->id);
    KEYRAIL_TRY(keyrail_put_state(ctx, "itinerary", &aircraft_type, aircraft));
    return keyrail_done();
}

/** *late: whether its latest arrival was late and at most six hours before `at`. False if a time cannot be read. */
static bool came_in_late_before(const struct aircraft *aircraft, keyrail_text at, bool *late) {
    const struct arrival *arrival = aircraft->last_arrival;
    *late = false;
    if (arrival == NULL || arrival->delay_minutes <= late_minutes) return true;
    int64_t then, before;
    if (!unix_seconds(at, &then) || !unix_seconds(arrival->at, &before)) return false;
    *late = then - before <= propagates_seconds;
    return true;
}

static keyrail_disposition on_departed(keyrail_context *ctx, const void *data) {
    const struct flight *event = data;
    struct aircraft aircraft;
    KEYRAIL_TRY(read_aircraft(ctx, &aircraft));
    aircraft.departed++;
    aircraft.overlaps += aircraft.airborne;
    aircraft.airborne = true;
    if (event->delay_minutes > late_minutes) {
        bool late;
        if (!came_in_late_before(&aircraft, event->at, &late)) {
            return keyrail_reject(keyrail_text_of("not a UTC time such as 2013-01-01T10:17:00Z"));
        }
        aircraft.propagated += late;
    }
    aircraft.last_airport = event->origin;
    return write_aircraft(ctx, &aircraft);
}

static keyrail_disposition on_arrived(keyrail_context *ctx, const void *data) {
    const struct flight *event = data;
    struct aircraft aircraft;
    KEYRAIL_TRY(read_aircraft(ctx, &aircraft));
    aircraft.arrived++;
    aircraft.airborne = false;
    aircraft.minutes_late += event->delay_minutes > 0 ? event->delay_minutes : 0;
    aircraft.last_airport = event->destination;
    struct arrival arrival = {event->at, event->delay_minutes};
    aircraft.last_arrival = &arrival;
    return write_aircraft(ctx, &aircraft);
}

static const keyrail_handles handles[] = {{&flight_departed, on_departed}, {&flight_arrived, on_arrived}};

const keyrail_handler keyrail_exported = {
    .name = "itinerary-c",
    .version = "0.1.0",
    .sequential_by = "tail_number",
    .handles = handles,
    .handle_count = KEYRAIL_COUNT(handles),
};
