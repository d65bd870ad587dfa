//! The local HTTP API of a host, on a Unix socket: what other commands use while a host holds the broker.
//!
//! [`Server`] offers the operations of a [`crate::service::Service`]; [`Client`] calls them. Paths begin with `/v1/`; what
//! travels is in [`wire`]. Nothing is decided here.

mod client;
mod publishing;
mod server;
mod socket;
pub mod wire;

pub use client::Client;
pub use server::{ServeError, Server};
