/** Counts what was placed under each order. */
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

static keyrail_disposition on_order_placed(keyrail_context *ctx, const void *data) {
    const struct order_placed *event = data;
    if (event->amount_cents < 0) return keyrail_reject(keyrail_text_of("the amount is negative"));
    struct order order = {0};
    bool found;
    KEYRAIL_TRY(keyrail_state(ctx, "order", &order_type, &order, &found));
    order.count += 1;
    order.total_cents += event->amount_cents;
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
