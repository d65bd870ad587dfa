/**
 * Runs a handler in an ordinary program: no WebAssembly, no host, no broker.
 *
 * A harness delivers one event at a time, in the order of the test. State is kept for each key, and the effects of a
 * call only when it is done, as on a host. Link test/keyrail_test.c in place of src/component.c.
 */
#ifndef KEYRAIL_TEST_H
#define KEYRAIL_TEST_H

#include <stdio.h>
#include <stdlib.h>

#include "keyrail.h"

/** Ends the test with the place and the text of what is not so. */
#define KEYRAIL_CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

typedef struct keyrail_test keyrail_test;

typedef struct { keyrail_level level; keyrail_text context, message; } keyrail_log_line;

/** What became of one event. What it points to lives until keyrail_test_free. */
typedef struct {
    keyrail_text id;
    keyrail_disposition disposition;
    /** None unless the event is done. */
    const keyrail_outgoing *emits;
    size_t emit_count;
    /** Kept also when the event failed. */
    const keyrail_log_line *logs;
    size_t log_count;
} keyrail_delivery;

keyrail_test *keyrail_test_new(void);
void keyrail_test_free(keyrail_test *test);

/** Delivers an event of a struct. The key is the value of the field that the handler is sequential by. */
keyrail_delivery keyrail_test_deliver(keyrail_test *test, const keyrail_message *message, const void *value);
/**
 * Delivers any event, also data that does not fit its type. What is zero is found: an id, the key, the attempt by how
 * often this id has failed. Ends the test if the handler does not declare the type: no host would deliver it.
 */
keyrail_delivery keyrail_test_deliver_event(keyrail_test *test, keyrail_event event);
/** Delivers a line as `keyrail publish` takes it: {"category":…, "type":…, "data":{…}, "id":…}. */
keyrail_delivery keyrail_test_deliver_line(keyrail_test *test, const char *line);

/** A value of a key's state; no data if it was never written. For events without a key, the key is "". */
keyrail_optional_text keyrail_test_state_bytes(keyrail_test *test, const char *key, const char *name);
/** Reads a value into a struct; false if it was never written. Ends the test if it does not parse. */
bool keyrail_test_state(keyrail_test *test, const char *key, const char *name, const keyrail_type *type, void *value);

#endif
