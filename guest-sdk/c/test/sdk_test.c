/** The SDK itself: JSON both ways, refusals, what the harness keeps and drops. */
#include "keyrail_test.h"

struct inner { int64_t a; };
static const keyrail_field inner_fields[] = {KEYRAIL_FIELD(struct inner, a)};
static const keyrail_type inner_type = KEYRAIL_TYPE(struct inner, inner_fields);

struct all {
    keyrail_text key;
    int64_t integer;
    double number;
    bool boolean;
    keyrail_text when, bytes;
    keyrail_text list, object;
    struct inner *nested;
    keyrail_optional_text maybe_text;
    keyrail_optional_integer maybe_integer;
    keyrail_optional_number maybe_number;
    keyrail_optional_boolean maybe_boolean;
};
static const keyrail_field all_fields[] = {
    KEYRAIL_FIELD(struct all, key),
    KEYRAIL_FIELD(struct all, integer),
    KEYRAIL_FIELD(struct all, number),
    KEYRAIL_FIELD(struct all, boolean),
    KEYRAIL_TIMESTAMP_FIELD(struct all, when),
    KEYRAIL_BINARY_FIELD(struct all, bytes),
    KEYRAIL_JSON_FIELD(struct all, list, KEYRAIL_LIST),
    KEYRAIL_JSON_FIELD(struct all, object, KEYRAIL_OBJECT),
    KEYRAIL_OBJECT_FIELD(struct all, nested, &inner_type),
    KEYRAIL_FIELD(struct all, maybe_text),
    KEYRAIL_FIELD(struct all, maybe_integer),
    KEYRAIL_FIELD(struct all, maybe_number),
    KEYRAIL_NAMED_FIELD(struct all, maybe_boolean, "maybe-boolean"),
};
static const keyrail_message all_message = KEYRAIL_MESSAGE("things", "All", 1, struct all, all_fields);

/** Does what `integer` says; 0 is to fail until the third try. */
static keyrail_disposition on_all(keyrail_context *ctx, const void *data) {
    const struct all *event = data;
    struct inner inner = {event->integer};
    KEYRAIL_TRY(keyrail_put_state(ctx, "inner", &inner_type, &inner));
    struct inner seen;
    bool found;
    KEYRAIL_TRY(keyrail_state(ctx, "inner", &inner_type, &seen, &found));
    KEYRAIL_CHECK(found && seen.a == event->integer);
    KEYRAIL_TRY(keyrail_emit(ctx, &all_message, event));
    if (event->integer == 0 && ctx->event->attempt < 3) return keyrail_retry(keyrail_text_of("not yet"), 5);
    if (event->integer == 1) KEYRAIL_TRY(keyrail_remove_state(ctx, "no such name!"));
    if (event->integer == 2) KEYRAIL_TRY(keyrail_remove_state(ctx, "inner"));
    if (event->integer == 3) {
        keyrail_outgoing list = {.category = keyrail_text_of("c"), .name = keyrail_text_of("N"), .data = keyrail_text_of("[]")};
        keyrail_emit_raw(ctx, &list, NULL);
    }
    keyrail_log(KEYRAIL_INFO, "sdk", keyrail_text_of("handled"));
    return keyrail_done();
}

static const keyrail_handles handles[] = {{&all_message, on_all}};
const keyrail_handler keyrail_exported = {
    .name = "sdk-test", .version = "1.0.0", .sequential_by = "key", .handles = handles, .handle_count = 1,
};

static const char full[] =
    "{\"key\":\"k\",\"integer\":-9223372036854775808,\"number\":0.1,\"boolean\":true,\"when\":\"2013-01-01T00:00:00Z\","
    "\"bytes\":\"AA==\",\"list\":[1,[2]],\"object\":{\"a\":null},\"nested\":{\"a\":7},\"maybe_text\":\"😀\","
    "\"maybe_integer\":9223372036854775807,\"maybe_number\":-1.5,\"maybe-boolean\":false}";
static const char lean[] =
    "{\"key\":\"k\",\"integer\":5,\"number\":1.0,\"boolean\":false,\"when\":\"\",\"bytes\":\"\",\"list\":[],\"object\":{}}";

static void json_comes_back_as_it_was(void) {
    const char *texts[] = {full, lean};
    for (size_t i = 0; i < KEYRAIL_COUNT(texts); i++) {
        struct all value;
        KEYRAIL_CHECK(keyrail_from_json(keyrail_text_of(texts[i]), &all_message.type, &value) == NULL);
        KEYRAIL_CHECK(keyrail_equal(keyrail_to_json(&all_message.type, &value), texts[i]));
    }
    struct all value;
    keyrail_from_json(keyrail_text_of(full), &all_message.type, &value);
    KEYRAIL_CHECK(value.nested->a == 7 && value.maybe_integer.present && value.integer == INT64_MIN);
}

