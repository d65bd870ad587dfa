/** What the host sees of a handler, and what a handler calls, on any host. */
#include "internal.h"

#define LITERAL(string) ((keyrail_text){string, sizeof(string) - 1})

keyrail_optional_text keyrail_header_value(const keyrail_context *ctx, const char *name) {
    for (size_t i = 0; i < ctx->event->header_count; i++) {
        const keyrail_header *header = &ctx->event->headers[i];
        if (keyrail_equal(header->name, name)) return (keyrail_optional_text){header->value.data, header->value.length};
    }
    return (keyrail_optional_text){NULL, 0};
}

keyrail_disposition keyrail_refused(const keyrail_refusal *refusal) {
    switch (refusal->problem) {
        /* By the next try they may be registered. */
        case KEYRAIL_UNKNOWN_CATEGORY: case KEYRAIL_UNKNOWN_MESSAGE: case KEYRAIL_OTHER:
            return keyrail_retry(refusal->reason, 0);
        default:
            return keyrail_reject(refusal->reason);
    }
}

/** A refusal with its whole reason: "state NAME was refused: WHY". */
static const keyrail_refusal *refuse(keyrail_refusal refusal, keyrail_text what, keyrail_text why) {
    if (refusal.problem == KEYRAIL_TOO_LARGE) {
        why = keyrail_format("larger than %llu bytes", (unsigned long long)refusal.max_bytes);
    }
    keyrail_text how = refusal.problem == KEYRAIL_OTHER ? LITERAL(" failed: ") : LITERAL(" was refused: ");
    if (refusal.problem == KEYRAIL_DOES_NOT_PARSE) how = LITERAL(" does not parse: ");
    refusal.reason = keyrail_join((keyrail_text[]){what, how, why}, 3);
    keyrail_refusal *kept = keyrail_alloc(sizeof *kept);
    *kept = refusal;
    return kept;
}

static const keyrail_refusal *refuse_state(keyrail_refusal refusal, const char *name, keyrail_text why) {
    return refuse(refusal, keyrail_join((keyrail_text[]){LITERAL("state "), keyrail_text_of(name)}, 2), why);
}

keyrail_optional_text keyrail_state_bytes(keyrail_context *ctx, const char *name) {
    (void)ctx;
    keyrail_text value;
    if (!keyrail_host_get(keyrail_text_of(name), &value)) return (keyrail_optional_text){NULL, 0};
    return (keyrail_optional_text){value.data, value.length};
}

const keyrail_refusal *keyrail_put_state_bytes(keyrail_context *ctx, const char *name, keyrail_text value) {
    (void)ctx;
    keyrail_refusal refusal = {0};
    keyrail_text why = {0};
    if (keyrail_host_put(keyrail_text_of(name), value, &refusal, &why)) return NULL;
    return refuse_state(refusal, name, why);
}

const keyrail_refusal *keyrail_remove_state(keyrail_context *ctx, const char *name) {
    (void)ctx;
    keyrail_refusal refusal = {0};
    keyrail_text why = {0};
    if (keyrail_host_remove(keyrail_text_of(name), &refusal, &why)) return NULL;
    return refuse_state(refusal, name, why);
}

const keyrail_refusal *keyrail_state(keyrail_context *ctx, const char *name, const keyrail_type *type, void *value,
                                     bool *found) {
    keyrail_optional_text stored = keyrail_state_bytes(ctx, name);
    *found = stored.data != NULL;
    if (!*found) return NULL;
    const keyrail_refusal *wrong = keyrail_from_json((keyrail_text){stored.data, stored.length}, type, value);
    return wrong == NULL ? NULL : refuse_state(*wrong, name, wrong->reason);
}

/** JSON cannot say it: a NaN, an infinite number, or text that is not UTF-8. */
static const keyrail_refusal not_json = {.problem = KEYRAIL_INVALID_DATA};

const keyrail_refusal *keyrail_put_state(keyrail_context *ctx, const char *name, const keyrail_type *type,
                                         const void *value) {
    keyrail_text json = keyrail_to_json(type, value);
    if (json.data == NULL) return refuse_state(not_json, name, LITERAL("it cannot be written as JSON"));
    return keyrail_put_state_bytes(ctx, name, json);
}

static keyrail_text emit_name(keyrail_text category, keyrail_text name) {
    return keyrail_join((keyrail_text[]){LITERAL("emit of "), category, LITERAL("/"), name}, 4);
}

const keyrail_refusal *keyrail_emit_raw(keyrail_context *ctx, const keyrail_outgoing *message, keyrail_text *id) {
    (void)ctx;
    keyrail_text unused;
    keyrail_refusal refusal = {0};
    keyrail_text why = {0};
    if (keyrail_host_emit(message, id == NULL ? &unused : id, &refusal, &why)) return NULL;
    return refuse(refusal, emit_name(message->category, message->name), why);
}

const keyrail_refusal *keyrail_emit_with_headers(keyrail_context *ctx, const keyrail_message *message, const void *value,
                                                 const keyrail_header *headers, size_t header_count, keyrail_text *id) {
    keyrail_outgoing outgoing = {
        .category = keyrail_text_of(message->category), .name = keyrail_text_of(message->name),
        .version = message->version, .headers = headers, .header_count = header_count,
        .data = keyrail_to_json(&message->type, value),
    };
    if (outgoing.data.data == NULL) {
        return refuse(not_json, emit_name(outgoing.category, outgoing.name), LITERAL("it cannot be written as JSON"));
    }
    return keyrail_emit_raw(ctx, &outgoing, id);
}

const keyrail_refusal *keyrail_emit(keyrail_context *ctx, const keyrail_message *message, const void *value) {
    return keyrail_emit_with_headers(ctx, message, value, NULL, 0, NULL);
}

void keyrail_log(keyrail_level level, const char *context, keyrail_text message) {
    keyrail_host_log(level, keyrail_text_of(context), message);
}

/** The rejection of an event that no try can handle. */
static keyrail_disposition reject_event(const keyrail_event *event, keyrail_text why) {
    keyrail_text version = keyrail_format(" version %u", (unsigned)event->version);
    return keyrail_reject(keyrail_join((keyrail_text[]){event->category, LITERAL("/"), event->name, version, why}, 5));
}

keyrail_disposition keyrail_handle(const keyrail_event *event) {
    keyrail_context ctx = {event};
    for (size_t i = 0; i < keyrail_exported.handle_count; i++) {
        const keyrail_message *message = keyrail_exported.handles[i].message;
        if (event->version != message->version || !keyrail_equal(event->name, message->name)
            || !keyrail_equal(event->category, message->category)) continue;
        void *data = keyrail_alloc(message->type.size);
        const keyrail_refusal *wrong = keyrail_from_json(event->data, &message->type, data);
        if (wrong != NULL) {
            return reject_event(event, keyrail_join((keyrail_text[]){LITERAL(" does not parse: "), wrong->reason}, 2));
        }
        return keyrail_exported.handles[i].handle(&ctx, data);
    }
    return reject_event(event, LITERAL(" is not handled by this handler"));
}
