//! The plugin host: handlers as WebAssembly components, under limits.
//!
//! A [`Runtime`] loads a component and its [`Manifest`] into a [`Module`]: compiled, checked against what this host offers and
//! the manifest grants, described. A module makes [`Instance`]s, and an instance handles one event at a time with [`Instance::call`].
//!
//! What holds: a guest has nothing but what it imports, and nothing of that reaches the outside but through [`CallHost`],
//! the log, and what its manifest grants within the operator's ceilings. Whatever a guest does ends its own call and no more. An instance that failed is never called again.
//!
//! The crate knows nothing of brokers.

mod bindings;
mod cache;
mod call;
mod clock;
mod compile;
mod contract;
mod denied;
mod describe;
mod engine;
mod error;
mod failure;
mod grants;
mod guest;
mod http;
mod imports;
mod instance;
mod limiter;
mod limits;
mod log;
pub mod manifest;
mod module;
mod overlay;
mod parts;
mod random;
mod room;
mod runtime;
mod settings;
mod usage;

pub use call::{Answer, Call, CallHost, Emit, EmitRefusal};
pub use compile::{Compiler, compile_component};
pub use error::{InstantiateError, LoadError, SetupError};
pub use http::{HttpAnswer, HttpExchange, HttpFault, HttpPlayer, HttpRecorder, HttpRequest, HttpResponse, HttpRoute};
pub use instance::Instance;
pub use limits::{Limits, Wishes};
pub use manifest::{Manifest, ManifestError};
pub use module::Module;
pub use runtime::{Runtime, RuntimeLoad};
pub use settings::Settings;
pub use usage::Usage;

pub(crate) use runtime::COMPONENT_MAX_BYTES;
