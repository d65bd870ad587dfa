//! The host as a library: what the binary and the tests are made of.
//!
//! Dependencies point one way: `access`, `api` → `service`; `modules` → `service`, `engine`; all → brokers and runtime. The command line
//! is in the binary, the only place that prints.

pub mod access;
pub mod api;
pub mod clock;
pub mod config;
pub mod engine;
mod hash;
pub mod modules;
pub mod service;
pub mod telemetry;
pub mod tls;
pub mod trial;
