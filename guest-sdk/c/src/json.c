/** Structs as JSON and back, by the tables of their fields. JSON itself is yyjson's business. */
#include "internal.h"
#include "yyjson.h"

/* Nested structs point to constants, so only a table that contains itself gets deeper than this. */
enum { DEPTH_MAX = 32 };

static void *member(const void *value, const keyrail_field *field) {
    return (char *)value + field->offset;
}

/** yyjson's allocations live in the call's memory: nothing to free, also when a handler returns early. */
static void *allocate(void *unused, size_t bytes) {
    (void)unused;
    return keyrail_alloc(bytes);
}
static void *reallocate(void *unused, void *old, size_t old_bytes, size_t bytes) {
    (void)unused;
    void *made = keyrail_alloc(bytes);
    memcpy(made, old, old_bytes < bytes ? old_bytes : bytes);
    return made;
}
static void release(void *unused, void *memory) {
    (void)unused, (void)memory;
}
static const yyjson_alc in_call = {allocate, reallocate, release, NULL};

static const char *kind_name(const keyrail_field *field) {
    switch (field->kind) {
        case KEYRAIL_INTEGER: return "a 64-bit integer";
        case KEYRAIL_NUMBER: return "a number";
        case KEYRAIL_BOOLEAN: return "a boolean";
        case KEYRAIL_LIST: return "a list";
        case KEYRAIL_OBJECT: return "an object";
        default: return "a string";
    }
}

static const char *read_object(yyjson_val *object, const keyrail_type *type, void *value, int depth);

/** NULL, or what is wrong. */
static const char *read_field(yyjson_val *json, const keyrail_field *field, void *value, int depth) {
    void *to = member(value, field);
    bool fits = false;
    switch (field->kind) {
        case KEYRAIL_TEXT: case KEYRAIL_TIMESTAMP: case KEYRAIL_BINARY:
            if ((fits = yyjson_is_str(json))) {
                keyrail_text text = {yyjson_get_str(json), yyjson_get_len(json)};
                memcpy(to, &text, sizeof text);
            }
            break;
        case KEYRAIL_INTEGER:
            fits = yyjson_is_sint(json) || (yyjson_is_uint(json) && yyjson_get_uint(json) <= INT64_MAX);
            if (fits && field->optional) *(keyrail_optional_integer *)to = (keyrail_optional_integer){true, yyjson_get_sint(json)};
            if (fits && !field->optional) *(int64_t *)to = yyjson_get_sint(json);
            break;
        case KEYRAIL_NUMBER:
            fits = yyjson_is_num(json);
            if (fits && field->optional) *(keyrail_optional_number *)to = (keyrail_optional_number){true, yyjson_get_num(json)};
            if (fits && !field->optional) *(double *)to = yyjson_get_num(json);
            break;
        case KEYRAIL_BOOLEAN:
            fits = yyjson_is_bool(json);
            if (fits && field->optional) *(keyrail_optional_boolean *)to = (keyrail_optional_boolean){true, yyjson_get_bool(json)};
            if (fits && !field->optional) *(bool *)to = yyjson_get_bool(json);
            break;
        case KEYRAIL_LIST: case KEYRAIL_OBJECT:
            fits = field->kind == KEYRAIL_LIST ? yyjson_is_arr(json) : yyjson_is_obj(json);
            if (fits && field->nested != NULL) {
                void *nested = keyrail_alloc(field->nested->size);
                *(void **)to = nested;
                return read_object(json, field->nested, nested, depth + 1);
            }
            if (fits) {
                size_t length = 0;
                const char *raw = yyjson_val_write_opts(json, 0, &in_call, &length, NULL);
                keyrail_text text = {raw, length};
                memcpy(to, &text, sizeof text);
            }
            break;
    }
    return fits ? NULL : keyrail_format("%s is not %s", field->name, kind_name(field)).data;
}

