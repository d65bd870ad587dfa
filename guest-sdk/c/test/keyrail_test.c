/** The harness: a host of one call at a time. */
#include "keyrail_test.h"

#include "internal.h"
#include "yyjson.h"

/** 2026-01-01T00:00:00Z: the harness has a clock of its own, one second an event. */
static const uint64_t first_recorded_at_ms = 1767225600000;

enum { EFFECTS_MAX = 1024, NAME_BYTES_MAX = 128 };

/** A value of the state, or with no value a removed one. */
typedef struct entry {
    struct entry *next;
    keyrail_text key, name;
    keyrail_optional_text value;
} entry;

/** An event whose tries failed. */
typedef struct failure {
    struct failure *next;
    keyrail_text id;
    uint64_t sequence;
    uint32_t tries;
} failure;

struct keyrail_test {
    entry *state;
    failure *failed;
    uint64_t submitted;
};

/** The call under way: its writes, newest first, and what it did. */
static struct {
    keyrail_test *test;
    const keyrail_event *event;
    entry *writes;
    keyrail_outgoing *emits;
    size_t emit_count;
    keyrail_log_line *logs;
    size_t log_count;
    bool refused;
} call;

static void die(const char *why, keyrail_text what) {
    fprintf(stderr, "%s: %.*s\n", why, (int)what.length, what.data);
    exit(1);
}

static bool same(keyrail_text left, keyrail_text right) {
    return left.length == right.length && (left.length == 0 || memcmp(left.data, right.data, left.length) == 0);
}

/** A copy that outlives the call. */
static keyrail_text keep(keyrail_text text) {
    char *copy = malloc(text.length + 1);
    if (copy == NULL) abort();
    if (text.length > 0) memcpy(copy, text.data, text.length);
    copy[text.length] = 0;
    return (keyrail_text){copy, text.length};
}

static void *zeroed(size_t bytes) {
    void *made = calloc(1, bytes);
    if (made == NULL) abort();
    return made;
}

static entry *find(entry *list, keyrail_text key, keyrail_text name) {
    while (list != NULL && !(same(list->key, key) && same(list->name, name))) list = list->next;
    return list;
}

static keyrail_text key_of_call(void) {
    return (keyrail_text){call.event->key.data == NULL ? "" : call.event->key.data, call.event->key.length};
}

/* ---- What the handler calls ---- */

bool keyrail_host_get(keyrail_text name, keyrail_text *value) {
    entry *found = find(call.writes, key_of_call(), name);
    if (found == NULL) found = find(call.test->state, key_of_call(), name);
    if (found == NULL || found->value.data == NULL) return false;
    *value = keyrail_copy(found->value.data, found->value.length);
    return true;
}

static bool valid_name(keyrail_text name) {
    for (size_t i = 0; i < name.length; i++) {
        char c = name.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (c == 0 || strchr("_.:-", c) == NULL)) return false;
    }
    return name.length >= 1 && name.length <= NAME_BYTES_MAX;
}

static bool write_state(keyrail_text name, keyrail_optional_text value, keyrail_refusal *refusal, keyrail_text *why) {
    if (!valid_name(name)) {
        refusal->problem = KEYRAIL_INVALID_NAME;
        *why = keyrail_text_of("names are 1 to 128 bytes of [A-Za-z0-9_.:-]");
        return false;
    }
    entry *write = keyrail_alloc(sizeof *write);
    *write = (entry){call.writes, key_of_call(), name, value};
    call.writes = write;
    return true;
}

bool keyrail_host_put(keyrail_text name, keyrail_text value, keyrail_refusal *refusal, keyrail_text *why) {
    keyrail_text copy = keyrail_copy(value.data, value.length);
    return write_state(keyrail_copy(name.data, name.length), (keyrail_optional_text){copy.data, copy.length}, refusal, why);
}

bool keyrail_host_remove(keyrail_text name, keyrail_refusal *refusal, keyrail_text *why) {
    return write_state(keyrail_copy(name.data, name.length), (keyrail_optional_text){NULL, 0}, refusal, why);
}

