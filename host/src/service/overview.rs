//! The whole fleet at one glance: hosts, categories, what waits and since when.
//!
//! Invariant: however many look, the broker is asked once in a while. A look that failed is told to all that asked in that
//! time, so that a broker that is away is not asked by each of them in turn.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use keyrail_broker::{Backlog, Error, Lag, ReadySource};
use keyrail_ordering::{Catalog, CategoryName, GroupName, HotKey, Member, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::operate::{OperationError, timestamp};
use super::{Cursor, HaltedRow, Page, Service};
use crate::clock;

/// Keys that are looked at to reckon what waits of a source: 4 ms of a server, in parts of half a millisecond.
const SAMPLE_MAX: usize = 256;
/// Partitions that stand still, of one source at a time.
const HALTED_SHOWN_MAX: usize = 100;
/// Hot keys that are shown.
const HOT_KEYS_MAX: usize = 16;
/// Sources that are looked at beside each other.
const SOURCES_AT_ONCE: usize = 4;

/// The fleet at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overview {
    /// When, by the broker's clock, in RFC 3339.
    pub at: String,
    /// Where the broker is; never with a password.
    pub broker: String,
    /// The release of the host that looked.
    pub release: String,
    /// The hosts that are up, by owner.
    pub hosts: Vec<Member>,
    /// The categories, by name.
    pub categories: Vec<CategoryOverview>,
    /// Emitted events that are on their way.
    pub outbox: OutboxOverview,
    /// Partitions that stand still.
    pub halted: u64,
    /// Events that were set aside and are kept. Where very many keys hold some, at least so many.
    #[serde(default)]
    pub dead_letters: u64,
    /// The busiest keys of all hosts, the busiest first; few.
    #[serde(default)]
    pub hot_keys: Vec<HotKey>,
}

/// One category.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryOverview {
    /// Its name.
    pub category: CategoryName,
    /// The field that is its key; none if it is not partitioned.
    pub key_field: Option<String>,
    /// Events that it was given, since they are counted; none if none was. Only grows.
    pub published: Option<u64>,
    /// Streams of keys that there are; a key with a backfill lane has two.
    pub keys: u64,
    /// Whether all of it is paused.
    pub paused: bool,
    /// The handlers that read it, by name.
    pub groups: Vec<GroupOverview>,
}

/// A handler on a category.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupOverview {
    /// The handler.
    pub group: GroupName,
    /// Its role. A process manager is listed under each category that it reads.
    pub role: Role,
    /// Keys that have work; of a process manager those of all its categories.
    pub ready: u64,
    /// Keys that stand still, likewise.
    pub halted: u64,
    /// What it has before it; of a process manager under its first category only, and none under the others.
    pub lag: Option<LagOverview>,
    /// Events that it handled on the hosts that are up, since they loaded it. Only grows while these hosts run it.
    pub settled: u64,
}

/// What a handler has before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LagOverview {
    /// Events that it has not settled.
    pub events: u64,
    /// Whether they were counted; otherwise they are reckoned from a sample.
    pub exact: bool,
    /// How long the oldest of those that were looked at has been there.
    pub oldest_ms: Option<u64>,
}

/// Emitted events that are not in their streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutboxOverview {
    /// On their way.
    pub records: u64,
    /// Put aside, since they can never be published.
    pub abandoned: u64,
}

/// What a dashboard shows: the fleet, and the first partitions that stand still.
#[derive(Debug)]
pub struct Live {
    /// The fleet.
    pub overview: Overview,
    /// The first page of what stands still.
    pub halted: Page<HaltedRow>,
}

/// Until when it is good for, and what was found.
type Look = (u64, Result<Arc<Live>, Error>);

/// The last look, for all who ask in the time that it is good for.
#[derive(Debug)]
pub(super) struct Glance {
    pub(super) ttl_ms: u64,
    last: Mutex<Option<Look>>,
}

impl Glance {
    pub(super) fn new(ttl_ms: u64) -> Self {
        Self { ttl_ms, last: Mutex::new(None) }
    }
}

impl Service {
    /// The fleet, as of at most [`crate::config::ApiConfig::view_ttl_ms`] ago.
    pub async fn live(&self) -> Result<Arc<Live>, Error> {
        let mut last = self.glance.last.lock().await;
        if let Some((until_ms, found)) = &*last
            && clock::now_ms() < *until_ms
        {
            return found.clone();
        }
        let found = self.look_around().await.map(Arc::new);
        *last = Some((clock::now_ms() + self.glance.ttl_ms, found.clone()));
        found
    }

