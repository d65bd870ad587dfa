//! The handler `{{name}}`: counts orders and adds up their amounts, for each order's key.

use keyrail_guest::{Context, Error, Event, Result, export, handler, info};
use serde::{Deserialize, Serialize};

/// An order was placed.
#[derive(Event, Serialize, Deserialize)]
#[event(category = "order")]
pub struct OrderPlaced {
    pub order_id: String,
    pub amount_cents: i64,
}

/// What is kept of a key.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub count: u64,
    pub total_cents: i64,
}

pub struct Handler;

// Events of one order run one at a time, in the order in which they were published.
#[handler(name = "{{name}}", sequential_by = "order_id")]
impl Handler {
    fn order_placed(&self, event: OrderPlaced, ctx: &mut Context) -> Result<()> {
        if event.amount_cents < 0 {
            // No later try can help: the key stands still until somebody decides.
            return Err(Error::reject("an order cannot cost less than nothing"));
        }
        let mut order: Order = ctx.state("order")?.unwrap_or_default();
        order.count += 1;
        order.total_cents += event.amount_cents;
        info!("{} has {} so far", event.order_id, order.total_cents);
        ctx.put_state("order", &order)
    }
}

export!(Handler);
