/**
 * Keyrail handlers in C11.
 *
 * A handler is a constant: its name, what orders its events, and one function for each type of event. A message is a
 * struct with a table of its fields; the SDK reads and writes it as JSON. State writes and emits are kept only when the
 * function answers keyrail_done().
 *
 *     struct order_placed { keyrail_text order_id; int64_t amount_cents; };
 *     static const keyrail_field order_placed_fields[] = {
 *         KEYRAIL_FIELD(struct order_placed, order_id),
 *         KEYRAIL_FIELD(struct order_placed, amount_cents),
 *     };
 *     static const keyrail_message order_placed =
 *         KEYRAIL_MESSAGE("order", "OrderPlaced", 1, struct order_placed, order_placed_fields);
 *
 *     static keyrail_disposition on_order_placed(keyrail_context *ctx, const void *data) {
 *         const struct order_placed *event = data;
 *         ...
 *         return keyrail_done();
 *     }
 *
 *     static const keyrail_handles handles[] = {{&order_placed, on_order_placed}};
 *     const keyrail_handler keyrail_exported = {
 *         .name = "billing", .version = "1.0.0", .sequential_by = "order_id",
 *         .handles = handles, .handle_count = KEYRAIL_COUNT(handles),
 *     };
 *
 * Memory: what the SDK hands out in a call (texts, parsed structs, keyrail_alloc) lives until the call ends, and nothing
 * needs to be freed. What a handler keeps in static variables may be gone at the next event: use the state.
 */
#ifndef KEYRAIL_H
#define KEYRAIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KEYRAIL_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/** UTF-8 (or any bytes) of a length. May hold zero bytes; what the SDK hands out has one behind its end as well. */
typedef struct { const char *data; size_t length; } keyrail_text;

/** Members of a struct that a message may lack. An absent text has no data. */
typedef struct { const char *data; size_t length; } keyrail_optional_text;
typedef struct { bool present; int64_t value; } keyrail_optional_integer;
typedef struct { bool present; double value; } keyrail_optional_number;
typedef struct { bool present; bool value; } keyrail_optional_boolean;

/** The text of a C string. */
static inline keyrail_text keyrail_text_of(const char *string) {
    return (keyrail_text){string, strlen(string)};
}

static inline bool keyrail_equal(keyrail_text text, const char *string) {
    return text.length == strlen(string) && memcmp(text.data, string, text.length) == 0;
}

/* ---- Messages ---- */

/** What a field holds, in JSON. A key is text or an integer. The numbers are those of the contract. */
typedef enum {
    KEYRAIL_TEXT, KEYRAIL_INTEGER, KEYRAIL_NUMBER, KEYRAIL_BOOLEAN,
    /** A string of RFC 3339. */
    KEYRAIL_TIMESTAMP,
    KEYRAIL_LIST, KEYRAIL_OBJECT,
    /** A string of base64. */
    KEYRAIL_BINARY,
} keyrail_field_type;

typedef struct keyrail_type keyrail_type;

/** One member of a JSON object, and where it is in the struct. Made by the macros below. */
typedef struct {
    const char *name;
    keyrail_field_type kind;
    bool optional;
    size_t offset;
    /** For a nested struct: what it is made of. */
    const keyrail_type *nested;
} keyrail_field;

/** A struct that the SDK can read and write as JSON: a message, or a value of the state. */
struct keyrail_type { size_t size; const keyrail_field *fields; size_t field_count; };

/** A type of event or command. */
typedef struct {
    /** `[a-z][a-z0-9_.-]{0,63}`. */
    const char *category;
    /** `[A-Za-z][A-Za-z0-9_.-]{0,63}`. */
    const char *name;
    /** Starts at 1. */
    uint32_t version;
    keyrail_type type;
} keyrail_message;

#define KEYRAIL_MEMBER_(of, member) (((of *)0)->member)
#define KEYRAIL_KIND_(of, member) _Generic(KEYRAIL_MEMBER_(of, member), \
    keyrail_text: KEYRAIL_TEXT, keyrail_optional_text: KEYRAIL_TEXT, \
    int64_t: KEYRAIL_INTEGER, keyrail_optional_integer: KEYRAIL_INTEGER, \
    double: KEYRAIL_NUMBER, keyrail_optional_number: KEYRAIL_NUMBER, \
    bool: KEYRAIL_BOOLEAN, keyrail_optional_boolean: KEYRAIL_BOOLEAN)
#define KEYRAIL_OPTIONAL_(of, member) _Generic(KEYRAIL_MEMBER_(of, member), \
    keyrail_optional_text: true, keyrail_optional_integer: true, keyrail_optional_number: true, \
    keyrail_optional_boolean: true, default: false)
/* Only for members that are text; anything else does not compile. */
#define KEYRAIL_TEXT_AS_(of, member, as) _Generic(KEYRAIL_MEMBER_(of, member), \
    keyrail_text: (as), keyrail_optional_text: (as))

