//! The runtime of the guests: instances, and how often a component had to be compiled.

use std::sync::Arc;

use async_trait::async_trait;
use keyrail_runtime::Runtime;

use super::{Page, Source};

/// Of this runtime.
pub struct Guests(pub Arc<Runtime>);

#[async_trait]
impl Source for Guests {
    async fn fill(&self, page: &mut Page) {
        let load = self.0.load_now();
        page.gauge("guest_instances", "Instances of handlers that there are", vec![], load.instances as f64);
        page.gauge("guest_instances_max", "Instances that there may be", vec![], load.instances_max as f64);
        let help = "Components that were loaded, and whether their compiled code was in the cache";
        let result = |result: &str| vec![("result", result.to_string())];
        page.counter("module_cache", help, result("hit"), load.cache_hits as f64);
        page.counter("module_cache", help, result("miss"), load.cache_misses as f64);
    }
}