static void a_zero_byte_in_text_is_kept(void) {
    struct all value;
    keyrail_from_json(keyrail_text_of(lean), &all_message.type, &value);
    value.key = (keyrail_text){"a\0b", 3};
    keyrail_text json = keyrail_to_json(&all_message.type, &value);
    KEYRAIL_CHECK(strstr(json.data, "\"a\\u0000b\"") != NULL);
    KEYRAIL_CHECK(keyrail_from_json(json, &all_message.type, &value) == NULL);
    KEYRAIL_CHECK(value.key.length == 3 && memcmp(value.key.data, "a\0b", 4) == 0);
}

static void json_that_does_not_fit_is_refused_with_the_reason(void) {
    const char *wrong[][2] = {
        {"{\"a\":1.5}", "a is not a 64-bit integer"},   {"{\"a\":9223372036854775808}", "a is not a 64-bit integer"},
        {"{\"a\":\"1\"}", "a is not a 64-bit integer"}, {"{\"a\":null}", "a is not a 64-bit integer"},
        {"{}", "a is missing"},                         {"[]", "it is not an object"},
        {"{\"a\":1", "unexpected end of data at byte 6"},
    };
    for (size_t i = 0; i < KEYRAIL_COUNT(wrong); i++) {
        struct inner value;
        const keyrail_refusal *refusal = keyrail_from_json(keyrail_text_of(wrong[i][0]), &inner_type, &value);
        KEYRAIL_CHECK(refusal != NULL && refusal->problem == KEYRAIL_DOES_NOT_PARSE);
        if (!keyrail_equal(refusal->reason, wrong[i][1])) fprintf(stderr, "%s: %s\n", wrong[i][0], refusal->reason.data);
        KEYRAIL_CHECK(keyrail_equal(refusal->reason, wrong[i][1]));
    }
}

/** One event whose `integer` says what happens. */
static keyrail_delivery deliver(keyrail_test *test, int64_t integer, const char *id) {
    struct all value;
    keyrail_from_json(keyrail_text_of(lean), &all_message.type, &value);
    value.integer = integer;
    keyrail_event event = {
        .category = keyrail_text_of("things"), .name = keyrail_text_of("All"), .id = keyrail_text_of(id),
        .data = keyrail_to_json(&all_message.type, &value),
    };
    return keyrail_test_deliver_event(test, event);
}

static void only_a_done_call_keeps_its_effects(void) {
    keyrail_test *test = keyrail_test_new();
    struct inner inner;
    keyrail_delivery done = deliver(test, 9, "e-1");
    KEYRAIL_CHECK(done.disposition.outcome == KEYRAIL_DONE && done.emit_count == 1 && done.log_count == 1);
    KEYRAIL_CHECK(keyrail_equal(done.emits[0].category, "things"));

    keyrail_delivery refused = deliver(test, 1, "e-2");
    KEYRAIL_CHECK(refused.disposition.outcome == KEYRAIL_REJECT && refused.emit_count == 0);
    KEYRAIL_CHECK(keyrail_equal(refused.disposition.reason,
                                "state no such name! was refused: names are 1 to 128 bytes of [A-Za-z0-9_.:-]"));
    KEYRAIL_CHECK(deliver(test, 3, "e-3").disposition.outcome == KEYRAIL_REJECT);
    KEYRAIL_CHECK(keyrail_test_state(test, "k", "inner", &inner_type, &inner) && inner.a == 9);

    KEYRAIL_CHECK(deliver(test, 2, "e-4").disposition.outcome == KEYRAIL_DONE);
    KEYRAIL_CHECK(!keyrail_test_state(test, "k", "inner", &inner_type, &inner));
    keyrail_test_free(test);
}

static void attempts_are_counted_by_event_id(void) {
    keyrail_test *test = keyrail_test_new();
    keyrail_delivery first = deliver(test, 0, "e-1");
    KEYRAIL_CHECK(first.disposition.outcome == KEYRAIL_RETRY && first.disposition.after_ms == 5);
    KEYRAIL_CHECK(deliver(test, 0, "e-1").disposition.outcome == KEYRAIL_RETRY);
    KEYRAIL_CHECK(deliver(test, 0, "e-1").disposition.outcome == KEYRAIL_DONE);
    keyrail_test_free(test);
}

static void data_that_does_not_parse_is_rejected(void) {
    keyrail_test *test = keyrail_test_new();
    keyrail_delivery delivery =
        keyrail_test_deliver_line(test, "{\"category\":\"things\",\"type\":\"All\",\"data\":{\"key\":5}}");
    KEYRAIL_CHECK(delivery.disposition.outcome == KEYRAIL_REJECT);
    KEYRAIL_CHECK(keyrail_equal(delivery.disposition.reason, "things/All version 1 does not parse: key is not a string"));
    keyrail_test_free(test);
}

int main(void) {
    json_comes_back_as_it_was();
    a_zero_byte_in_text_is_kept();
    json_that_does_not_fit_is_refused_with_the_reason();
    only_a_done_call_keeps_its_effects();
    attempts_are_counted_by_event_id();
    data_that_does_not_parse_is_rejected();
    puts("6 tests passed");
}
