//! Pauses: the flag first, so that nobody new comes; then owners are sent away, page by page.
//!
//! Invariant: whoever holds a lease is in its group's list of last owners, so going through that list misses none; an
//! acquire after the flag is refused.

use keyrail_ordering::{CategoryName, Key, KeyRules, Role};
use redis::Value;

use super::answer::Answer;
use super::find::Scan;
use super::functions::Call;
use super::keyspace::{self, Listing};
use super::operate::place;
use super::{RedisBroker, answer};
use crate::{By, Error, Paused, ReadySource, SharedSource, wire};

/// Partitions in one step: it holds the whole server up while it runs.
const EVICT_MAX: usize = 100;

impl RedisBroker {
    /// Sets or ends a pause. False if it was so already.
    pub(super) async fn set_pause(
        &self,
        category: &CategoryName,
        key: Option<&Key>,
        action: &'static str,
        by: &By,
    ) -> Result<bool, Error> {
        let mut call = Call::new("keyrail_6_pause", 1);
        call.arg(keyspace::paused(category))
            .arg(category.as_str())
            .arg(key.map_or("", Key::as_str))
            .arg(action)
            .arg(&by.who)
            .arg(&by.reason)
            .arg(place(category, key))
            .arg(wire::encode(by));
        Ok(answer::number(&self.call(&call).await?)? == 1)
    }

    /// Takes what is paused away from its owners, in every group that reads the category.
    pub(super) async fn evict(&self, category: &CategoryName, key: Option<&Key>) -> Result<(), Error> {
        // Read after the flag was set: a handler that comes later is refused by its first acquire.
        let (catalog, _) = self.read_catalog().await?;
        let Some(entry) = catalog.categories.get(category) else { return Ok(()) };
        for group in &entry.groups {
            let handler = catalog.handlers.get(group).map(|handler| &handler.metadata);
            let manager = handler.filter(|metadata| metadata.role == Role::ProcessManager);
            let (source, reads) = match manager {
                Some(metadata) => (ReadySource::ProcessManager { group: group.clone() }, metadata.categories()),
                None if entry.key_field.is_some() => {
                    let source = ReadySource::Category { group: group.clone(), category: category.clone() };
                    (source, [category].into())
                }
                None => {
                    self.evict_shared(&SharedSource { group: group.clone(), category: category.clone() }).await?;
                    continue;
                }
            };
            let reads: Vec<&CategoryName> = reads.into_iter().collect();
            if let Some(key) = key {
                self.evict_keys(&source, &reads, &[key.to_string()]).await?;
                continue;
            }
            let owners = keyspace::listing(&source, Listing::Owners);
            let mut cursor = Some(0);
            while let Some(at) = cursor {
                let (keys, next) = self.scan(Scan::Fields, &owners, "", at, EVICT_MAX, EVICT_MAX).await?;
                self.evict_keys(&source, &reads, &keys).await?;
                cursor = next;
            }
        }
        Ok(())
    }

    async fn evict_keys(
        &self,
        source: &ReadySource,
        categories: &[&CategoryName],
        keys: &[String],
    ) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut call = Call::new("keyrail_6_evict", 0);
        call.arg(keyspace::collection(source))
            .arg(source.group().as_str())
            .arg(&self.rules().backfill_word)
            .arg(categories.len());
        for category in categories {
            call.arg(category.as_str());
        }
        for key in keys {
            call.arg(key);
        }
        self.call(&call).await?;
        Ok(())
    }
}

/// The flags of a category: key, or nothing for all of it, and `{time}:{who and why}`.
pub(super) fn decode(category: &CategoryName, answer: Value, rules: &KeyRules) -> Result<Vec<Paused>, Error> {
    let mut answer = Answer::of(answer)?;
    let mut paused = Vec::with_capacity(answer.len() / 2);
    while !answer.is_empty() {
        let (field, value) = (answer.text()?, answer.bytes()?);
        let colon = value.iter().position(|byte| *byte == b':');
        let colon = colon.ok_or_else(|| Error::Corrupt(format!("a pause in {category} has no time")))?;
        let at_ms = std::str::from_utf8(&value[..colon]).ok().and_then(|time| time.parse().ok()).unwrap_or(0);
        let by: By = wire::decode(&value[colon + 1..])?;
        let key = keyspace::stored_key(&field, rules);
        if key.is_none() && !field.is_empty() {
            // Put there by somebody else: it names no key, and must not look like the whole category.
            continue;
        }
        paused.push(Paused { category: category.clone(), key, by, at_ms });
    }
    Ok(paused)
}
