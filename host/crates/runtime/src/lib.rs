//! The plugin host: handlers as WebAssembly components, under limits.
//!
//! A [`Runtime`] loads a component into a [`Module`]: compiled, checked against what this host offers, described. A module
//! makes [`Instance`]s, and an instance handles one event at a time with [`Instance::call`].
//!
//! What holds: a guest has nothing but what it imports, and nothing of that reaches the outside but through [`CallHost`]
//! and the log. Whatever a guest does ends its own call and no more. An instance that failed is never called again.
//!
//! The crate knows nothing of brokers.

mod bindings;
mod cache;
mod call;
mod clock;
mod contract;
mod describe;
mod engine;
mod error;
mod failure;
mod guest;
mod imports;
mod instance;
mod limiter;
mod log;
mod module;
mod overlay;
mod random;
mod runtime;
mod settings;

pub use call::{Answer, Call, CallHost, Emit, EmitRefusal};
pub use error::{InstantiateError, LoadError, SetupError};
pub use instance::Instance;
pub use module::Module;
pub use runtime::Runtime;
pub use settings::Settings;
