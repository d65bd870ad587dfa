/** The messages and the state of this handler: what the test knows of it too. */
#ifndef HANDLER_H
#define HANDLER_H

#include "keyrail.h"

/** An order was placed. */
struct order_placed {
    /** Which order: the key. */
    keyrail_text order_id;
    int64_t amount_cents;
};
extern const keyrail_message order_placed;

/** The state of one order: the value `order`. */
struct order {
    int64_t count, total_cents;
};
extern const keyrail_type order_type;

#endif
