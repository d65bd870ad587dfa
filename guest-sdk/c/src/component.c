/**
 * The component's exports and imports, over the generated bindings.
 *
 * Whoever receives a value frees it: the host's values become copies in the call's memory here, and what the host
 * receives is made with malloc, because the bindings free it after the host has read it.
 */
#include <stdlib.h>

#include "handler.h"
#include "internal.h"

/** The bindings link to an object file that holds the component's type; here build.sh embeds it afterwards. */
void __component_type_object_force_link_handler(void);
void __component_type_object_force_link_handler(void) {}

/* ---- Exports ---- */

static handler_string_t give(const char *string) {
    handler_string_t given;
    handler_string_dup(&given, string == NULL ? "" : string);
    return given;
}

/** Memory for a list that the host receives. The bindings do not free a list of nothing. */
static void *give_list(size_t count, size_t element_bytes) {
    if (count == 0) return NULL;
    void *list = calloc(count, element_bytes);
    if (list == NULL) abort();
    return list;
}

static void give_fields(keyrail_handler_types_list_field_t *to, const keyrail_type *type) {
    to->len = type->field_count;
    to->ptr = give_list(to->len, sizeof *to->ptr);
    for (size_t i = 0; i < to->len; i++) {
        const keyrail_field *field = &type->fields[i];
        to->ptr[i].name = give(field->name);
        to->ptr[i].kind = (keyrail_handler_types_field_type_t)field->kind;
        to->ptr[i].required = !field->optional;
    }
}

static void give_messages(keyrail_handler_types_list_message_type_t *to, const keyrail_handler *handler) {
    to->len = handler->handle_count;
    to->ptr = give_list(to->len, sizeof *to->ptr);
    for (size_t i = 0; i < to->len; i++) {
        const keyrail_message *message = handler->handles[i].message;
        to->ptr[i].category = give(message->category);
        to->ptr[i].name = give(message->name);
        to->ptr[i].version = message->version;
        give_fields(&to->ptr[i].fields, &message->type);
    }
}

static void give_sequential_by(keyrail_handler_types_sequential_by_t *to, const keyrail_handler *handler) {
    to->tag = KEYRAIL_HANDLER_TYPES_SEQUENTIAL_BY_UNORDERED;
    if (handler->sequential_by != NULL) {
        to->tag = KEYRAIL_HANDLER_TYPES_SEQUENTIAL_BY_FIELD;
        to->val.field = give(handler->sequential_by);
    } else if (handler->correlation_count > 0) {
        to->tag = KEYRAIL_HANDLER_TYPES_SEQUENTIAL_BY_CORRELATION;
        keyrail_handler_types_list_correlation_t *list = &to->val.correlation;
        list->len = handler->correlation_count;
        list->ptr = give_list(list->len, sizeof *list->ptr);
        for (size_t i = 0; i < list->len; i++) {
            list->ptr[i].category = give(handler->correlates[i].category);
            list->ptr[i].message = give(handler->correlates[i].message);
            list->ptr[i].field = give(handler->correlates[i].field);
        }
    }
}

void exports_keyrail_handler_guest_describe(exports_keyrail_handler_guest_metadata_t *ret) {
    const keyrail_handler *handler = &keyrail_exported;
    ret->name = give(handler->name);
    ret->version = give(handler->version);
    ret->role = (keyrail_handler_types_role_t)handler->role;
    give_messages(&ret->handles, handler);
    give_sequential_by(&ret->sequential_by, handler);
    ret->options.len = handler->option_count;
    ret->options.ptr = give_list(ret->options.len, sizeof *ret->options.ptr);
    for (size_t i = 0; i < ret->options.len; i++) {
        ret->options.ptr[i].f0 = give(handler->options[i].name);
        ret->options.ptr[i].f1 = give(handler->options[i].value);
    }
}

static keyrail_text copied(handler_string_t from) {
    return keyrail_copy((const char *)from.ptr, from.len);
}

static keyrail_event event_of(const exports_keyrail_handler_guest_event_t *from) {
    keyrail_event event = {
        .id = copied(from->id), .category = copied(from->category), .name = copied(from->name),
        .version = from->version, .epoch = from->epoch, .sequence = from->sequence, .generation = from->generation,
        .attempt = from->attempt, .recorded_at_ms = from->recorded_at,
        .data = keyrail_copy((const char *)from->data.ptr, from->data.len), .header_count = from->headers.len,
    };
    if (from->key.is_some) {
        keyrail_text key = copied(from->key.val);
        event.key = (keyrail_optional_text){key.data, key.length};
    }
    keyrail_header *headers = keyrail_alloc(event.header_count * sizeof *headers);
    for (size_t i = 0; i < event.header_count; i++) {
        headers[i] = (keyrail_header){copied(from->headers.ptr[i].f0), copied(from->headers.ptr[i].f1)};
    }
    event.headers = headers;
    return event;
}

static handler_string_t give_text(keyrail_text text) {
    handler_string_t given;
    handler_string_dup_n(&given, text.data, text.length);
    return given;
}

