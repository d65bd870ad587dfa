//! What Keyrail decides: keys and names, what a catalog accepts, what a partition does next, when a failed event is
//! tried again.
//!
//! Pure: no IO, no async, no clock, no randomness. Time and chance enter as arguments, so that all of it runs in a
//! simulation. The engine performs what is decided here and feeds the answers back.

mod catalog;
mod deployment;
mod effects;
mod entry;
mod hot_key;
mod key;
mod lease;
mod membership;
mod name;
mod option;
mod partition;
mod refusal;
mod retry;
mod step;
mod trace;
mod tries;

pub use catalog::{
    Accepted, Capabilities, Catalog, CategoryEntry, Correlation, Field, FieldType, HandlerEntry, MessageType, Metadata,
    Role, SequentialBy,
};
pub use deployment::{Candidate, DeployError, Deployment, Proposal, Revision, Selection};
pub use effects::{Effects, Outgoing, StateChange};
pub use entry::{Content, Entry, EntryId, EntryRef, Event, Lane, ParseEntryIdError, StreamId};
pub use hot_key::{HotKey, Share};
pub use key::{Key, KeyError, KeyRules};
pub use lease::{AttemptsRecord, Generation, HaltCause, HaltRecord, Lease, OwnerId, PartitionId, PartitionSpec, Scope};
pub use membership::{Held, HeldState, Member, Membership, Usage};
pub use name::{CategoryName, GroupName, MessageName, NameError};
pub use option::OptionError;
pub use partition::{BatchLimits, Partition, Policy, ReadAheadLimits};
pub use refusal::{EventError, Refusal};
pub use retry::RetryPolicy;
pub use step::{Effect, Input, Outcome};
pub use trace::{TRACEPARENT, TRACESTATE, TraceContext, trace_headers};
pub use tries::{Failure, FailureKind, Verdict};
