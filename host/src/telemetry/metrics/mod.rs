//! Metrics, named and labelled as Prometheus has it: `keyrail_…`, seconds and bytes, `_total` for what only grows.
//!
//! Invariant: labels are [`LABELS`] and no others, and their values come from the catalog or from our own code. A key, an
//! event or an error's text is never a value: the number of series is bounded by what is registered, whatever is published.

mod fleet;
mod guests;
mod page;
mod process;
mod publish;
mod work;

pub use fleet::{Fleet, FleetCategory, FleetGroup, FleetSource, FleetView};
pub use guests::Guests;
pub use page::{Labels, Page, Source};
pub use process::Process;
pub(crate) use publish::Tally;
pub use publish::{PublishMetrics, PublishedOf};
pub use work::{LossCause, PartitionMetrics, WorkMetrics};

use prometheus_client::encoding::prometheus_text;
use prometheus_client::registry::Registry;

/// What every name begins with.
pub const PREFIX: &str = "keyrail";

/// All labels that there are; a histogram has `le` as well.
pub const LABELS: [&str; 6] = ["category", "group", "role", "cause", "result", "version"];

/// Appends all metrics of a registry.
pub(super) fn encode(text: &mut String, registry: &Registry) {
    // Writing into a String cannot fail.
    let written = prometheus_text::encode(text, registry);
    debug_assert!(written.is_ok(), "a metric cannot be written");
}
