/**
 * Between the parts of the SDK: what a handler runs on, and the memory of a call.
 *
 * component.c or a test's keyrail_test.c defines the keyrail_host_ functions; nothing else knows which of the two it is.
 */
#ifndef KEYRAIL_INTERNAL_H
#define KEYRAIL_INTERNAL_H

#include "keyrail.h"

bool keyrail_host_get(keyrail_text name, keyrail_text *value);
/** These fill *refusal, without its reason, and *why when they answer false. */
bool keyrail_host_put(keyrail_text name, keyrail_text value, keyrail_refusal *refusal, keyrail_text *why);
bool keyrail_host_remove(keyrail_text name, keyrail_refusal *refusal, keyrail_text *why);
bool keyrail_host_emit(const keyrail_outgoing *message, keyrail_text *id, keyrail_refusal *refusal, keyrail_text *why);
void keyrail_host_log(keyrail_level level, keyrail_text context, keyrail_text message);

/** Runs one event. */
keyrail_disposition keyrail_handle(const keyrail_event *event);

/** A copy in the call's memory, with a zero byte behind it. */
keyrail_text keyrail_copy(const char *data, size_t length);
/** Frees everything of the call. */
void keyrail_free_all(void);

/** A text made of parts. Keeps zero bytes, which printf cannot. */
keyrail_text keyrail_join(const keyrail_text *parts, size_t count);

#endif
