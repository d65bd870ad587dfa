//! The Redis broker on a real server, which each test starts for itself.
#![allow(clippy::unwrap_used, missing_docs)]

mod contract;
mod faults;
mod fencing;
mod housekeeping;
mod layout;
mod managers;
mod operating;
mod routing;
mod shared;
mod startup;
mod world;
