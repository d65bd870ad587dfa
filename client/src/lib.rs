//! Publishes events to a Keyrail host over HTTP.
//!
//! ```no_run
//! # async fn example() -> Result<(), keyrail_client::Error> {
//! use keyrail_client::{Client, Event};
//!
//! #[derive(serde::Serialize)]
//! struct OrderPlaced { order_id: String, total_cents: u64 }
//!
//! let client = Client::builder("http://127.0.0.1:7411").build()?;
//! let order = OrderPlaced { order_id: "7".into(), total_cents: 900 };
//! let event = Event::new("order", "OrderPlaced", &order)?.id("order-7-placed");
//! for published in client.publish(vec![event]).await? {
//!     println!("{} is at {}", published.id, published.entry);
//! }
//! # Ok(()) }
//! ```
//!
//! Events of one key take effect in the order in which they were published: in one call, in its order; in several calls, in the
//! order of the calls if each is awaited before the next begins.
//!
//! Every event has an id: the one it was given, or a random one. A call that is answered with "try again", or not at all, is
//! repeated with the same ids, which publishes nothing twice. An id of your own (of the order, of the request) also covers a
//! process that dies in between and starts over.

mod client;
mod event;

pub use client::{Builder, Client, Error, Published, Refusal};
pub use event::Event;
