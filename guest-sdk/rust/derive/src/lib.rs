//! Derive macros of `keyrail-guest`.
