/** The memory of a call: a list of blocks, freed all at once when the next call begins. */
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

typedef struct block { struct block *next; max_align_t start[]; } block;

static block *blocks;

void *keyrail_alloc(size_t bytes) {
    block *made = bytes > SIZE_MAX - sizeof(block) ? NULL : calloc(1, sizeof(block) + bytes);
    if (made == NULL) {
        fprintf(stderr, "keyrail: no memory for %zu bytes\n", bytes);
        abort();
    }
    made->next = blocks;
    blocks = made;
    return made->start;
}

void keyrail_free_all(void) {
    while (blocks != NULL) {
        block *next = blocks->next;
        free(blocks);
        blocks = next;
    }
}

keyrail_text keyrail_copy(const char *data, size_t length) {
    char *copy = keyrail_alloc(length + 1);
    if (length > 0) memcpy(copy, data, length);
    return (keyrail_text){copy, length};
}

keyrail_text keyrail_join(const keyrail_text *parts, size_t count) {
    size_t length = 0;
    for (size_t i = 0; i < count; i++) length += parts[i].length;
    char *joined = keyrail_alloc(length + 1), *end = joined;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].length > 0) memcpy(end, parts[i].data, parts[i].length);
        end += parts[i].length;
    }
    return (keyrail_text){joined, length};
}

keyrail_text keyrail_format(const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    char nothing;
    int length = vsnprintf(&nothing, 0, format, arguments);
    va_end(arguments);
    size_t bytes = length < 0 ? 0 : (size_t)length;
    char *text = keyrail_alloc(bytes + 1);
    if (bytes > 0) vsnprintf(text, bytes + 1, format, again);
    va_end(again);
    return (keyrail_text){text, bytes};
}
