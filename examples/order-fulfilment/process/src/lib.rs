//! A process manager: follows an order over `order`, `payment` and `shipment`, and says once, with an event of
//! `completion` that it hears too, when everything has happened.
//!
//! One host owns all four streams of an order, so no two of its events are ever here at once and the state needs no lock.
//! Between the categories no order is promised: a shipment may come here before its payment, so nothing is decided by what
//! came last, only by what is there.

use keyrail_guest::{Context, Result, export, handler};
use order_messages::{OrderCompleted, OrderPlaced, OrderShipped, PaymentRequested};
use serde::{Deserialize, Serialize};

/// The state of one order: the value `process`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Times that it was placed.
    pub placed: u64,
    /// Times that a payment was asked for.
    pub paid: u64,
    /// Times that it was shipped.
    pub shipped: u64,
    /// Whether its completion was told.
    pub told: bool,
    /// Times that its completion was heard: once.
    pub completed: u64,
}

/// The process manager.
pub struct OrderProcess;

#[handler(name = "order-process", role = "process-manager", correlate_by = "order_id")]
impl OrderProcess {
    fn placed(&self, event: OrderPlaced, ctx: &mut Context) -> Result<()> {
        advance(ctx, event.order_id, event.amount_cents, |process| process.placed += 1)
    }

    fn payment_requested(&self, event: PaymentRequested, ctx: &mut Context) -> Result<()> {
        advance(ctx, event.order_id, event.amount_cents, |process| process.paid += 1)
    }

    fn shipped(&self, event: OrderShipped, ctx: &mut Context) -> Result<()> {
        advance(ctx, event.order_id, event.amount_cents, |process| process.shipped += 1)
    }

    fn completed(&self, event: OrderCompleted, ctx: &mut Context) -> Result<()> {
        advance(ctx, event.order_id, event.amount_cents, |process| process.completed += 1)
    }
}

fn advance(ctx: &mut Context, order_id: String, amount_cents: u64, step: impl FnOnce(&mut Process)) -> Result<()> {
    let mut process: Process = ctx.state("process")?.unwrap_or_default();
    step(&mut process);
    if !process.told && process.placed > 0 && process.paid > 0 && process.shipped > 0 {
        process.told = true;
        ctx.emit(&OrderCompleted { order_id, amount_cents })?;
    }
    ctx.put_state("process", &process)
}

export!(OrderProcess);

#[cfg(test)]
mod tests {
    use keyrail_guest::testing::Harness;

    use super::*;

    #[test]
    fn an_order_is_complete_once_whatever_came_last() {
        let order_id = || "o-1".to_string();
        let placed = OrderPlaced { order_id: order_id(), customer: "ada".into(), amount_cents: 500 };
        let paid = PaymentRequested { order_id: order_id(), amount_cents: 500 };
        let shipped = OrderShipped { order_id: order_id(), amount_cents: 500 };
        let mut orders = Harness::new(OrderProcess);
        assert!(orders.deliver(&shipped).assert_done().emits.is_empty());
        assert!(orders.deliver(&placed).assert_done().emits.is_empty());
        let last = orders.deliver(&paid).assert_done();
        assert_eq!(last.emitted::<OrderCompleted>(), [OrderCompleted { order_id: order_id(), amount_cents: 500 }]);
        assert!(orders.deliver(&paid).assert_done().emits.is_empty(), "told twice");
        let state = orders.state::<Process>("o-1", "process");
        assert_eq!(state, Some(Process { placed: 1, paid: 2, shipped: 1, told: true, completed: 0 }));
    }
}
