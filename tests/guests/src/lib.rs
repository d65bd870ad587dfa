//! Test guests.
