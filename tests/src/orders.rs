//! Synthetic orders, and that each ends shipped exactly once.

use std::fmt::Write;

use crate::states;

/// JSON Lines of `count` placed orders.
pub fn placed(count: usize) -> String {
    let mut lines = String::new();
    for n in 0..count {
        let cents = 100 + n % 900;
        writeln!(
            lines,
            r#"{{"id":"order-{n}","category":"order","type":"OrderPlaced","data":{{"order_id":"o{n}","customer":"c{}","amount_cents":{cents}}}}}"#,
            n % 100
        )
        .expect("a string takes everything");
    }
    lines
}

/// Asserts that each of `count` orders ended shipped exactly once, and was paid exactly once on the way.
pub fn assert_shipped_once(broker: &str, count: usize) {
    let states = states(broker, "order-fulfilment");
    for n in 0..count {
        let key = format!("o{n}");
        let state = states.get(&key).unwrap_or_else(|| panic!("order {key} has no state"));
        assert_eq!(state["shipment"]["shipped"], 1, "order {key}: {state}");
    }
}

/// Asserts that the process manager saw each of `count` orders placed, paid and shipped once, and said so once.
pub fn assert_completed_once(broker: &str, count: usize) {
    let states = states(broker, "order-process");
    for n in 0..count {
        let key = format!("o{n}");
        let state = states.get(&key).unwrap_or_else(|| panic!("order {key} has no process"));
        let expected = serde_json::json!({"placed": 1, "paid": 1, "shipped": 1, "told": true, "completed": 1});
        assert_eq!(state["process"], expected, "order {key}");
    }
}