/** Takes any category: the harness has no catalog. */
bool keyrail_host_emit(const keyrail_outgoing *message, keyrail_text *id, keyrail_refusal *refusal, keyrail_text *why) {
    yyjson_doc *document = yyjson_read(message->data.data, message->data.length, 0);
    bool object = yyjson_is_obj(yyjson_doc_get_root(document));
    yyjson_doc_free(document);
    if (!object || call.emit_count == EFFECTS_MAX) {
        call.refused = true;
        refusal->problem = object ? KEYRAIL_OTHER : KEYRAIL_INVALID_DATA;
        *why = keyrail_text_of(object ? "more emits than the harness keeps" : "the data is not a JSON object");
        return false;
    }
    keyrail_header *headers = keyrail_alloc(message->header_count * sizeof *headers);
    for (size_t i = 0; i < message->header_count; i++) {
        const keyrail_header *from = &message->headers[i];
        headers[i].name = keyrail_copy(from->name.data, from->name.length);
        headers[i].value = keyrail_copy(from->value.data, from->value.length);
    }
    *id = keyrail_format("%s.%zu", call.event->id.data, call.emit_count);
    call.emits[call.emit_count++] = (keyrail_outgoing){
        keyrail_copy(message->category.data, message->category.length),
        keyrail_copy(message->name.data, message->name.length), message->version, headers, message->header_count,
        keyrail_copy(message->data.data, message->data.length),
    };
    return true;
}

void keyrail_host_log(keyrail_level level, keyrail_text context, keyrail_text message) {
    if (call.log_count == EFFECTS_MAX) return;
    call.logs[call.log_count++] = (keyrail_log_line){
        level, keyrail_copy(context.data, context.length), keyrail_copy(message.data, message.length),
    };
}

/* ---- What the test calls ---- */

keyrail_test *keyrail_test_new(void) {
    return zeroed(sizeof(keyrail_test));
}

void keyrail_test_free(keyrail_test *test) {
    keyrail_free_all();
    while (test->state != NULL) {
        entry *next = test->state->next;
        free((char *)test->state->key.data);
        free((char *)test->state->name.data);
        free((char *)test->state->value.data);
        free(test->state);
        test->state = next;
    }
    while (test->failed != NULL) {
        failure *next = test->failed->next;
        free((char *)test->failed->id.data);
        free(test->failed);
        test->failed = next;
    }
    free(test);
}

/** Oldest first, so that the last write of a name stays. */
static void commit(keyrail_test *test, const entry *write) {
    if (write == NULL) return;
    commit(test, write->next);
    entry *stored = find(test->state, write->key, write->name);
    if (stored == NULL) {
        stored = zeroed(sizeof *stored);
        *stored = (entry){test->state, keep(write->key), keep(write->name), {NULL, 0}};
        test->state = stored;
    }
    free((char *)stored->value.data);
    stored->value = (keyrail_optional_text){NULL, 0};
    if (write->value.data != NULL) {
        keyrail_text value = keep((keyrail_text){write->value.data, write->value.length});
        stored->value = (keyrail_optional_text){value.data, value.length};
    }
}

static failure *failure_of(keyrail_test *test, keyrail_text id) {
    failure *found = test->failed;
    while (found != NULL && !same(found->id, id)) found = found->next;
    return found;
}

/** The value of the key field; no data if there is none, or it cannot be a key. */
static keyrail_optional_text key_of(const keyrail_event *event) {
    const char *field = keyrail_exported.sequential_by;
    for (size_t i = 0; i < keyrail_exported.correlation_count; i++) {
        const keyrail_correlation *one = &keyrail_exported.correlates[i];
        if (keyrail_equal(event->category, one->category) && keyrail_equal(event->name, one->message)) field = one->field;
    }
    keyrail_text key = {NULL, 0};
    yyjson_doc *document = yyjson_read(event->data.data, event->data.length, 0);
    yyjson_val *value = field == NULL ? NULL : yyjson_obj_get(yyjson_doc_get_root(document), field);
    if (yyjson_is_str(value)) key = keyrail_copy(yyjson_get_str(value), yyjson_get_len(value));
    else if (yyjson_is_uint(value)) key = keyrail_format("%llu", (unsigned long long)yyjson_get_uint(value));
    else if (yyjson_is_sint(value)) key = keyrail_format("%lld", (long long)yyjson_get_sint(value));
    yyjson_doc_free(document);
    return (keyrail_optional_text){key.data, key.length};
}