static const char *read_object(yyjson_val *object, const keyrail_type *type, void *value, int depth) {
    if (!yyjson_is_obj(object)) return "it is not an object";
    if (depth > DEPTH_MAX) return "it is nested too deeply";
    memset(value, 0, type->size);
    for (size_t i = 0; i < type->field_count; i++) {
        const keyrail_field *field = &type->fields[i];
        yyjson_val *json = yyjson_obj_get(object, field->name);
        if (field->optional && (json == NULL || yyjson_is_null(json))) continue;
        if (json == NULL) return keyrail_format("%s is missing", field->name).data;
        const char *wrong = read_field(json, field, value, depth);
        if (wrong != NULL) return wrong;
    }
    return NULL;
}

const keyrail_refusal *keyrail_from_json(keyrail_text json, const keyrail_type *type, void *value) {
    yyjson_read_err error = {0};
    /* Without YYJSON_READ_INSITU the input is not written to. */
    yyjson_doc *document = yyjson_read_opts((char *)json.data, json.length, 0, &in_call, &error);
    const char *wrong = document == NULL ? keyrail_format("%s at byte %zu", error.msg, error.pos).data
                                         : read_object(yyjson_doc_get_root(document), type, value, 0);
    if (wrong == NULL) return NULL;
    keyrail_refusal *refusal = keyrail_alloc(sizeof *refusal);
    refusal->problem = KEYRAIL_DOES_NOT_PARSE;
    refusal->reason = keyrail_text_of(wrong);
    return refusal;
}

static yyjson_mut_val *write_object(yyjson_mut_doc *document, const keyrail_type *type, const void *value);

/** NULL leaves the member out. */
static yyjson_mut_val *write_field(yyjson_mut_doc *document, const keyrail_field *field, const void *value) {
    const void *from = member(value, field);
    keyrail_text text;
    switch (field->kind) {
        case KEYRAIL_TEXT: case KEYRAIL_TIMESTAMP: case KEYRAIL_BINARY:
            memcpy(&text, from, sizeof text);
            if (text.data == NULL) return field->optional ? NULL : yyjson_mut_str(document, "");
            return yyjson_mut_strn(document, text.data, text.length);
        case KEYRAIL_INTEGER:
            if (!field->optional) return yyjson_mut_sint(document, *(const int64_t *)from);
            const keyrail_optional_integer *integer = from;
            return integer->present ? yyjson_mut_sint(document, integer->value) : NULL;
        case KEYRAIL_NUMBER:
            if (!field->optional) return yyjson_mut_real(document, *(const double *)from);
            const keyrail_optional_number *number = from;
            return number->present ? yyjson_mut_real(document, number->value) : NULL;
        case KEYRAIL_BOOLEAN:
            if (!field->optional) return yyjson_mut_bool(document, *(const bool *)from);
            const keyrail_optional_boolean *boolean = from;
            return boolean->present ? yyjson_mut_bool(document, boolean->value) : NULL;
        default:
            break;
    }
    if (field->nested != NULL) {
        const void *nested = *(void *const *)from;
        return nested == NULL ? NULL : write_object(document, field->nested, nested);
    }
    memcpy(&text, from, sizeof text);
    return text.data == NULL ? NULL : yyjson_mut_rawn(document, text.data, text.length);
}

static yyjson_mut_val *write_object(yyjson_mut_doc *document, const keyrail_type *type, const void *value) {
    yyjson_mut_val *object = yyjson_mut_obj(document);
    for (size_t i = 0; i < type->field_count; i++) {
        const keyrail_field *field = &type->fields[i];
        yyjson_mut_val *json = write_field(document, field, value);
        if (json != NULL) yyjson_mut_obj_add(object, yyjson_mut_str(document, field->name), json);
    }
    return object;
}

keyrail_text keyrail_to_json(const keyrail_type *type, const void *value) {
    yyjson_mut_doc *document = yyjson_mut_doc_new(&in_call);
    yyjson_mut_doc_set_root(document, write_object(document, type, value));
    keyrail_text json = {NULL, 0};
    json.data = yyjson_mut_write_opts(document, 0, &in_call, &json.length, NULL);
    return json;
}
