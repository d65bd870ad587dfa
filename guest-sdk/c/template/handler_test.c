#include "handler.h"
#include "keyrail_test.h"

static keyrail_delivery place(keyrail_test *test, const char *order_id, int64_t amount_cents) {
    struct order_placed event = {keyrail_text_of(order_id), amount_cents};
    return keyrail_test_deliver(test, &order_placed, &event);
}

static void orders_are_counted_by_key(void) {
    keyrail_test *test = keyrail_test_new();
    KEYRAIL_CHECK(place(test, "o-1", 500).disposition.outcome == KEYRAIL_DONE);
    KEYRAIL_CHECK(place(test, "o-2", 100).disposition.outcome == KEYRAIL_DONE);
    KEYRAIL_CHECK(place(test, "o-1", 250).disposition.outcome == KEYRAIL_DONE);

    struct order order;
    KEYRAIL_CHECK(keyrail_test_state(test, "o-1", "order", &order_type, &order));
    KEYRAIL_CHECK(order.count == 2);
    KEYRAIL_CHECK(order.total_cents == 750);
    keyrail_test_free(test);
}

static void a_negative_amount_is_rejected(void) {
    keyrail_test *test = keyrail_test_new();
    KEYRAIL_CHECK(place(test, "o-1", -1).disposition.outcome == KEYRAIL_REJECT);
    KEYRAIL_CHECK(keyrail_test_state_bytes(test, "o-1", "order").data == NULL);
    keyrail_test_free(test);
}

int main(void) {
    orders_are_counted_by_key();
    a_negative_amount_is_rejected();
    puts("2 tests passed");
}