static bool handled(const keyrail_event *event) {
    for (size_t i = 0; i < keyrail_exported.handle_count; i++) {
        const keyrail_message *message = keyrail_exported.handles[i].message;
        if (event->version == message->version && keyrail_equal(event->name, message->name)
            && keyrail_equal(event->category, message->category)) return true;
    }
    return false;
}

keyrail_delivery keyrail_test_deliver_event(keyrail_test *test, keyrail_event event) {
    if (event.version == 0) event.version = 1;
    if (!handled(&event)) die("the handler does not declare this type of event", event.name);
    test->submitted++;
    if (event.id.data == NULL) event.id = keyrail_format("event-%llu", (unsigned long long)test->submitted);
    if (event.key.data == NULL) event.key = key_of(&event);
    failure *failed = failure_of(test, event.id);
    event.epoch = event.generation = 1;
    event.sequence = failed != NULL ? failed->sequence : test->submitted;
    if (event.attempt == 0) event.attempt = failed != NULL ? failed->tries + 1 : 1;
    event.recorded_at_ms = first_recorded_at_ms + 1000 * test->submitted;

    memset(&call, 0, sizeof call);
    call.test = test;
    call.event = &event;
    call.emits = keyrail_alloc(EFFECTS_MAX * sizeof *call.emits);
    call.logs = keyrail_alloc(EFFECTS_MAX * sizeof *call.logs);
    keyrail_disposition disposition = keyrail_handle(&event);
    if (disposition.outcome == KEYRAIL_DONE && call.refused) {
        disposition = keyrail_reject(keyrail_text_of("an emit was refused"));
    }
    bool done = disposition.outcome == KEYRAIL_DONE;
    if (done) commit(test, call.writes);
    if (!done && failed == NULL) {
        failed = zeroed(sizeof *failed);
        *failed = (failure){test->failed, keep(event.id), event.sequence, 0};
        test->failed = failed;
    }
    if (failed != NULL) failed->tries = done ? 0 : failed->tries + 1;
    return (keyrail_delivery){event.id, disposition, call.emits, done ? call.emit_count : 0, call.logs, call.log_count};
}

keyrail_delivery keyrail_test_deliver(keyrail_test *test, const keyrail_message *message, const void *value) {
    keyrail_event event = {
        .category = keyrail_text_of(message->category), .name = keyrail_text_of(message->name),
        .version = message->version, .data = keyrail_to_json(&message->type, value),
    };
    if (event.data.data == NULL) die("this event cannot be written as JSON", event.name);
    return keyrail_test_deliver_event(test, event);
}

static keyrail_text text_of(yyjson_val *value) {
    return yyjson_is_str(value) ? keyrail_copy(yyjson_get_str(value), yyjson_get_len(value)) : (keyrail_text){NULL, 0};
}

keyrail_delivery keyrail_test_deliver_line(keyrail_test *test, const char *line) {
    yyjson_doc *document = yyjson_read(line, strlen(line), 0);
    yyjson_val *root = yyjson_doc_get_root(document), *data = yyjson_obj_get(root, "data");
    keyrail_event event = {
        .id = text_of(yyjson_obj_get(root, "id")), .category = text_of(yyjson_obj_get(root, "category")),
        .name = text_of(yyjson_obj_get(root, "type")), .version = (uint32_t)yyjson_get_uint(yyjson_obj_get(root, "version")),
    };
    if (event.category.data == NULL || event.name.data == NULL || data == NULL) die("not a line of events", keyrail_text_of(line));
    size_t length = 0;
    char *written = yyjson_val_write(data, 0, &length);
    event.data = keyrail_copy(written, length);
    free(written);
    yyjson_doc_free(document);
    return keyrail_test_deliver_event(test, event);
}

keyrail_optional_text keyrail_test_state_bytes(keyrail_test *test, const char *key, const char *name) {
    entry *found = find(test->state, keyrail_text_of(key), keyrail_text_of(name));
    return found == NULL ? (keyrail_optional_text){NULL, 0} : found->value;
}

bool keyrail_test_state(keyrail_test *test, const char *key, const char *name, const keyrail_type *type, void *value) {
    keyrail_optional_text stored = keyrail_test_state_bytes(test, key, name);
    if (stored.data == NULL) return false;
    const keyrail_refusal *wrong = keyrail_from_json((keyrail_text){stored.data, stored.length}, type, value);
    if (wrong != NULL) die("the state does not parse", wrong->reason);
    return true;
}