/** A member whose C type says what it is: keyrail_text, int64_t, double, bool, or the keyrail_optional_ ones. */
#define KEYRAIL_FIELD(of, member) \
    {#member, KEYRAIL_KIND_(of, member), KEYRAIL_OPTIONAL_(of, member), offsetof(of, member), NULL}
/** The same for a name in JSON that C cannot have, such as "for" or "order-id". */
#define KEYRAIL_NAMED_FIELD(of, member, name) \
    {name, KEYRAIL_KIND_(of, member), KEYRAIL_OPTIONAL_(of, member), offsetof(of, member), NULL}
/** A text that is a time in RFC 3339. */
#define KEYRAIL_TIMESTAMP_FIELD(of, member) \
    {#member, KEYRAIL_TEXT_AS_(of, member, KEYRAIL_TIMESTAMP), KEYRAIL_OPTIONAL_(of, member), offsetof(of, member), NULL}
/** A text that is base64. */
#define KEYRAIL_BINARY_FIELD(of, member) \
    {#member, KEYRAIL_TEXT_AS_(of, member, KEYRAIL_BINARY), KEYRAIL_OPTIONAL_(of, member), offsetof(of, member), NULL}
/** A list or an object (kind: KEYRAIL_LIST or KEYRAIL_OBJECT) that stays JSON in a text member. */
#define KEYRAIL_JSON_FIELD(of, member, kind) \
    {#member, KEYRAIL_TEXT_AS_(of, member, kind), KEYRAIL_OPTIONAL_(of, member), offsetof(of, member), NULL}
/** A member that points to another struct; NULL when absent or null. `type` is the address of its keyrail_type. */
#define KEYRAIL_OBJECT_FIELD(of, member, type) {#member, KEYRAIL_OBJECT, true, offsetof(of, member), type}

#define KEYRAIL_TYPE(of, fields) {sizeof(of), fields, KEYRAIL_COUNT(fields)}
#define KEYRAIL_MESSAGE(category, name, version, of, fields) {category, name, version, KEYRAIL_TYPE(of, fields)}

/* ---- The event in hand ---- */

/** Names that start with `keyrail-` are the host's. */
typedef struct { keyrail_text name, value; } keyrail_header;

/** An event with everything that the host says about it. */
typedef struct {
    /** The same in every delivery: what to use for idempotency. */
    keyrail_text id;
    keyrail_text category, name;
    uint32_t version;
    /** The validated key; no data in a category that is not partitioned. */
    keyrail_optional_text key;
    /** The place in the stream. They order, and only that. */
    uint64_t epoch, sequence;
    /** Grows each time the partition changes hands: what to fence external calls with. */
    uint64_t generation;
    /** 1 for the first try. */
    uint32_t attempt;
    /** When the broker recorded it, in milliseconds since 1970. */
    uint64_t recorded_at_ms;
    const keyrail_header *headers;
    size_t header_count;
    /** A JSON object in UTF-8. */
    keyrail_text data;
} keyrail_event;

/** What a handler has while it handles one event. */
typedef struct keyrail_context { const keyrail_event *event; } keyrail_context;

/** The value of the first header of that name; no data if there is none. */
keyrail_optional_text keyrail_header_value(const keyrail_context *ctx, const char *name);

/** Memory until the call ends, zeroed. Never NULL: a handler that runs out of memory traps, and is tried again. */
void *keyrail_alloc(size_t bytes);
/** A text like printf's, until the call ends. */
keyrail_text keyrail_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- What a handler answers ---- */

/** The numbers are those of the contract. Only DONE keeps the call's state writes and emits. */
typedef enum { KEYRAIL_DONE, KEYRAIL_RETRY, KEYRAIL_REJECT } keyrail_outcome;

typedef struct {
    keyrail_outcome outcome;
    /** Shown to operators. */
    keyrail_text reason;
    /** A wish for RETRY, 0 for none: the host's own back-off is the least, its cap the most. */
    uint64_t after_ms;
} keyrail_disposition;

/** Handled. */
static inline keyrail_disposition keyrail_done(void) {
    return (keyrail_disposition){KEYRAIL_DONE, {NULL, 0}, 0};
}
/** Try again later; nothing else of this key runs before. */
static inline keyrail_disposition keyrail_retry(keyrail_text reason, uint64_t after_ms) {
    return (keyrail_disposition){KEYRAIL_RETRY, reason, after_ms};
}
/** No try can succeed: the key halts on this event until an operator decides. */
static inline keyrail_disposition keyrail_reject(keyrail_text reason) {
    return (keyrail_disposition){KEYRAIL_REJECT, reason, 0};
}

/** Why the host, or the SDK, refused something. */
typedef enum {
    /** State names are 1 to 128 bytes of `[A-Za-z0-9_.:-]`. */
    KEYRAIL_INVALID_NAME,
    /** max_bytes is the limit. */
    KEYRAIL_TOO_LARGE,
    KEYRAIL_UNKNOWN_CATEGORY, KEYRAIL_UNKNOWN_MESSAGE, KEYRAIL_INVALID_KEY, KEYRAIL_INVALID_DATA,
    /** A state value that is not what its type says. */
    KEYRAIL_DOES_NOT_PARSE,
    KEYRAIL_OTHER,
} keyrail_problem;

/** What the functions below answer: NULL when it was done. */
typedef struct {
    keyrail_problem problem;
    uint64_t max_bytes;
    /** Says all, also for operators. */
    keyrail_text reason;
} keyrail_refusal;

/** What becomes of the event: rejected where no later try can succeed, otherwise tried again. */
keyrail_disposition keyrail_refused(const keyrail_refusal *refusal);

/** Returns keyrail_refused(…) from the handler's function when the call was refused. */
#define KEYRAIL_TRY(call) \
    do { \
        const keyrail_refusal *keyrail_refusal_ = (call); \
        if (keyrail_refusal_ != NULL) return keyrail_refused(keyrail_refusal_); \
    } while (0)

/* ---- State: of this key, written in the same step as the event's acknowledgement ---- */

/** Reads a value of JSON into a struct. *found says whether it was ever written; if not, the struct is left alone. */
const keyrail_refusal *keyrail_state(keyrail_context *ctx, const char *name, const keyrail_type *type, void *value,
                                     bool *found);
/** Writes a struct as JSON. */
const keyrail_refusal *keyrail_put_state(keyrail_context *ctx, const char *name, const keyrail_type *type,
                                         const void *value);
/** Removes a value; no refusal if there is none. */
const keyrail_refusal *keyrail_remove_state(keyrail_context *ctx, const char *name);
/** A value's bytes; no data if it was never written. Sees the call's own writes. */
keyrail_optional_text keyrail_state_bytes(keyrail_context *ctx, const char *name);
/** Writes bytes that need not be JSON. */
const keyrail_refusal *keyrail_put_state_bytes(keyrail_context *ctx, const char *name, keyrail_text value);

/* ---- Emits: recorded in the same step, published after it, in order ---- */

/** Emits an event. A refusal fails the event in hand whatever is answered. */
const keyrail_refusal *keyrail_emit(keyrail_context *ctx, const keyrail_message *message, const void *value);

/** An event to emit with headers, or one that has no struct. */
typedef struct {
    keyrail_text category, name;
    uint32_t version;
    const keyrail_header *headers;
    size_t header_count;
    /** A JSON object in UTF-8. */
    keyrail_text data;
} keyrail_outgoing;

/** keyrail_emit with headers. *id, unless NULL, becomes the new event's id, which is the same in every try. */
const keyrail_refusal *keyrail_emit_with_headers(keyrail_context *ctx, const keyrail_message *message, const void *value,
                                                 const keyrail_header *headers, size_t header_count, keyrail_text *id);
/** Emits a message as it is. */
const keyrail_refusal *keyrail_emit_raw(keyrail_context *ctx, const keyrail_outgoing *message, keyrail_text *id);

/** A struct as JSON, and back. Parsing answers with a refusal of KEYRAIL_DOES_NOT_PARSE. */
keyrail_text keyrail_to_json(const keyrail_type *type, const void *value);
const keyrail_refusal *keyrail_from_json(keyrail_text json, const keyrail_type *type, void *value);

/* ---- Logging: outside the commit, so a repeated event logs again ---- */

/** The numbers are those of the contract. */
typedef enum {
    KEYRAIL_TRACE, KEYRAIL_DEBUG, KEYRAIL_INFO, KEYRAIL_WARN, KEYRAIL_ERROR, KEYRAIL_CRITICAL,
} keyrail_level;

/** Writes one line to the host's log. `context` groups lines. */
void keyrail_log(keyrail_level level, const char *context, keyrail_text message);

/* ---- The handler ---- */

/** The numbers are those of the contract. */
typedef enum { KEYRAIL_EVENT_HANDLER, KEYRAIL_COMMAND_HANDLER, KEYRAIL_PROCESS_MANAGER } keyrail_role;

/** A type of message and the function that takes it; `data` is the message's struct. */
typedef struct {
    const keyrail_message *message;
    keyrail_disposition (*handle)(keyrail_context *ctx, const void *data);
} keyrail_handles;

/** Which field of a message holds the value that a process manager correlates by. */
typedef struct { const char *category, *message, *field; } keyrail_correlation;
/** A host refuses unknown names that start with `must-` and ignores others. */
typedef struct { const char *name, *value; } keyrail_option;

typedef struct {
    /** The consumer group, `[a-z][a-z0-9_.-]{0,63}`. Another name starts from the beginning. */
    const char *name;
    /** Free text; shown to operators. */
    const char *version;
    keyrail_role role;
    /** The field whose value is the key: events with equal keys run one at a time, in publish order. NULL: nothing. */
    const char *sequential_by;
    /** What a process manager has instead. */
    const keyrail_correlation *correlates;
    size_t correlation_count;
    const keyrail_handles *handles;
    size_t handle_count;
    const keyrail_option *options;
    size_t option_count;
} keyrail_handler;

/** The one handler of a component: the program defines it. */
extern const keyrail_handler keyrail_exported;

#endif