void exports_keyrail_handler_guest_handle(exports_keyrail_handler_guest_event_t *event,
                                          exports_keyrail_handler_guest_disposition_t *ret) {
    keyrail_event copy = event_of(event);
    exports_keyrail_handler_guest_event_free(event);
    keyrail_disposition disposition = keyrail_handle(&copy);
    ret->tag = (uint8_t)disposition.outcome;
    if (disposition.outcome == KEYRAIL_RETRY) {
        ret->val.retry.reason = give_text(disposition.reason);
        ret->val.retry.after_ms = (handler_option_u64_t){disposition.after_ms > 0, disposition.after_ms};
    } else if (disposition.outcome == KEYRAIL_REJECT) {
        ret->val.reject = give_text(disposition.reason);
    }
    keyrail_free_all();
}

/* ---- Imports ---- */

/** A view for the length of a call; the host only reads it. */
static handler_string_t lend(keyrail_text text) {
    return (handler_string_t){(uint8_t *)text.data, text.length};
}

static keyrail_text take(handler_string_t from) {
    keyrail_text copy = copied(from);
    handler_string_free(&from);
    return copy;
}

bool keyrail_host_get(keyrail_text name, keyrail_text *value) {
    handler_string_t lent = lend(name);
    handler_list_u8_t stored;
    if (!keyrail_handler_state_get(&lent, &stored)) return false;
    *value = keyrail_copy((const char *)stored.ptr, stored.len);
    handler_list_u8_free(&stored);
    return true;
}

static bool refused_state(keyrail_handler_state_state_error_t error, keyrail_refusal *refusal, keyrail_text *why) {
    switch (error.tag) {
        case KEYRAIL_HANDLER_STATE_STATE_ERROR_TOO_LARGE:
            refusal->problem = KEYRAIL_TOO_LARGE;
            refusal->max_bytes = error.val.too_large;
            return false;
        case KEYRAIL_HANDLER_STATE_STATE_ERROR_INVALID_NAME:
            refusal->problem = KEYRAIL_INVALID_NAME;
            *why = take(error.val.invalid_name);
            return false;
        default:
            refusal->problem = KEYRAIL_OTHER;
            *why = take(error.val.other);
            return false;
    }
}

bool keyrail_host_put(keyrail_text name, keyrail_text value, keyrail_refusal *refusal, keyrail_text *why) {
    handler_string_t lent = lend(name);
    handler_list_u8_t bytes = {(uint8_t *)value.data, value.length};
    keyrail_handler_state_state_error_t error;
    return keyrail_handler_state_put(&lent, &bytes, &error) || refused_state(error, refusal, why);
}

bool keyrail_host_remove(keyrail_text name, keyrail_refusal *refusal, keyrail_text *why) {
    handler_string_t lent = lend(name);
    keyrail_handler_state_state_error_t error;
    return keyrail_handler_state_remove(&lent, &error) || refused_state(error, refusal, why);
}

static const keyrail_problem emit_problems[] = {
    [KEYRAIL_HANDLER_OUTBOX_EMIT_ERROR_UNKNOWN_CATEGORY] = KEYRAIL_UNKNOWN_CATEGORY,
    [KEYRAIL_HANDLER_OUTBOX_EMIT_ERROR_UNKNOWN_MESSAGE] = KEYRAIL_UNKNOWN_MESSAGE,
    [KEYRAIL_HANDLER_OUTBOX_EMIT_ERROR_INVALID_KEY] = KEYRAIL_INVALID_KEY,
    [KEYRAIL_HANDLER_OUTBOX_EMIT_ERROR_INVALID_DATA] = KEYRAIL_INVALID_DATA,
    [KEYRAIL_HANDLER_OUTBOX_EMIT_ERROR_TOO_LARGE] = KEYRAIL_TOO_LARGE,
    [KEYRAIL_HANDLER_OUTBOX_EMIT_ERROR_OTHER] = KEYRAIL_OTHER,
};

bool keyrail_host_emit(const keyrail_outgoing *message, keyrail_text *id, keyrail_refusal *refusal, keyrail_text *why) {
    handler_tuple2_string_string_t *headers = keyrail_alloc(message->header_count * sizeof *headers);
    for (size_t i = 0; i < message->header_count; i++) {
        headers[i].f0 = lend(message->headers[i].name);
        headers[i].f1 = lend(message->headers[i].value);
    }
    keyrail_handler_outbox_outgoing_t outgoing = {
        .category = lend(message->category), .name = lend(message->name), .version = message->version,
        .headers = {headers, message->header_count},
        .data = {(uint8_t *)message->data.data, message->data.length},
    };
    handler_string_t made;
    keyrail_handler_outbox_emit_error_t error;
    if (keyrail_handler_outbox_emit(&outgoing, &made, &error)) {
        *id = take(made);
        return true;
    }
    refusal->problem = emit_problems[error.tag];
    if (refusal->problem == KEYRAIL_TOO_LARGE) {
        refusal->max_bytes = error.val.too_large;
    } else {
        /* Every other case holds a text, at the same place. */
        *why = take(error.val.other);
    }
    return false;
}

void keyrail_host_log(keyrail_level level, keyrail_text context, keyrail_text message) {
    handler_string_t lent_context = lend(context), lent_message = lend(message);
    keyrail_handler_logging_log((keyrail_handler_logging_level_t)level, &lent_context, &lent_message);
}
