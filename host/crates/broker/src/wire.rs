//! Versioned binary records.
