//! Write Keyrail handlers in Rust.
//!
//! A handler is a plain struct. Each method of its `#[handler]` block takes one type of event; `?` turns an error into
//! a retry, [`Error::reject`] gives up. State writes and emits are kept only when the method answers `Ok`.
//!
//! ```
//! use keyrail_guest::{Context, Event, Result, export, handler};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Event, Serialize, Deserialize)]
//! #[event(category = "order")]
//! struct OrderPlaced {
//!     order_id: String,
//!     amount_cents: u64,
//! }
//!
//! #[derive(Event, Serialize, Deserialize)]
//! #[event(category = "payment")]
//! struct PaymentRequested {
//!     order_id: String,
//!     amount_cents: u64,
//! }
//!
//! struct Billing;
//!
//! #[handler(name = "billing", sequential_by = "order_id")]
//! impl Billing {
//!     fn order_placed(&self, event: OrderPlaced, ctx: &mut Context) -> Result<()> {
//!         let orders = ctx.state::<u64>("orders")?.unwrap_or(0);
//!         ctx.put_state("orders", &(orders + 1))?;
//!         ctx.emit(&PaymentRequested { order_id: event.order_id, amount_cents: event.amount_cents })?;
//!         Ok(())
//!     }
//! }
//!
//! export!(Billing);
//!
//! // Natively, in a test: no wasm and no host.
//! use keyrail_guest::testing::Harness;
//! let mut billing = Harness::new(Billing);
//! let delivery = billing.deliver(&OrderPlaced { order_id: "o-1".into(), amount_cents: 500 });
//! assert_eq!(delivery.emitted::<PaymentRequested>()[0].amount_cents, 500);
//! assert_eq!(billing.state::<u64>("o-1", "orders"), Some(1));
//! ```
//!
//! [`export!`] makes the component's exports and is empty on any other target. Build with
//! `cargo build --target wasm32-wasip2` and `crate-type = ["cdylib", "rlib"]`.
//!
//! The bindings to the host are one private module; everything else here is the same code on both targets.

mod context;
mod error;
mod event;
mod export;
mod handler;
mod host;
mod incoming;
pub mod log;
mod metadata;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;

pub use context::{Context, Outgoing};
pub use error::{Disposition, Error, OrReject, Result};
pub use event::{Event, Field, FieldKind, FieldType};
pub use handler::Handler;
pub use incoming::Incoming;
pub use keyrail_guest_derive::{Event, handler};
pub use metadata::{Correlation, MessageType, Metadata, Role, SequentialBy};

/// For the macros of this crate; not an interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::event::{KindOf, Otherwise, can_be_key};
    #[cfg(target_arch = "wasm32")]
    pub use crate::host::component;
}

/// The handler that the repository's README shows must compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
