//! Finding what was published: by bells, and by going through the keys that have work when the counts say that some of it
//! was not seen.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use keyrail_broker::{Bell, Bells, Broker, Error, ReadFrom, ReadySource, Wanted, WantedKey};
use keyrail_ordering::{Catalog, CategoryName, EntryId, Key, Lane, StreamId};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::TailedEntry;
use super::places::Places;
use super::queue::Queue;
use crate::service::search;

/// How often the counts are asked, and streams read that ring no bell.
const TICK: Duration = Duration::from_millis(100);
/// How long to wait for a broker that did not answer.
const AWAY: Duration = Duration::from_secs(1);
/// Streams in one read, and entries of each: payloads may be large.
const STREAMS_MAX: usize = 32;
const ENTRIES_MAX: usize = 16;
/// Reads of streams that have more, in a row.
const ROUNDS_MAX: usize = 64;
/// Bells that are answered by one read.
const BELLS_MAX: usize = 64;
/// Keys with work that are gone through in one tick.
const SWEEP_MAX: usize = 1_000;

/// What is followed.
#[derive(Debug, Clone)]
pub(super) enum Scope {
    All,
    Category(CategoryName),
    Key(CategoryName, Key),
}

impl Scope {
    fn has(&self, category: &CategoryName) -> bool {
        match self {
            Self::All => true,
            Self::Category(wanted) | Self::Key(wanted, _) => wanted == category,
        }
    }
}

/// What the categories were given, and what of it was found.
#[derive(Debug, Default)]
struct Counts {
    categories: Vec<CategoryName>,
    at_start: u64,
    /// When it was asked the last time but one: bells of that were heard meanwhile.
    before: u64,
    now: u64,
    /// Shown, missed, or left out because the follower was slow.
    seen: u64,
}

impl Counts {
    async fn ask(&mut self, broker: &dyn Broker) -> Result<(), Error> {
        let now: u64 = broker.published(&self.categories).await?.into_iter().flatten().sum();
        if now < self.now {
            // The broker lost what it had: it counts anew.
            (self.at_start, self.seen, self.now) = (0, 0, 0);
        }
        (self.before, self.now) = (self.now, now);
        Ok(())
    }

    fn unseen(&self) -> u64 {
        self.now.saturating_sub(self.at_start).saturating_sub(self.seen)
    }
}

/// Where a walk over the keys that have work is.
#[derive(Debug, Default)]
struct Sweep {
    source: usize,
    cursor: u64,
    /// What had been published when it began: what is not found of that by its end is gone.
    published: u64,
}

pub(super) struct Follower {
    broker: Arc<dyn Broker>,
    scope: Scope,
    with_data: bool,
    queue: Queue,
    places: Places,
    catalog: Catalog,
    sources: Vec<ReadySource>,
    /// Streams that are read at every tick: of one key, and of categories without keys. What is missed of them shows in
    /// their ids; of all others in the counts.
    pinned: Vec<StreamId>,
    /// The one of them that was not there at the start: whatever comes in it is new.
    begins_anew: Option<StreamId>,
    counts: Counts,
    sweep: Option<Sweep>,
}

impl Follower {
    /// From now on.
    pub(super) async fn begin(
        broker: Arc<dyn Broker>,
        scope: Scope,
        with_data: bool,
        queue: Queue,
    ) -> Result<Self, Error> {
        // First the time, then the counts: what comes between the two is shown, and not missed.
        let places = Places::since(broker.read_streams(&[], 1).await?.at_ms);
        let mut follower = Self {
            broker,
            scope,
            with_data,
            queue,
            places,
            catalog: Catalog::default(),
            sources: vec![],
            pinned: vec![],
            begins_anew: None,
            counts: Counts::default(),
            sweep: None,
        };
        follower.resolve().await?;
        follower.pin().await?;
        Ok(follower)
    }

    /// What is to be listened to, as the catalog has it now. Whether it is something else than before.
    async fn resolve(&mut self) -> Result<bool, Error> {
        let (catalog, _) = self.broker.catalog().await?;
        let all = catalog.handlers.keys().flat_map(|group| ReadySource::of_handler(&catalog, group));
        let reads = |source: &ReadySource| search::categories(&catalog, source).iter().any(|it| self.scope.has(it));
        let sources: Vec<_> = all.filter(reads).collect();
        let followed: Vec<_> = catalog.categories.keys().filter(|category| self.scope.has(category)).cloned().collect();
        let is_keyed =
            |category: &CategoryName| catalog.categories.get(category).is_some_and(|entry| entry.key_field.is_some());
        let (keyed, without_keys): (Vec<_>, Vec<_>) = followed.into_iter().partition(is_keyed);
        self.pinned = match &self.scope {
            Scope::Key(category, key) => lanes(category, key).into(),
            _ => {
                without_keys.into_iter().map(|category| StreamId { category, key: None, lane: Lane::Primary }).collect()
            }
        };
        let keyed = if matches!(self.scope, Scope::Key(..)) { vec![] } else { keyed };
        if keyed != self.counts.categories {
            self.counts = Counts { categories: keyed, ..Counts::default() };
            self.counts.ask(self.broker.as_ref()).await?;
            (self.counts.at_start, self.counts.before) = (self.counts.now, self.counts.now);
        }
        self.catalog = catalog;
        let changed = sources != self.sources;
        self.sources = sources;
        Ok(changed)
    }

