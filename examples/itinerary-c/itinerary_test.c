/** Every aircraft of the sample ends with the state that its events give in order. */
#include "itinerary.h"
#include "keyrail_test.h"

enum { LINE_BYTES_MAX = 4096 };

/** A line of the expected states: the aircraft's members, flat, and the key. */
struct expected {
    keyrail_text tail_number;
    bool airborne;
    int64_t arrived, departed;
    keyrail_text digest, last_airport;
    int64_t minutes_late, overlaps, propagated;
};
static const keyrail_field expected_fields[] = {
    KEYRAIL_FIELD(struct expected, tail_number),  KEYRAIL_FIELD(struct expected, airborne),
    KEYRAIL_FIELD(struct expected, arrived),      KEYRAIL_FIELD(struct expected, departed),
    KEYRAIL_FIELD(struct expected, digest),       KEYRAIL_FIELD(struct expected, last_airport),
    KEYRAIL_FIELD(struct expected, minutes_late), KEYRAIL_FIELD(struct expected, overlaps),
    KEYRAIL_FIELD(struct expected, propagated),
};
static const keyrail_type expected_type = KEYRAIL_TYPE(struct expected, expected_fields);

static void check_aircraft(keyrail_test *test, const struct expected *expected) {
    struct aircraft aircraft;
    KEYRAIL_CHECK(keyrail_test_state(test, expected->tail_number.data, "itinerary", &aircraft_type, &aircraft));
    KEYRAIL_CHECK(aircraft.airborne == expected->airborne);
    KEYRAIL_CHECK(aircraft.arrived == expected->arrived);
    KEYRAIL_CHECK(aircraft.departed == expected->departed);
    KEYRAIL_CHECK(keyrail_equal(aircraft.digest, expected->digest.data));
    KEYRAIL_CHECK(keyrail_equal(aircraft.last_airport, expected->last_airport.data));
    KEYRAIL_CHECK(aircraft.minutes_late == expected->minutes_late);
    KEYRAIL_CHECK(aircraft.overlaps == expected->overlaps);
    KEYRAIL_CHECK(aircraft.propagated == expected->propagated);
}

static void the_sample_of_real_flights(void) {
    keyrail_test *test = keyrail_test_new();
    char line[LINE_BYTES_MAX];
    FILE *events = popen("gunzip -c ../flights/sample.jsonl.gz", "r");
    KEYRAIL_CHECK(events != NULL);
    while (fgets(line, sizeof line, events) != NULL) {
        KEYRAIL_CHECK(keyrail_test_deliver_line(test, line).disposition.outcome == KEYRAIL_DONE);
    }
    KEYRAIL_CHECK(pclose(events) == 0);

    FILE *states = fopen("../flights/sample.itinerary.jsonl", "r");
    KEYRAIL_CHECK(states != NULL);
    size_t aircraft = 0;
    for (; fgets(line, sizeof line, states) != NULL; aircraft++) {
        struct expected expected;
        KEYRAIL_CHECK(keyrail_from_json(keyrail_text_of(line), &expected_type, &expected) == NULL);
        check_aircraft(test, &expected);
    }
    fclose(states);
    KEYRAIL_CHECK(aircraft > 0);
    keyrail_test_free(test);
}

static void times_parse(void) {
    int64_t seconds;
    KEYRAIL_CHECK(unix_seconds(keyrail_text_of("2013-01-01T10:17:00Z"), &seconds) && seconds == 1357035420);
    KEYRAIL_CHECK(unix_seconds(keyrail_text_of("2012-02-29T23:59:59Z"), &seconds) && seconds == 1330559999);
    KEYRAIL_CHECK(!unix_seconds(keyrail_text_of("2013-01-01 10:17:00Z"), &seconds));
    KEYRAIL_CHECK(!unix_seconds(keyrail_text_of("2013-13-01T10:17:00Z"), &seconds));
    KEYRAIL_CHECK(!unix_seconds(keyrail_text_of("2013-01-01T1a:17:00Z"), &seconds));
}

int main(void) {
    the_sample_of_real_flights();
    times_parse();
    puts("2 tests passed");
}
