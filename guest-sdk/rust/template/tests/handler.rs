//! The handler as a plain struct: no WebAssembly, no host.

use handler::{Handler, Order, OrderPlaced};
use keyrail_guest::Disposition;
use keyrail_guest::testing::Harness;

fn placed(order_id: &str, amount_cents: i64) -> OrderPlaced {
    OrderPlaced { order_id: order_id.into(), amount_cents }
}

#[test]
fn it_counts_and_adds_up_for_each_key() {
    let mut handler = Harness::new(Handler);
    handler.deliver(&placed("o-1", 500)).assert_done();
    handler.deliver(&placed("o-2", 100)).assert_done();
    handler.deliver(&placed("o-1", 250)).assert_done();
    assert_eq!(handler.state("o-1", "order"), Some(Order { count: 2, total_cents: 750 }));
    assert_eq!(handler.state("o-2", "order"), Some(Order { count: 1, total_cents: 100 }));
}

#[test]
fn a_negative_amount_is_rejected_and_changes_nothing() {
    let mut handler = Harness::new(Handler);
    let delivery = handler.deliver(&placed("o-1", -1));
    assert!(matches!(delivery.disposition, Disposition::Reject(_)));
    assert_eq!(handler.state::<Order>("o-1", "order"), None);
}