    /// Learns where the streams stand that are followed by their ids.
    async fn pin(&mut self) -> Result<(), Error> {
        let ends: Vec<_> = self.pinned.iter().map(|stream| (stream.clone(), ReadFrom::Since(0))).collect();
        for entry in self.broker.read_streams(&ends, 1).await?.entries.into_iter().flatten() {
            self.places.reached(&entry.at.stream, entry.at.id, entry.recorded_at_ms);
        }
        // What was there may be gone, and its ids with it.
        match self.end_of_key().await? {
            Some((stream, Some(end))) if self.places.last(&stream).is_none_or(|last| last < end) => {
                self.places.reached(&stream, end, 0);
            }
            Some((stream, None)) => self.begins_anew = Some(stream),
            _ => {}
        }
        Ok(())
    }

    /// The key's primary stream and the last entry that it ever had. None if no handler that reads this category alone tells.
    async fn end_of_key(&self) -> Result<Option<(StreamId, Option<EntryId>)>, Error> {
        let Scope::Key(category, key) = &self.scope else { return Ok(None) };
        let tells = |source: &&ReadySource| matches!(source, ReadySource::Category { .. });
        let Some(source) = self.sources.iter().find(tells) else { return Ok(None) };
        let wanted = Wanted { key: WantedKey::Is(key.clone()), ..Wanted::default() };
        let (rows, _) = self.broker.find(source, &wanted, 0, 1).await?;
        let last = rows.first().and_then(|row| row.last);
        Ok(Some((StreamId::primary(category.clone(), key.clone()), last)))
    }

    /// What came before this entry, and was not read when the stream was, is gone.
    fn passed(&mut self, stream: &StreamId, end: EntryId) {
        let gone = match self.places.last(stream) {
            Some(last) if last >= end => return,
            Some(last) => skipped(last, end) + 1,
            None => end.sequence + 1,
        };
        self.places.reached(stream, end, 0);
        self.queue.missed(gone);
    }

    pub(super) async fn run(mut self) {
        while !self.queue.is_closed() {
            match self.follow().await {
                // The catalog has other sources now.
                Ok(()) => {}
                Err(error) => {
                    tracing::debug!(%error, "a follower waits for the broker");
                    sleep(AWAY).await;
                    if let Err(error) = self.resolve().await {
                        tracing::debug!(%error, "a follower waits for the broker");
                    }
                }
            }
        }
    }

    /// Follows until nobody listens any more, or something else is to be listened to.
    async fn follow(&mut self) -> Result<(), Error> {
        let mut bells = self.broker.bells(self.sources.clone()).await?;
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.queue.is_closed() {
            tokio::select! {
                biased;
                bell = bells.next() => {
                    let Some(bell) = bell else {
                        return Err(Error::Unavailable("the bells ended".into()));
                    };
                    if self.hear(bell, &mut bells).await? {
                        return Ok(());
                    }
                }
                _ = ticks.tick() => self.tick().await?,
            }
        }
        Ok(())
    }

    /// Reads what this bell and those behind it ring for. Whether other sources are to be listened to.
    async fn hear(&mut self, first: Bell, bells: &mut Bells) -> Result<bool, Error> {
        let (mut streams, mut is_catalog) = (vec![], false);
        let mut bell = Some(first);
        for _ in 0..BELLS_MAX {
            match bell.take() {
                Some(Bell::Ready { source, key }) => streams.extend(self.streams_of(&source, &key)),
                Some(Bell::Look { .. }) => streams.extend(self.pinned.iter().cloned()),
                Some(Bell::Lost) => self.sweep = Some(self.new_sweep()),
                Some(Bell::Catalog) => is_catalog = true,
                Some(Bell::Outbox | Bell::Members) | None => {}
            }
            bell = futures::FutureExt::now_or_never(bells.next()).flatten();
            if bell.is_none() {
                break;
            }
        }
        streams.sort_unstable();
        streams.dedup();
        self.read(streams).await?;
        Ok(is_catalog && self.resolve().await?)
    }

