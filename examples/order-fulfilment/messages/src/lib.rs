//! What happens to an order, as events of four categories, each keyed by the order.

use keyrail_guest::Event;
use serde::{Deserialize, Serialize};

/// A customer ordered.
#[derive(Debug, Clone, PartialEq, Event, Serialize, Deserialize)]
#[event(category = "order")]
pub struct OrderPlaced {
    /// Which order: the key.
    pub order_id: String,
    /// Who ordered.
    pub customer: String,
    /// What it costs.
    pub amount_cents: u64,
}

/// The customer is to pay.
#[derive(Debug, Clone, PartialEq, Event, Serialize, Deserialize)]
#[event(category = "payment")]
pub struct PaymentRequested {
    /// Which order: the key.
    pub order_id: String,
    /// How much.
    pub amount_cents: u64,
}

/// The goods left.
#[derive(Debug, Clone, PartialEq, Event, Serialize, Deserialize)]
#[event(category = "shipment")]
pub struct OrderShipped {
    /// Which order: the key.
    pub order_id: String,
    /// What was paid.
    pub amount_cents: u64,
}

/// Everything that was to happen with an order has happened.
#[derive(Debug, Clone, PartialEq, Event, Serialize, Deserialize)]
#[event(category = "completion")]
pub struct OrderCompleted {
    /// Which order: the key.
    pub order_id: String,
    /// What was paid.
    pub amount_cents: u64,
}
