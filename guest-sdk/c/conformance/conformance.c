/** The conformance handler: what every language's SDK must be able to do, one action a step. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "keyrail.h"

struct step {
    keyrail_text key, action;
    keyrail_optional_text name, text;
    keyrail_optional_integer count;
};
static const keyrail_field step_fields[] = {
    KEYRAIL_FIELD(struct step, key),  KEYRAIL_FIELD(struct step, action), KEYRAIL_FIELD(struct step, name),
    KEYRAIL_FIELD(struct step, text), KEYRAIL_FIELD(struct step, count),
};
static const keyrail_message step_message = KEYRAIL_MESSAGE("conformance", "Step", 1, struct step, step_fields);

/** What `emit` emits; the handler conformance-sink takes it. */
struct echo {
    keyrail_text key, text;
    int64_t nth;
};
static const keyrail_field echo_fields[] = {
    KEYRAIL_FIELD(struct echo, key), KEYRAIL_FIELD(struct echo, text), KEYRAIL_FIELD(struct echo, nth),
};
static const keyrail_message echo_message = KEYRAIL_MESSAGE("conformance-out", "Echo", 1, struct echo, echo_fields);

/** The state value `context`. */
struct context {
    keyrail_text id, category, name;
    int64_t version;
    keyrail_text key;
    int64_t epoch, sequence, generation, attempt, recordedAt;
    keyrail_text headers;
};
static const keyrail_field context_fields[] = {
    KEYRAIL_FIELD(struct context, id),         KEYRAIL_FIELD(struct context, category),
    KEYRAIL_FIELD(struct context, name),       KEYRAIL_FIELD(struct context, version),
    KEYRAIL_FIELD(struct context, key),        KEYRAIL_FIELD(struct context, epoch),
    KEYRAIL_FIELD(struct context, sequence),   KEYRAIL_FIELD(struct context, generation),
    KEYRAIL_FIELD(struct context, attempt),    KEYRAIL_FIELD(struct context, recordedAt),
    KEYRAIL_JSON_FIELD(struct context, headers, KEYRAIL_LIST),
};
static const keyrail_type context_type = KEYRAIL_TYPE(struct context, context_fields);

/** For JSON by hand: a struct of one text, whose JSON ends with the quoted text. */
struct quoted { keyrail_text q; };
static const keyrail_field quoted_fields[] = {KEYRAIL_FIELD(struct quoted, q)};
static const keyrail_type quoted_type = KEYRAIL_TYPE(struct quoted, quoted_fields);

static keyrail_text join(keyrail_text left, keyrail_text right) {
    char *joined = keyrail_alloc(left.length + right.length + 1);
    if (left.length > 0) memcpy(joined, left.data, left.length);
    if (right.length > 0) memcpy(joined + left.length, right.data, right.length);
    return (keyrail_text){joined, left.length + right.length};
}

/** A text as a JSON string: `{"q":"…"}` without its first five bytes and its last. */
static keyrail_text quote(keyrail_text text) {
    struct quoted quoted = {text};
    keyrail_text json = keyrail_to_json(&quoted_type, &quoted);
    return (keyrail_text){json.data + 5, json.length - 6};
}

static keyrail_text headers_of(const keyrail_event *event) {
    keyrail_text list = keyrail_text_of("[");
    for (size_t i = 0; i < event->header_count; i++) {
        list = join(list, keyrail_text_of(i == 0 ? "[" : ",["));
        list = join(list, quote(event->headers[i].name));
        list = join(list, keyrail_text_of(","));
        list = join(list, quote(event->headers[i].value));
        list = join(list, keyrail_text_of("]"));
    }
    return join(list, keyrail_text_of("]"));
}

static keyrail_disposition put_context(keyrail_context *ctx) {
    const keyrail_event *event = ctx->event;
    struct context context = {
        .id = event->id, .category = event->category, .name = event->name, .version = event->version,
        .key = {event->key.data, event->key.length}, .epoch = (int64_t)event->epoch,
        .sequence = (int64_t)event->sequence, .generation = (int64_t)event->generation, .attempt = event->attempt,
        .recordedAt = (int64_t)event->recorded_at_ms, .headers = headers_of(event),
    };
    KEYRAIL_TRY(keyrail_put_state(ctx, "context", &context_type, &context));
    return keyrail_done();
}

static keyrail_disposition append(keyrail_context *ctx, keyrail_text text) {
    keyrail_optional_text log = keyrail_state_bytes(ctx, "log");
    keyrail_text line = join(text, keyrail_text_of("\n"));
    KEYRAIL_TRY(keyrail_put_state_bytes(ctx, "log", join((keyrail_text){log.data, log.length}, line)));
    return keyrail_done();
}