    async fn tick(&mut self) -> Result<(), Error> {
        self.queue.tell_missed();
        let end = self.end_of_key().await?;
        self.read(self.pinned.clone()).await?;
        if let Some((stream, Some(end))) = end {
            self.passed(&stream, end);
        }
        if self.counts.categories.is_empty() {
            return Ok(());
        }
        self.counts.ask(self.broker.as_ref()).await?;
        if self.counts.unseen() == 0 && self.sweep.is_none() {
            return Ok(());
        }
        let now_ms = self.broker.read_streams(&[], 1).await?.at_ms;
        self.read(self.places.active(now_ms)).await?;
        if self.counts.unseen() > 0 || self.sweep.is_some() {
            self.sweep().await?;
        }
        Ok(())
    }

    fn new_sweep(&self) -> Sweep {
        Sweep { source: 0, cursor: 0, published: self.counts.before }
    }

    /// Goes on through the keys that have work, for a tick.
    async fn sweep(&mut self) -> Result<(), Error> {
        let mut sweep = self.sweep.take().unwrap_or_else(|| self.new_sweep());
        let mut looked = 0;
        while looked < SWEEP_MAX {
            let Some(source) = self.sources.get(sweep.source).cloned() else {
                self.give_up(sweep.published);
                return Ok(());
            };
            let (keys, next) = self.broker.waiting_keys(&source, sweep.cursor, SWEEP_MAX).await?;
            looked += keys.len().max(1);
            let streams = keys.iter().flat_map(|key| self.streams_of(&source, key)).collect();
            self.read(streams).await?;
            (sweep.source, sweep.cursor) = next.map_or((sweep.source + 1, 0), |next| (sweep.source, next));
        }
        self.sweep = Some(sweep);
        Ok(())
    }

    /// Every key was gone through: what was published before that and was not found is gone.
    fn give_up(&mut self, published: u64) {
        let gone = published.saturating_sub(self.counts.at_start).saturating_sub(self.counts.seen);
        if gone > 0 {
            self.counts.seen += gone;
            self.queue.missed(gone);
        }
    }

    /// The streams of a source's key that are followed.
    fn streams_of(&self, source: &ReadySource, key: &Key) -> Vec<StreamId> {
        let followed = match &self.scope {
            Scope::Key(_, wanted) => wanted == key,
            Scope::All | Scope::Category(_) => true,
        };
        if !followed {
            return vec![];
        }
        let categories = search::categories(&self.catalog, source).into_iter();
        categories.filter(|category| self.scope.has(category)).flat_map(|category| lanes(category, key)).collect()
    }

    /// Shows what is new in these streams.
    async fn read(&mut self, streams: Vec<StreamId>) -> Result<(), Error> {
        for part in streams.chunks(STREAMS_MAX) {
            let mut part = part.to_vec();
            for _ in 0..ROUNDS_MAX {
                if part.is_empty() || self.queue.is_closed() {
                    break;
                }
                let from: Vec<_> = part.iter().map(|stream| (stream.clone(), self.places.of(stream))).collect();
                let reading = self.broker.read_streams(&from, ENTRIES_MAX).await?;
                // Those that may have more are read again, now from a known place on.
                let mut again = vec![];
                for (stream, entries) in part.into_iter().zip(reading.entries) {
                    if entries.len() == ENTRIES_MAX {
                        again.push(stream.clone());
                    }
                    for entry in entries {
                        self.show(&stream, &entry);
                    }
                }
                part = again;
            }
        }
        Ok(())
    }

    fn show(&mut self, stream: &StreamId, entry: &keyrail_ordering::Entry) {
        if self.pinned.contains(stream) {
            let before = match self.places.last(stream) {
                Some(last) => skipped(last, entry.at.id),
                None if self.begins_anew.as_ref() == Some(stream) => entry.at.id.sequence,
                None => 0,
            };
            if before > 0 {
                self.queue.missed(before);
            }
        } else {
            self.counts.seen += 1;
        }
        self.places.reached(stream, entry.at.id, entry.recorded_at_ms);
        self.queue.entry(TailedEntry::new(entry, self.with_data));
    }
}

fn lanes(category: &CategoryName, key: &Key) -> [StreamId; 2] {
    let lane = |lane| StreamId { category: category.clone(), key: Some(key.clone()), lane };
    [lane(Lane::Primary), lane(Lane::Backfill)]
}

/// Entries between two of a stream that were read one after the other.
fn skipped(last: EntryId, next: EntryId) -> u64 {
    // What there was at the end of an older epoch is not known.
    if next.epoch == last.epoch { (next.sequence - last.sequence).saturating_sub(1) } else { next.sequence }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_two_entries_was_missed() {
        let id = EntryId::new;
        assert_eq!(skipped(id(3, 4), id(3, 5)), 0);
        assert_eq!(skipped(id(3, 4), id(3, 9)), 4);
        assert_eq!(skipped(id(3, 4), id(7, 0)), 0);
        assert_eq!(skipped(id(3, 4), id(7, 2)), 2);
    }
}
