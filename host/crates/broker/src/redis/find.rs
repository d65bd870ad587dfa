//! Finding partitions: a page of one of a source's lists, and the rows of its keys.
//!
//! Invariant: a page looks at a bounded number of keys, so it may be short, or empty, and go on. A scan of the server may
//! show a key twice while the list changes, and never leaves out one that was there all the time.

use keyrail_ordering::Key;

use super::RedisBroker;
use super::answer::{self, Answer};
use super::keyspace::{self, Listing, Part};
use super::rows::partition_of;
use crate::{Error, PartitionRow, ReadySource, Rows, Standing, Wanted, WantedKey};

/// Rows of one page.
pub(super) const PAGE_MAX: usize = 200;
/// Keys that a page looks at to find those that are wanted, and how many one command passes.
const LOOKED_MAX: usize = 5_000;
const SCAN_STEP: usize = 1_000;
/// In a cursor: the server's own cursor below, how many of its answer were shown already above.
const SCAN_BITS: u32 = 40;
const SCAN_PART: u64 = (1 << SCAN_BITS) - 1;
/// In a cursor: the part of a process manager's list that comes from its ready set, by rank.
const READY_PART: u64 = 1 << 63;

/// What is scanned: its name, and the command, which says what else the answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scan {
    /// The members of a set.
    Set,
    /// The fields of a hash.
    Fields,
    /// The members of a sorted set.
    Ranked,
}

impl Scan {
    const fn command(self) -> &'static str {
        match self {
            Self::Set => "SSCAN",
            Self::Fields => "HSCAN",
            Self::Ranked => "ZSCAN",
        }
    }
}

impl RedisBroker {
    pub(super) async fn find_partitions(
        &self,
        source: &ReadySource,
        wanted: &Wanted,
        cursor: u64,
        limit: usize,
    ) -> Rows<PartitionRow> {
        let limit = limit.clamp(1, PAGE_MAX);
        let prefix = match &wanted.key {
            _ if matches!(source, ReadySource::Shared { .. }) => return Ok((vec![], None)),
            WantedKey::Is(key) => return self.find_one(source, key, wanted.standing).await,
            WantedKey::StartsWith(prefix) => prefix.as_str(),
            WantedKey::Any => "",
        };
        let is_manager = matches!(source, ReadySource::ProcessManager { .. });
        if is_manager && cursor & READY_PART != 0 {
            return self.never_owned(source, prefix, cursor & !READY_PART, limit).await;
        }
        let (scan, name) = match (wanted.standing, source) {
            (Standing::Waiting, _) => (Scan::Ranked, keyspace::listing(source, Listing::Ready)),
            (Standing::Halted, _) => (Scan::Set, keyspace::listing(source, Listing::Halted)),
            (_, ReadySource::ProcessManager { .. }) => (Scan::Fields, keyspace::listing(source, Listing::Owners)),
            (_, ReadySource::Category { category, .. } | ReadySource::Shared { category, .. }) => {
                (Scan::Fields, keyspace::index(category))
            }
        };
        let owned = (wanted.standing == Standing::Owned).then_some(source);
        let (keys, next) = self.scan_keys((scan, &name), prefix, owned, cursor, limit).await?;
        let rows = self.rows(source, keys, &self.categories_of(source).await?).await?;
        let mut rows: Vec<_> = rows.into_iter().map(|(row, _)| row).collect();
        rows.retain(|row| stands(row, wanted.standing));
        // Those of a process manager that never had an owner are in no list but the ready set.
        let next = if is_manager && wanted.standing == Standing::Any { next.or(Some(READY_PART)) } else { next };
        Ok((rows, next))
    }

    async fn find_one(&self, source: &ReadySource, key: &Key, standing: Standing) -> Rows<PartitionRow> {
        let rows = self.rows(source, vec![key.clone()], &self.categories_of(source).await?).await?;
        // Of a category the index tells; a key that is empty may have had an owner all the same.
        let is_listed = match source {
            ReadySource::Category { category, .. } => {
                let asked = redis::cmd("HEXISTS").arg(keyspace::index(category)).arg(key.as_str()).to_owned();
                Some(answer::number(&self.connection.call(&asked).await?)? == 1)
            }
            ReadySource::ProcessManager { .. } | ReadySource::Shared { .. } => None,
        };
        let there = |(row, had_owner): (PartitionRow, bool)| {
            let is_there = is_listed.unwrap_or(had_owner || row.waiting > 0 || row.halted.is_some());
            (is_there && stands(&row, standing)).then_some(row)
        };
        Ok((rows.into_iter().filter_map(there).collect(), None))
    }