    async fn look_around(&self) -> Result<Live, Error> {
        let overview = self.look().await?;
        let halted = match overview.halted {
            0 => Page { rows: vec![], next: None },
            _ => match self.halted(None, None, Cursor::default(), HALTED_SHOWN_MAX).await {
                Ok(page) => page,
                Err(OperationError::Broker(error)) => return Err(error),
                Err(error) => return Err(Error::Refused(error.to_string())),
            },
        };
        Ok(Live { overview, halted })
    }

    async fn look(&self) -> Result<Overview, Error> {
        let (catalog, _) = self.broker.catalog().await?;
        let mut hosts = self.broker.members().await?;
        hosts.sort_by(|a, b| a.owner.cmp(&b.owner));
        let sources: Vec<_> =
            catalog.handlers.keys().flat_map(|group| ReadySource::of_handler(&catalog, group)).collect();
        let Backlog { outbox, abandoned, .. } = self.broker.backlog(&[]).await?;
        let looks = sources.into_iter().map(|source| {
            let broker = self.broker.clone();
            async move { broker.lag(&source, SAMPLE_MAX).await.map(|lag| (source, lag)) }
        });
        let looks: Vec<_> = looks.collect();
        let lags: Vec<(ReadySource, Lag)> =
            futures::stream::iter(looks).buffered(SOURCES_AT_ONCE).try_collect().await?;
        let names: Vec<CategoryName> = catalog.categories.keys().cloned().collect();
        let published = self.broker.published(&names).await?;
        let dead_letters = self.broker.letters_kept(&names).await?;
        let now_ms = self.broker.read_streams(&[], 1).await?.at_ms;
        let mut categories = Vec::with_capacity(names.len());
        for (category, published) in names.into_iter().zip(published) {
            categories.push(CategoryOverview {
                key_field: catalog.categories.get(&category).and_then(|entry| entry.key_field.clone()),
                published,
                keys: self.broker.live_keys(&category).await?,
                paused: self.broker.paused(&category).await?.iter().any(|paused| paused.key.is_none()),
                groups: groups(&catalog, &hosts, &lags, &category, now_ms),
                category,
            });
        }
        let hot_keys = hot_keys(&hosts);
        Ok(Overview {
            at: timestamp(now_ms),
            broker: self.broker.address(),
            release: env!("CARGO_PKG_VERSION").into(),
            hosts,
            categories,
            outbox: OutboxOverview { records: outbox, abandoned },
            halted: lags.iter().map(|(_, lag)| lag.halted).sum(),
            dead_letters,
            hot_keys,
        })
    }
}

fn groups(
    catalog: &Catalog,
    hosts: &[Member],
    lags: &[(ReadySource, Lag)],
    category: &CategoryName,
    now_ms: u64,
) -> Vec<GroupOverview> {
    let row = |(source, lag): &(ReadySource, Lag)| {
        let metadata = &catalog.handlers.get(source.group())?.metadata;
        let read = metadata.categories();
        let (is_here, is_first) = match source {
            ReadySource::Category { category: name, .. } | ReadySource::Shared { category: name, .. } => {
                (name == category, true)
            }
            ReadySource::ProcessManager { .. } => (read.contains(&category), read.first() == Some(&category)),
        };
        is_here.then(|| GroupOverview {
            group: source.group().clone(),
            role: metadata.role,
            ready: lag.ready,
            halted: lag.halted,
            lag: is_first.then_some(LagOverview {
                events: lag.events,
                exact: lag.exact,
                oldest_ms: lag.oldest_recorded_at_ms.map(|at_ms| now_ms.saturating_sub(at_ms)),
            }),
            settled: settled(hosts, source.group()),
        })
    };
    lags.iter().filter_map(row).collect()
}

fn hot_keys(hosts: &[Member]) -> Vec<HotKey> {
    let mut hot: Vec<_> = hosts.iter().flat_map(|host| &host.hot).cloned().collect();
    hot.sort_by_key(|key| std::cmp::Reverse(key.share));
    hot.truncate(HOT_KEYS_MAX);
    hot
}

fn settled(hosts: &[Member], group: &GroupName) -> u64 {
    let held = hosts.iter().flat_map(|host| &host.held).filter(|held| held.group == *group);
    held.map(|held| held.usage.calls.saturating_sub(held.usage.failed)).sum()
}
