//! Settings of traces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::zeros;

/// Where traces go, and how many.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TracesConfig {
    /// The collector, which takes OTLP over HTTP: `http://127.0.0.1:4318`. Empty for no traces; what publishers send of a
    /// trace is handed on all the same.
    pub endpoint: String,
    /// Which part of the events that come without a trace begins one, from 0 to 1. An event that comes with one is traced if
    /// its publisher says so.
    pub sample_ratio: f64,
    /// How this host is named in traces.
    pub service_name: String,
    /// Headers for the collector, such as a token: `name=value`, separated by commas.
    pub headers: String,
    /// Whether keys are in traces.
    pub with_keys: bool,
    /// Spans that wait to be sent; further ones are dropped.
    pub queue_max: usize,
    /// Spans in one request.
    pub batch_max: usize,
    /// The longest that a span waits for others.
    pub interval_ms: u64,
    /// How long a request may take.
    pub timeout_ms: u64,
    /// How long a host that ends waits for what is not sent yet.
    pub flush_max_ms: u64,
}

impl Default for TracesConfig {
    fn default() -> Self {
        Self {
            endpoint: String::new(),
            sample_ratio: 1.0,
            service_name: "keyrail".into(),
            headers: String::new(),
            with_keys: false,
            queue_max: 8_192,
            batch_max: 512,
            interval_ms: 1_000,
            timeout_ms: 5_000,
            flush_max_ms: 2_000,
        }
    }
}

impl TracesConfig {
    pub(super) fn problems(&self) -> Vec<String> {
        let values = [
            ("queue_max", self.queue_max as u64),
            ("batch_max", self.batch_max as u64),
            ("interval_ms", self.interval_ms),
            ("timeout_ms", self.timeout_ms),
        ];
        let mut problems = zeros("traces", &values);
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            problems.push(format!("traces.sample_ratio is {}; it must be from 0 to 1", self.sample_ratio));
        }
        let is_url = |scheme: &str| self.endpoint.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty());
        if !self.endpoint.is_empty() && !is_url("http://") && !is_url("https://") {
            problems.push(format!(
                "traces.endpoint is {:?}; give the URL of a collector, such as http://127.0.0.1:4318",
                self.endpoint
            ));
        }
        if self.batch_max > self.queue_max {
            problems.push(format!(
                "traces.batch_max is {}; it must be at most traces.queue_max ({})",
                self.batch_max, self.queue_max
            ));
        }
        // The values may be secrets, so none is shown.
        if self.header_pairs().is_none() {
            problems.push("traces.headers has a part that is not of the form name=value".into());
        }
        problems
    }

    /// The headers for the collector.
    pub fn header_pairs(&self) -> Option<Vec<(String, String)>> {
        let parts = self.headers.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(|part| part.split_once('=').map(|(name, value)| (name.trim().into(), value.trim().into()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_collector_is_said_and_no_secret_is_shown() {
        let wrong = TracesConfig {
            endpoint: "localhost:4318".into(),
            sample_ratio: 1.5,
            headers: "authorization=Bearer x, hush".into(),
            batch_max: 9_000,
            ..TracesConfig::default()
        };
        let problems = wrong.problems().join("; ");
        for part in ["traces.endpoint is \"localhost:4318\"", "from 0 to 1", "traces.headers", "traces.batch_max"] {
            assert!(problems.contains(part), "{problems}");
        }
        assert!(!problems.contains("hush"), "{problems}");
        assert!(!TracesConfig { sample_ratio: f64::NAN, ..TracesConfig::default() }.problems().is_empty());
        let right = TracesConfig { headers: "a=b=c, d = e ,".into(), ..TracesConfig::default() };
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        assert_eq!(right.header_pairs(), Some(vec![pair("a", "b=c"), pair("d", "e")]));
    }
}