    /// Keys of a list, about `limit`, after having looked at a bounded number; with `owned` those that are held there.
    async fn scan_keys(
        &self,
        (scan, name): (Scan, &str),
        prefix: &str,
        owned: Option<&ReadySource>,
        cursor: u64,
        limit: usize,
    ) -> Rows<Key> {
        let rules = self.rules();
        let (mut keys, mut at, mut looked) = (vec![], cursor, 0);
        let step = if prefix.is_empty() { limit } else { SCAN_STEP };
        loop {
            // Each of those that are found may be held, or none.
            let room = if owned.is_some() { limit } else { limit - keys.len() };
            let (texts, next) = self.scan(scan, name, prefix, at, step, room).await?;
            let found = texts.iter().filter_map(|text| keyspace::stored_key(text, &rules)).collect();
            keys.extend(match owned {
                Some(source) => self.held(source, found).await?,
                None => found,
            });
            looked += step;
            let Some(next) = next else { return Ok((keys, None)) };
            at = next;
            if keys.len() >= limit || looked >= LOOKED_MAX {
                return Ok((keys, Some(at)));
            }
        }
    }

    /// Those of these keys that somebody holds.
    async fn held(&self, source: &ReadySource, keys: Vec<Key>) -> Result<Vec<Key>, Error> {
        if keys.is_empty() {
            return Ok(keys);
        }
        let mut reads = redis::pipe();
        for key in &keys {
            reads.cmd("EXISTS").arg(keyspace::part(&partition_of(source, key.clone()), Part::Lease));
        }
        let held = self.connection.call_all(&reads, keys.len()).await?;
        let held = held.iter().map(answer::number).collect::<Result<Vec<_>, _>>()?;
        Ok(keys.into_iter().zip(held).filter_map(|(key, held)| (held == 1).then_some(key)).collect())
    }

    /// A page of what is in a set, a hash or a sorted set, names alone: those that begin with `prefix`, at most `limit` of
    /// them. `step` is how many the server is asked to pass.
    pub(super) async fn scan(
        &self,
        scan: Scan,
        name: &str,
        prefix: &str,
        cursor: u64,
        step: usize,
        limit: usize,
    ) -> Rows<String> {
        let (at, skip) = (cursor & SCAN_PART, (cursor & !READY_PART) >> SCAN_BITS);
        let mut command = redis::cmd(scan.command());
        command.arg(name).arg(at);
        if !prefix.is_empty() {
            command.arg("MATCH").arg(format!("{}*", literally(prefix)));
        }
        let mut answer = Answer::of(self.connection.call(command.arg("COUNT").arg(step)).await?)?;
        let next = answer.number()?;
        let mut list = answer.list()?;
        let mut texts = Vec::with_capacity(list.len());
        while !list.is_empty() {
            texts.push(list.text()?);
            if scan != Scan::Set {
                list.value()?;
            }
        }
        // The server answers with a whole small collection, whatever the count.
        let rest = texts.len().saturating_sub(skip as usize);
        let page: Vec<String> = texts.into_iter().skip(skip as usize).take(limit).collect();
        if rest > limit {
            return Ok((page, Some(at | ((skip + limit as u64) << SCAN_BITS))));
        }
        Ok((page, (next != 0).then_some(next)))
    }

    /// Correlation values that are ready and never had an owner, from a rank on.
    async fn never_owned(&self, source: &ReadySource, prefix: &str, rank: u64, limit: usize) -> Rows<PartitionRow> {
        let ready = keyspace::listing(source, Listing::Ready);
        let to = rank + limit as u64 - 1;
        let mut listed = Answer::of(self.connection.call(redis::cmd("ZRANGE").arg(ready).arg(rank).arg(to)).await?)?;
        let full = listed.len() == limit;
        let rules = self.rules();
        let mut keys = vec![];
        while !listed.is_empty() {
            keys.extend(keyspace::stored_key(&listed.text()?, &rules).filter(|key| key.as_str().starts_with(prefix)));
        }
        let rows = self.rows(source, keys, &self.categories_of(source).await?).await?;
        let rows = rows.into_iter().filter(|(_, had_owner)| !had_owner).map(|(row, _)| row).collect();
        Ok((rows, full.then_some((to + 1) | READY_PART)))
    }
}

fn stands(row: &PartitionRow, standing: Standing) -> bool {
    match standing {
        Standing::Any => true,
        Standing::Waiting => row.waiting > 0 && row.halted.is_none(),
        Standing::Owned => row.owned,
        Standing::Halted => row.halted.is_some(),
    }
}

/// A text that a pattern of the server takes as it is.
fn literally(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '\\' | '^' | '-') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_no_pattern() {
        assert_eq!(literally("a*b?[c]\\"), "a\\*b\\?\\[c\\]\\\\");
    }
}
