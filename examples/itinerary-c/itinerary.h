/** The messages and the state: what the test knows of the handler too. */
#ifndef ITINERARY_H
#define ITINERARY_H

#include "keyrail.h"

/** An aircraft left, or came in. */
struct flight {
    /** Which aircraft: the key. */
    keyrail_text tail_number;
    /** Two letters. */
    keyrail_text carrier;
    /** The carrier's number of the flight. */
    int64_t flight;
    keyrail_text origin, destination;
    /** When, in UTC. */
    keyrail_text at;
    /** Negative when early. */
    int64_t delay_minutes;
};
extern const keyrail_message flight_departed, flight_arrived;

/** An aircraft's latest arrival. */
struct arrival {
    /** When, in UTC. */
    keyrail_text at;
    int64_t delay_minutes;
};

/** The state of one aircraft: the value `itinerary`. */
struct aircraft {
    /** Departed, and not arrived since. */
    bool airborne;
    int64_t arrived, departed;
    /** Over the ids of all events, in order: 16 hex digits. */
    keyrail_text digest;
    /** Where it was last. */
    keyrail_text last_airport;
    /** The sum of positive arrival delays. */
    int64_t minutes_late;
    /** Departures while airborne. */
    int64_t overlaps;
    /** Late departures soon after a late arrival. */
    int64_t propagated;
    /** What `propagated` is computed from; not part of the result. */
    struct arrival *last_arrival;
};
extern const keyrail_type aircraft_type;

/** Seconds since 1970 of `2013-01-01T10:17:00Z`; false for any other form. */
bool unix_seconds(keyrail_text text, int64_t *seconds);

#endif
