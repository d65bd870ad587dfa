//! The HTTP API of a host: on a Unix socket for the commands of its user, over TCP for applications, operators and browsers.
//!
//! [`Server`] offers the operations of a [`crate::service::Service`]; [`Client`] calls them. Paths begin with `/v1/`; what
//! travels is in [`wire`]; who may do what, in [`tokens`]. Nothing else is decided here.

mod caller;
mod client;
mod health;
mod publishing;
mod server;
mod socket;
pub mod tokens;
pub mod wire;

pub use client::Client;
pub use health::{Health, Stage};
pub use server::{ServeError, Server};
