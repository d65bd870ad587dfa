//! An order on its way: placed, payment requested, shipped. Each step is an event of another category, emitted by the
//! handling of the one before, so every order crosses the outbox twice.
//!
//! `shipment` in the order's state counts how often it was shipped: once, whatever was killed.

use keyrail_guest::{Context, Error, Result, export, handler};
use order_messages::{OrderPlaced, OrderShipped, PaymentRequested};
use serde::{Deserialize, Serialize};

/// The state of one order: the value `shipment`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Shipment {
    /// How often it was shipped.
    pub shipped: u64,
    /// What was paid.
    pub amount_cents: u64,
}

/// The handler.
pub struct OrderFulfilment;

#[handler(name = "order-fulfilment", sequential_by = "order_id")]
impl OrderFulfilment {
    fn placed(&self, event: OrderPlaced, ctx: &mut Context) -> Result<()> {
        if event.amount_cents == 0 {
            return Err(Error::reject("an order of 0 cents cannot be paid"));
        }
        ctx.emit(&PaymentRequested { order_id: event.order_id, amount_cents: event.amount_cents })?;
        Ok(())
    }

    fn payment_requested(&self, event: PaymentRequested, ctx: &mut Context) -> Result<()> {
        ctx.emit(&OrderShipped { order_id: event.order_id, amount_cents: event.amount_cents })?;
        Ok(())
    }

    fn shipped(&self, event: OrderShipped, ctx: &mut Context) -> Result<()> {
        let mut shipment: Shipment = ctx.state("shipment")?.unwrap_or_default();
        shipment.shipped += 1;
        shipment.amount_cents += event.amount_cents;
        ctx.put_state("shipment", &shipment)
    }
}

export!(OrderFulfilment);

#[cfg(test)]
mod tests {
    use keyrail_guest::Disposition;
    use keyrail_guest::testing::Harness;

    use super::*;

    fn placed(order_id: &str, amount_cents: u64) -> OrderPlaced {
        OrderPlaced { order_id: order_id.into(), customer: "ada".into(), amount_cents }
    }

    #[test]
    fn a_placed_order_asks_for_its_payment() {
        let mut orders = Harness::new(OrderFulfilment);
        let delivery = orders.deliver(&placed("o-1", 500)).assert_done();
        assert_eq!(
            delivery.emitted::<PaymentRequested>(),
            [PaymentRequested { order_id: "o-1".into(), amount_cents: 500 }]
        );
        assert_eq!(orders.state::<Shipment>("o-1", "shipment"), None);
    }

    #[test]
    fn an_order_ends_shipped_once() {
        let mut orders = Harness::new(OrderFulfilment);
        for order in ["o-1", "o-2"] {
            let deliveries = orders.run(&placed(order, 500));
            assert_eq!(deliveries.len(), 3, "placed, payment requested, shipped");
            assert!(deliveries.iter().all(|delivery| delivery.disposition == Disposition::Done));
        }
        for order in ["o-1", "o-2"] {
            assert_eq!(orders.state(order, "shipment"), Some(Shipment { shipped: 1, amount_cents: 500 }));
        }
    }

    #[test]
    fn an_order_of_nothing_is_rejected() {
        let mut orders = Harness::new(OrderFulfilment);
        let delivery = orders.deliver(&placed("o-1", 0));
        assert_eq!(delivery.disposition, Disposition::Reject("an order of 0 cents cannot be paid".into()));
        assert!(delivery.emits.is_empty());
    }
}
