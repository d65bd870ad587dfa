//! Which version of each handler serves which key. Swapped while keys stay owned: a worker looks between two events.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use keyrail_ordering::{EntryRef, GroupName, Key, Selection};
use tokio::sync::Notify;

use super::handler::Handler;

/// A version of a handler that this host can run.
#[derive(Clone)]
pub struct Version {
    /// The handler.
    pub handler: Arc<dyn Handler>,
    /// The revision that was deployed; none for a handler of this host's own.
    pub revision: Option<u64>,
    /// How it is named where the handling of events is on record.
    pub label: Arc<str>,
    /// Whether it is tried on some keys only.
    pub is_canary: bool,
}

impl Version {
    /// A handler of this host's own.
    pub fn local(handler: Arc<dyn Handler>) -> Self {
        let label = label(&handler.metadata().version);
        Self { handler, revision: None, label, is_canary: false }
    }

    /// A revision that was deployed.
    pub fn deployed(handler: Arc<dyn Handler>, revision: u64, revision_label: &str, is_canary: bool) -> Self {
        Self { handler, revision: Some(revision), label: label(revision_label), is_canary }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.handler, &other.handler) && self.label == other.label && self.is_canary == other.is_canary
    }
}

/// One line without control characters: a version is free text, and goes on record.
fn label(text: &str) -> Arc<str> {
    const LABEL_MAX_CHARS: usize = 80;
    let plain: String = text.chars().filter(|c| !c.is_control()).take(LABEL_MAX_CHARS).collect();
    if plain.trim().is_empty() { "unnamed".into() } else { plain.trim().into() }
}

/// What serves one handler's keys.
#[derive(Clone)]
pub struct Serving {
    /// All of them,
    pub active: Version,
    /// but for these.
    pub canary: Option<(Selection, Version)>,
}

impl Serving {
    /// One version for all keys.
    pub fn all(active: Version) -> Self {
        Self { active, canary: None }
    }

    fn chosen(&self, is_canary: impl FnOnce(&Selection) -> bool) -> &Version {
        match &self.canary {
            Some((selection, version)) if is_canary(selection) => version,
            _ => &self.active,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        let canaries = match (&self.canary, &other.canary) {
            (None, None) => true,
            (Some((one, version)), Some((two, other))) => one == two && version.is_same(other),
            _ => false,
        };
        canaries && self.active.is_same(&other.active)
    }
}

/// What this host serves at the moment.
#[derive(Default)]
pub(super) struct Served {
    map: RwLock<BTreeMap<GroupName, Serving>>,
    /// Grows with every change, so that a worker need not look as long as there was none.
    changes: AtomicU64,
    /// Other handlers than before.
    pub(super) changed: Notify,
}

impl Served {
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<GroupName, Serving>> {
        // The map is whole after each operation, so a panic elsewhere does not spoil it.
        self.map.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<GroupName, Serving>> {
        self.map.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(SeqCst)
    }

    pub(super) fn groups(&self) -> Vec<GroupName> {
        self.read().keys().cloned().collect()
    }

    pub(super) fn for_key(&self, group: &GroupName, key: &Key) -> Option<Version> {
        let map = self.read();
        Some(map.get(group)?.chosen(|selection| selection.contains(group, key)).clone())
    }

    pub(super) fn for_entry(&self, group: &GroupName, entry: &EntryRef) -> Option<Version> {
        let map = self.read();
        Some(map.get(group)?.chosen(|selection| selection.contains_entry(group, entry)).clone())
    }

    /// Whether this version serves any key of the handler.
    pub(super) fn serves(&self, group: &GroupName, version: &Version) -> bool {
        let map = self.read();
        let Some(serving) = map.get(group) else { return false };
        serving.active.is_same(version) || serving.canary.as_ref().is_some_and(|(_, canary)| canary.is_same(version))
    }

    /// False if it was so already.
    pub(super) fn set(&self, group: GroupName, serving: Serving) -> bool {
        let mut map = self.write();
        let before = map.get(&group);
        if before.is_some_and(|before| before.is_same(&serving)) {
            return false;
        }
        map.insert(group, serving);
        self.changes.fetch_add(1, SeqCst);
        self.changed.notify_one();
        true
    }

    pub(super) fn remove(&self, group: &GroupName) -> bool {
        let removed = self.write().remove(group).is_some();
        if removed {
            self.changes.fetch_add(1, SeqCst);
            self.changed.notify_one();
        }
        removed
    }
}
