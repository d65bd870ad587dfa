/** The handler {{name}}: counts orders and adds up their amounts, for each order's key. */
#include "handler.h"

static const keyrail_field order_placed_fields[] = {
    KEYRAIL_FIELD(struct order_placed, order_id),
    KEYRAIL_FIELD(struct order_placed, amount_cents),
};
const keyrail_message order_placed = KEYRAIL_MESSAGE("order", "OrderPlaced", 1, struct order_placed, order_placed_fields);

static const keyrail_field order_fields[] = {
    KEYRAIL_FIELD(struct order, count),
    KEYRAIL_FIELD(struct order, total_cents),
};
const keyrail_type order_type = KEYRAIL_TYPE(struct order, order_fields);

/* Events of one order run one at a time, in the order in which they were published. */
static keyrail_disposition on_order_placed(keyrail_context *ctx, const void *data) {
    const struct order_placed *event = data;
    if (event->amount_cents < 0) {
        /* No later try can help: the key stands still until somebody decides. */
        return keyrail_reject(keyrail_text_of("an order cannot cost less than nothing"));
    }
    struct order order = {0};
    bool found;
    KEYRAIL_TRY(keyrail_state(ctx, "order", &order_type, &order, &found));
    order.count += 1;
    order.total_cents += event->amount_cents;
    keyrail_log(KEYRAIL_INFO, "order", keyrail_format("%s has %lld so far", event->order_id.data, (long long)order.total_cents));
    KEYRAIL_TRY(keyrail_put_state(ctx, "order", &order_type, &order));
    return keyrail_done();
}

static const keyrail_handles handles[] = {{&order_placed, on_order_placed}};

const keyrail_handler keyrail_exported = {
    .name = "{{name}}",
    .version = "0.1.0",
    .sequential_by = "order_id",
    .handles = handles,
    .handle_count = KEYRAIL_COUNT(handles),
};
