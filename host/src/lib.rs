//! The host as a library: what the binary and the tests are made of.
//!
//! Dependencies point one way: `access`, `api` → `service`, `engine` → brokers and runtime. The command line
//! is in the binary, the only place that prints.

pub mod access;
pub mod api;
pub mod clock;
pub mod config;
pub mod engine;
pub mod service;
pub mod trial;
