//! How much waits, and since when: counted over few keys, and reckoned from a sample over many.

use keyrail_ordering::{CategoryName, Key, StreamId};

use super::RedisBroker;
use super::answer::{self, Answer};
use super::find::Scan;
use super::functions::Call;
use super::keyspace::{self, Listing};
use super::rows::LANES;
use crate::{Error, Lag, ReadySource};

/// Keys that one call looks at: half a millisecond in which the server does nothing else.
const KEYS_A_CALL: usize = 32;

/// What was found at some keys.
#[derive(Default)]
struct Looked {
    keys: u64,
    events: u64,
    oldest_ms: Option<u64>,
}

impl Looked {
    fn add(&mut self, events: u64, oldest_ms: Option<u64>) {
        self.keys += 1;
        self.events += events;
        self.oldest_ms = [self.oldest_ms, oldest_ms].into_iter().flatten().min();
    }

    /// Events of `all` keys of which these are a sample.
    fn reckoned(&self, all: u64) -> u64 {
        if self.keys == 0 || self.keys >= all {
            return self.events;
        }
        (u128::from(self.events) * u128::from(all) / u128::from(self.keys)) as u64
    }
}

impl RedisBroker {
    pub(super) async fn lag_of(&self, source: &ReadySource, sample_max: usize) -> Result<Lag, Error> {
        let sample_max = sample_max.max(KEYS_A_CALL);
        let categories = self.categories_of(source).await?;
        if let ReadySource::Shared { category, .. } = source {
            let stream = StreamId { category: category.clone(), key: None, lane: LANES[0] };
            let mut looked = Looked::default();
            self.look(source, 1, vec![keyspace::stream(&stream, &self.rules())], &mut looked).await?;
            let Looked { events, oldest_ms, .. } = looked;
            return Ok(Lag { ready: 0, halted: 0, events, exact: true, oldest_recorded_at_ms: oldest_ms });
        }
        let (ready_list, halted_list) =
            (keyspace::listing(source, Listing::Ready), keyspace::listing(source, Listing::Halted));
        let mut reads = redis::pipe();
        reads.cmd("ZCARD").arg(&ready_list).cmd("SCARD").arg(&halted_list);
        let counts = self.connection.call_all(&reads, 2).await?;
        let (ready, halted) = (answer::number(&counts[0])?, answer::number(&counts[1])?);
        let waiting = self.ready_sample(&ready_list, ready, sample_max).await?;
        let standing = self.halted_sample(&halted_list, sample_max).await?;
        let (waiting, standing) =
            (self.look_at(source, &categories, waiting).await?, self.look_at(source, &categories, standing).await?);
        Ok(Lag {
            ready,
            halted,
            events: waiting.reckoned(ready) + standing.reckoned(halted),
            exact: waiting.keys >= ready && standing.keys >= halted,
            oldest_recorded_at_ms: [waiting.oldest_ms, standing.oldest_ms].into_iter().flatten().min(),
        })
    }

    /// Keys of a ready set: all of a small one, of a large one some from all over it. It is ordered by when a key is due, then
    /// by name.
    async fn ready_sample(&self, list: &str, count: u64, sample_max: usize) -> Result<Vec<Key>, Error> {
        let sample_max = sample_max as u64;
        let ranges: Vec<(u64, u64)> = if count <= sample_max {
            vec![(0, sample_max - 1)]
        } else {
            let spots = sample_max / KEYS_A_CALL as u64;
            (0..spots).map(|spot| spot * count / spots).map(|from| (from, from + KEYS_A_CALL as u64 - 1)).collect()
        };
        let mut reads = redis::pipe();
        for (from, to) in &ranges {
            reads.cmd("ZRANGE").arg(list).arg(from).arg(to);
        }
        let rules = self.rules();
        let mut keys = vec![];
        for listed in self.connection.call_all(&reads, ranges.len()).await? {
            let mut listed = Answer::of(listed)?;
            while !listed.is_empty() {
                keys.extend(keyspace::stored_key(&listed.text()?, &rules));
            }
        }
        Ok(keys)
    }

    async fn halted_sample(&self, list: &str, sample_max: usize) -> Result<Vec<Key>, Error> {
        let rules = self.rules();
        let (mut keys, mut cursor) = (vec![], 0);
        loop {
            let room = sample_max - keys.len();
            let (texts, next) = self.scan(Scan::Set, list, "", cursor, room, room).await?;
            keys.extend(texts.iter().filter_map(|text| keyspace::stored_key(text, &rules)));
            match next {
                Some(next) if keys.len() < sample_max => cursor = next,
                _ => return Ok(keys),
            }
        }
    }

    async fn look_at(
        &self,
        source: &ReadySource,
        categories: &[CategoryName],
        keys: Vec<Key>,
    ) -> Result<Looked, Error> {
        let rules = self.rules();
        let mut looked = Looked::default();
        for keys in keys.chunks(KEYS_A_CALL) {
            let mut streams = Vec::with_capacity(keys.len() * categories.len() * LANES.len());
            for key in keys {
                for category in categories {
                    for lane in LANES {
                        let id = StreamId { category: category.clone(), key: Some(key.clone()), lane };
                        streams.push(keyspace::stream(&id, &rules));
                    }
                }
            }
            self.look(source, categories.len() * LANES.len(), streams, &mut looked).await?;
        }
        Ok(looked)
    }

    /// What waits in these partitions, of so many streams each.
    async fn look(
        &self,
        source: &ReadySource,
        streams_each: usize,
        streams: Vec<String>,
        looked: &mut Looked,
    ) -> Result<(), Error> {
        let mut call = Call::new("keyrail_6_lag", 0);
        call.arg(source.group().as_str()).arg(streams_each);
        for stream in streams {
            call.arg(stream);
        }
        let mut answer = Answer::of(self.call(&call).await?)?;
        while !answer.is_empty() {
            looked.add(answer.number()?, answer.optional_number()?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_stands_for_all() {
        let mut looked = Looked::default();
        assert_eq!(looked.reckoned(7), 0);
        looked.add(3, Some(9));
        looked.add(5, None);
        looked.add(1, Some(4));
        assert_eq!((looked.reckoned(3), looked.reckoned(2), looked.reckoned(30)), (9, 9, 90));
        assert_eq!(looked.oldest_ms, Some(4));
    }
}
