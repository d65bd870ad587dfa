//! Brokers: where events, leases, state and the outbox live, and the fenced operations on them.
//!
//! The traits are what the engine knows. Whatever an owner does takes a [`Lease`], so an unfenced write cannot be written
//! down. Every operation is one atomic step, checked whole before its first write.
//!
//! A call that failed with [`Error::Unavailable`] **may have happened**: the caller drops what it read ahead and takes
//! again with `recover`.

mod diagnosis;
mod error;
mod traits;

#[cfg(any(test, feature = "contract"))]
pub mod contract;
pub mod embedded;
pub mod redis;
#[cfg(any(test, feature = "contract"))]
pub mod testing;
pub mod wire;

pub use diagnosis::{Check, CheckOutcome};
pub use error::{AcquireError, Error, FencedError, PublishError};
pub use traits::housekeeping::{Housekeeping, IdleStream, Retention};
pub use traits::inspect::{
    Backlog, Inspect, Lag, PartitionRow, ReadFrom, Reading, Snapshot, Standing, StateRow, VersionSince, Wanted,
    WantedKey,
};
pub use traits::members::Members;
pub use traits::modules::{ModuleInfo, Modules};
pub use traits::operate::{
    AuditRow, By, DeadLetter, Head, HeadAction, Operate, OperateError, Paused, REDRIVEN_FOR, Rows,
};
pub use traits::shared::{Delivery, DeliveryRef, SharedLog, SharedSource, SharedTaken};
pub use traits::{
    Acquired, Bell, Bells, Broker, CatalogStore, Commit, Committed, Heartbeat, Leases, Log, Publication, Publish,
    Published, ReadySet, ReadySource, Routed, Router, Taken,
};
