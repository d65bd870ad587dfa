//! Moving outbox records into their streams.

use async_trait::async_trait;

use super::RedisBroker;
use super::answer::Answer;
use super::functions::Call;
use super::keyspace;
use crate::{Error, Routed, Router};

/// Records in one step: it holds the whole server up while it runs.
const ROUTE_MAX: usize = 500;

#[async_trait]
impl Router for RedisBroker {
    async fn route(&self, max: usize, dedupe_window_ms: u64) -> Result<Routed, Error> {
        let mut call = Call::new("keyrail_6_route", 1);
        call.arg(keyspace::OUTBOX).arg(max.clamp(1, ROUTE_MAX)).arg(dedupe_window_ms);
        let mut answer = Answer::of(self.call(&call).await?)?;
        let published = answer.number()? as usize;
        let more = answer.flag()?;
        let mut reasons = answer.list()?;
        let mut abandoned = Vec::with_capacity(reasons.len());
        while !reasons.is_empty() {
            abandoned.push(reasons.text()?);
        }
        Ok(Routed { published, abandoned, more })
    }
}