static keyrail_disposition binary(keyrail_context *ctx) {
    char all[256], reversed[256];
    for (int i = 0; i < 256; i++) all[i] = (char)i, reversed[255 - i] = (char)i;
    keyrail_optional_text stored = keyrail_state_bytes(ctx, "bytes");
    if (stored.data == NULL) {
        KEYRAIL_TRY(keyrail_put_state_bytes(ctx, "bytes", (keyrail_text){all, sizeof all}));
        return keyrail_done();
    }
    if (stored.length != sizeof all || memcmp(stored.data, all, sizeof all) != 0) {
        return keyrail_reject(keyrail_text_of("bytes differ"));
    }
    KEYRAIL_TRY(keyrail_put_state_bytes(ctx, "bytes-again", (keyrail_text){reversed, sizeof reversed}));
    return keyrail_done();
}

static keyrail_disposition emit(keyrail_context *ctx, const struct step *step, keyrail_text text) {
    keyrail_header header = {keyrail_text_of("conformance"), keyrail_text_of("yes")};
    for (int64_t nth = 0; nth < step->count.value; nth++) {
        struct echo echo = {step->key, text, nth};
        KEYRAIL_TRY(keyrail_emit_with_headers(ctx, &echo_message, &echo, &header, 1, NULL));
    }
    return keyrail_done();
}

static keyrail_disposition emit_bad(keyrail_context *ctx) {
    keyrail_outgoing nowhere = {
        .category = keyrail_text_of("nowhere"), .name = keyrail_text_of("Nothing"), .version = 1,
        .data = keyrail_text_of("{}"),
    };
    /* The refusal is dropped on purpose: the host must fail the event all the same. */
    keyrail_emit_raw(ctx, &nowhere, NULL);
    return keyrail_done();
}

static keyrail_disposition retry(keyrail_context *ctx, int64_t count) {
    if (ctx->event->attempt <= count) {
        KEYRAIL_TRY(keyrail_put_state_bytes(ctx, "dropped", keyrail_text_of("x")));
        return keyrail_retry(keyrail_text_of("not yet"), 1);
    }
    KEYRAIL_TRY(keyrail_put_state_bytes(ctx, "attempts", keyrail_format("%" PRIu32, ctx->event->attempt)));
    return keyrail_done();
}

static keyrail_disposition clock_and_random(keyrail_context *ctx) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    long long now_ms = (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    KEYRAIL_TRY(keyrail_put_state_bytes(ctx, "clock", keyrail_format("%lld", now_ms)));
    unsigned char random[8];
    if (getentropy(random, sizeof random) != 0) return keyrail_retry(keyrail_text_of("no random bytes"), 0);
    keyrail_text hex = keyrail_format("%02x%02x%02x%02x%02x%02x%02x%02x", random[0], random[1], random[2], random[3],
                                      random[4], random[5], random[6], random[7]);
    KEYRAIL_TRY(keyrail_put_state_bytes(ctx, "random", hex));
    return keyrail_done();
}

static void grow(void) {
    for (;;) {
        char *piece = keyrail_alloc(1 << 20);
        memset(piece, 1, 1 << 20);
    }
}

static keyrail_disposition on_step(keyrail_context *ctx, const void *data) {
    const struct step *step = data;
    keyrail_text text = {step->text.data, step->text.length};
    const char *name = step->name.data == NULL ? "" : step->name.data;

    if (keyrail_equal(step->action, "append")) return append(ctx, text);
    if (keyrail_equal(step->action, "put")) {
        KEYRAIL_TRY(keyrail_put_state_bytes(ctx, name, text));
        return keyrail_done();
    }
    if (keyrail_equal(step->action, "remove")) {
        KEYRAIL_TRY(keyrail_remove_state(ctx, name));
        return keyrail_done();
    }
    if (keyrail_equal(step->action, "binary")) return binary(ctx);
    if (keyrail_equal(step->action, "emit")) return emit(ctx, step, text);
    if (keyrail_equal(step->action, "emit-bad")) return emit_bad(ctx);
    if (keyrail_equal(step->action, "retry")) return retry(ctx, step->count.value);
    if (keyrail_equal(step->action, "reject")) return keyrail_reject(text);
    if (keyrail_equal(step->action, "trap")) abort();
    if (keyrail_equal(step->action, "spin")) {
        for (volatile int spinning = 1; spinning;) continue;
    }
    if (keyrail_equal(step->action, "grow")) grow();
    if (keyrail_equal(step->action, "log")) {
        keyrail_log(KEYRAIL_INFO, "conformance", text);
        printf("%.*s\n", (int)text.length, text.data);
        fflush(stdout);
        return keyrail_done();
    }
    if (keyrail_equal(step->action, "context")) return put_context(ctx);
    if (keyrail_equal(step->action, "clock")) return clock_and_random(ctx);
    return keyrail_reject(join(keyrail_text_of("unknown action: "), step->action));
}

static const keyrail_handles handles[] = {{&step_message, on_step}};
static const keyrail_option options[] = {{"retry-attempts-max", "3"}, {"retry-backoff-base-ms", "1"}};

const keyrail_handler keyrail_exported = {
    .name = "conformance",
    .version = "1.0.0",
    .sequential_by = "key",
    .handles = handles,
    .handle_count = KEYRAIL_COUNT(handles),
    .options = options,
    .option_count = KEYRAIL_COUNT(options),
};
