//! The names of everything that Keyrail keeps in Redis: built and parsed here, and nowhere else in Rust. The Lua side has
//! the same names in `functions/names.lua`; a test compares the two.
//!
//! Invariant: a name parses back to what it was built from. That holds because keys have no colon and are no reserved
//! words, and category and group names have neither.
//!
//! | name | type | life |
//! |---|---|---|
//! | `order:client-123`, `…:backfill` | stream | from the first event until reaped; emptied when all groups have settled it |
//! | `…:dlq` | stream | events that were set aside, with ids of their own; gone with the last of them |
//! | `{scope}:__lease__:{group}` | string with TTL | `{owner}:{generation} {place} {id}…`: place of the stream that has the head, how far each is settled; absence means that nobody owns it |
//! | `{scope}:__attempts__:{group}` | hash | from the head's first failure or crash until it is settled |
//! | `{scope}:__halt__:{group}` | hash | stream, id, record, attempts, error; until an operator decides |
//! | `{scope}:__state__:{group}` | hash | the handler's state; never reaped |
//! | `order:__partitions__` | hash | key → epoch of its stream; `key:backfill` → epoch of that lane |
//! | `order:__groups__` | hash | group → its ready set; `__key_field__`, `__backfill__` |
//! | `{collection}:__behind__:{group}` | sorted set | key → time when it is due; also the name of its bell's channel |
//! | `{collection}:__halted__:{group}`, `…:__states__:{group}` | set | keys that stand still; keys that have state |
//! | `{collection}:__owners__:{group}` | hash | key → `{owner}:{generation} {place}` of the last owner; place 0: nothing was in its hands |
//! | `{collection}:__versions__:{group}` | hash | key → `{id} TAB {version} TAB {stream}` a line: from where on which version handled it; goes with its last owner |
//! | `order:__seen__:{event id}` | string with TTL | the entry that the event became |
//! | `order:__paused__` | hash | key, or nothing for the whole category → `{time}:{who and why}`; until it is resumed |
//! | `order:__dlqs__` | sorted set | keys with dead letters, nothing for a category without keys; all scores 0, for their ranks |
//! | `__pm__:__turns__:{group}` | hash | correlation → place of the stream that was read last; goes with its last owner |
//! | `metrics:__attempts__:{group}` | hash | entry → `{attempts}:{crashes}:{error}`, from its first failure until it is settled |
//! | `metrics:__waiting__:{group}` | sorted set | entry → time when it is due again; those that are nobody's at the moment |
//! | `__members__` | hash | owner → `{until}:{signature}:{record}`; gone when its time is over; also its bell's channel |
//! | `__modules__` | hash | hash of a component's bytes → what is known of it |
//! | `__module__:{hash}` | string | those bytes |
//! | `__audit__` | stream | what operators did; the last 10,000 |
//! | `__paused__` | set | the categories that have a `__paused__` hash |
//! | `__published__` | hash | category → events that it was given, since the first release that counts; only ever grows |
//!
//! A scope is what a partition spans, `order:client-123` or `__pm__:{correlation}`; a collection is `order` or `__pm__`.

use keyrail_ordering::{CategoryName, GroupName, Key, KeyRules, Lane, PartitionId, Scope, StreamId};

use crate::ReadySource;

/// The collection of all process managers.
pub const PROCESS_MANAGERS: &str = "__pm__";
/// Counts writer epochs.
pub const EPOCH: &str = "__epoch__";
/// Counts changes of hands.
pub const GENERATION: &str = "__generation__";
/// Events that were emitted and are not in their streams yet; also the name of the outbox bell's channel.
pub const OUTBOX: &str = "__outbox__";
/// Outbox records that can never be published.
pub const ABANDONED: &str = "__outbox_abandoned__";
/// The catalog.
pub const CATALOG: &str = "__catalog__";
/// Who is there; also the name of its bell's channel.
pub const MEMBERS: &str = "__members__";
/// What is known of each component.
pub const MODULES: &str = "__modules__";
/// What operators did.
pub const AUDIT: &str = "__audit__";
/// The categories in which anything is paused.
pub const PAUSED_CATEGORIES: &str = "__paused__";
/// How many events each category was given.
pub const PUBLISHED: &str = "__published__";

const DLQ_WORD: &str = "dlq";

/// The stream of a key and lane.
pub fn stream(id: &StreamId, rules: &KeyRules) -> String {
    let mut name = String::with_capacity(64);
    name.push_str(id.category.as_str());
    if let Some(key) = &id.key {
        name.push(':');
        name.push_str(key.as_str());
    }
    if id.lane == Lane::Backfill {
        name.push(':');
        name.push_str(&rules.backfill_word);
    }
    name
}

/// What a partition spans.
pub fn scope(partition: &PartitionId) -> String {
    match &partition.scope {
        Scope::Key { category, key } => [category.as_str(), ":", key.as_str()].concat(),
        Scope::Correlation { value } => [PROCESS_MANAGERS, ":", value.as_str()].concat(),
    }
}

/// Which collection a partition belongs to.
pub fn collection_of(partition: &PartitionId) -> &str {
    match &partition.scope {
        Scope::Key { category, .. } => category.as_str(),
        Scope::Correlation { .. } => PROCESS_MANAGERS,
    }
}

/// Which collection a source lists.
pub fn collection(source: &ReadySource) -> &str {
    match source {
        ReadySource::Category { category, .. } | ReadySource::Shared { category, .. } => category.as_str(),
        ReadySource::ProcessManager { .. } => PROCESS_MANAGERS,
    }
}

/// What is kept of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Who owns it.
    Lease,
    /// Its head's failures.
    Attempts,
    /// Why it stands still.
    Halt,
    /// Its handler's state.
    State,
}

impl Part {
    const ALL: [Self; 4] = [Self::Lease, Self::Attempts, Self::Halt, Self::State];

    const fn word(self) -> &'static str {
        match self {
            Self::Lease => "__lease__",
            Self::Attempts => "__attempts__",
            Self::Halt => "__halt__",
            Self::State => "__state__",
        }
    }
}

/// The name of a partition's record.
pub fn part(partition: &PartitionId, part: Part) -> String {
    format!("{}:{}:{}", scope(partition), part.word(), partition.group)
}

/// What is kept of a group in a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// Keys with unsettled entries.
    Ready,
    /// Keys that stand still.
    Halted,
    /// Who owned each key last.
    Owners,
    /// Keys that have state.
    States,
    /// Failures of entries, in a category that is not partitioned.
    Attempts,
    /// Entries that are due again later, in a category that is not partitioned.
    Waiting,
    /// Whose turn it was last among a process manager's streams.
    Turns,
    /// From where on which version handled each key.
    Versions,
}

impl Listing {
    const ALL: [Self; 8] = [
        Self::Ready,
        Self::Halted,
        Self::Owners,
        Self::States,
        Self::Attempts,
        Self::Waiting,
        Self::Turns,
        Self::Versions,
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::Ready => "__behind__",
            Self::Halted => "__halted__",
            Self::Owners => "__owners__",
            Self::States => "__states__",
            Self::Attempts => "__attempts__",
            Self::Waiting => "__waiting__",
            Self::Turns => "__turns__",
            Self::Versions => "__versions__",
        }
    }
}

/// The name of a group's list.
pub fn listing(source: &ReadySource, listing: Listing) -> String {
    format!("{}:{}:{}", collection(source), listing.word(), source.group())
}

/// The bytes of a component.
pub fn module(content_hash: &str) -> String {
    format!("__module__:{content_hash}")
}

/// The index of a category.
pub fn index(category: &CategoryName) -> String {
    format!("{category}:__partitions__")
}

/// The groups of a category.
pub fn groups(category: &CategoryName) -> String {
    format!("{category}:__groups__")
}

/// What is paused in a category.
pub fn paused(category: &CategoryName) -> String {
    format!("{category}:__paused__")
}

/// The keys of a category that have dead letters.
pub fn dlqs(category: &CategoryName) -> String {
    format!("{category}:__dlqs__")
}

/// What an event id became.
pub fn seen(category: &CategoryName, event: &str) -> String {
    format!("{category}:__seen__:{event}")
}

/// The set-aside heads of a key.
pub fn dlq(category: &CategoryName, key: Option<&Key>) -> String {
    match key {
        Some(key) => format!("{category}:{key}:{DLQ_WORD}"),
        None => format!("{category}:{DLQ_WORD}"),
    }
}

/// A key as a member of an index or a list. None for what is no key: lanes in the index, and names that others put there.
pub fn stored_key(text: &str, rules: &KeyRules) -> Option<Key> {
    Key::parse(text, rules).ok()
}

/// A name, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// A log.
    Stream(StreamId),
    /// Set-aside heads.
    Dlq(CategoryName, Option<Key>),
    /// A partition's record.
    Part(PartitionId, Part),
    /// A group's list.
    Listing(ReadySource, Listing),
    /// A category's index.
    Index(CategoryName),
    /// A category's groups.
    Groups(CategoryName),
    /// What is paused in a category.
    Paused(CategoryName),
    /// The keys of a category that have dead letters.
    Dlqs(CategoryName),
    /// An event id that is remembered.
    Seen(CategoryName, String),
}

/// What a name stands for; none for names that are not of a category or a partition.
pub fn parse(name: &str, rules: &KeyRules) -> Option<Name> {
    let segments: Vec<&str> = name.splitn(4, ':').collect();
    let category = || CategoryName::parse(segments[0]).ok();
    let key = |text: &str| Key::parse(text, rules).ok();
    match segments.as_slice() {
        [PROCESS_MANAGERS, word, group] => {
            let listing = Listing::ALL.into_iter().find(|listing| listing.word() == *word)?;
            Some(Name::Listing(ReadySource::ProcessManager { group: GroupName::parse(group).ok()? }, listing))
        }
        [_] => Some(Name::Stream(StreamId { category: category()?, key: None, lane: Lane::Primary })),
        [_, "__partitions__"] => Some(Name::Index(category()?)),
        [_, "__groups__"] => Some(Name::Groups(category()?)),
        [_, "__paused__"] => Some(Name::Paused(category()?)),
        [_, "__dlqs__"] => Some(Name::Dlqs(category()?)),
        [_, DLQ_WORD] => Some(Name::Dlq(category()?, None)),
        [_, word] if *word == rules.backfill_word => {
            Some(Name::Stream(StreamId { category: category()?, key: None, lane: Lane::Backfill }))
        }
        [_, text] => Some(Name::Stream(StreamId { category: category()?, key: Some(key(text)?), lane: Lane::Primary })),
        [_, "__seen__", ..] => Some(Name::Seen(category()?, name.splitn(3, ':').nth(2)?.into())),
        [_, text, DLQ_WORD] => Some(Name::Dlq(category()?, Some(key(text)?))),
        [_, text, word] if *word == rules.backfill_word => {
            Some(Name::Stream(StreamId { category: category()?, key: Some(key(text)?), lane: Lane::Backfill }))
        }
        [_, word, group] => {
            let listing = Listing::ALL.into_iter().find(|listing| listing.word() == *word)?;
            let group = GroupName::parse(group).ok()?;
            Some(Name::Listing(ReadySource::Category { group, category: category()? }, listing))
        }
        [first, text, word, group] => {
            let part = Part::ALL.into_iter().find(|part| part.word() == *word)?;
            let group = GroupName::parse(group).ok()?;
            let scope = match *first {
                PROCESS_MANAGERS => Scope::Correlation { value: key(text)? },
                _ => Scope::Key { category: category()?, key: key(text)? },
            };
            Some(Name::Part(PartitionId { group, scope }, part))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn category() -> impl Strategy<Value = CategoryName> {
        "[a-z][a-z0-9_.-]{0,12}".prop_map(|name| CategoryName::parse(&name).unwrap())
    }

    fn group() -> impl Strategy<Value = GroupName> {
        "[a-z][a-z0-9_.-]{0,12}".prop_map(|name| GroupName::parse(&name).unwrap())
    }

    fn key() -> impl Strategy<Value = Key> {
        "\\PC{1,20}".prop_filter_map("not a key", |text| Key::parse(&text, &KeyRules::default()).ok())
    }

    fn names() -> impl Strategy<Value = (String, Name)> {
        let rules = KeyRules::default();
        let lane = prop_oneof![Just(Lane::Primary), Just(Lane::Backfill)];
        let streams = (category(), proptest::option::of(key()), lane).prop_map(move |(category, key, lane)| {
            let id = StreamId { category, key, lane };
            (stream(&id, &rules), Name::Stream(id))
        });
        let part_of =
            (group(), proptest::option::of(category()), key(), 0..4usize).prop_map(|(group, category, key, which)| {
                let scope = match category {
                    Some(category) => Scope::Key { category, key },
                    None => Scope::Correlation { value: key },
                };
                let id = PartitionId { group, scope };
                (part(&id, Part::ALL[which]), Name::Part(id, Part::ALL[which]))
            });
        let listings = (group(), proptest::option::of(category()), 0..8usize).prop_map(|(group, category, which)| {
            let source = match category {
                Some(category) => ReadySource::Category { group, category },
                None => ReadySource::ProcessManager { group },
            };
            (listing(&source, Listing::ALL[which]), Name::Listing(source, Listing::ALL[which]))
        });
        let others =
            (category(), proptest::option::of(key()), "[a-z:]{1,9}").prop_flat_map(|(category, key, event)| {
                prop_oneof![
                    Just((index(&category), Name::Index(category.clone()))),
                    Just((groups(&category), Name::Groups(category.clone()))),
                    Just((paused(&category), Name::Paused(category.clone()))),
                    Just((dlqs(&category), Name::Dlqs(category.clone()))),
                    Just((seen(&category, &event), Name::Seen(category.clone(), event))),
                    Just((dlq(&category, key.as_ref()), Name::Dlq(category, key))),
                ]
            });
        prop_oneof![streams, part_of, listings, others]
    }

    #[test]
    fn the_names_are_those_of_the_design() {
        let parse = |name: &str| parse(name, &KeyRules::default());
        let (order, k) = (CategoryName::parse("order").unwrap(), Key::parse("k", &KeyRules::default()).unwrap());
        assert_eq!(parse("order:k"), Some(Name::Stream(StreamId::primary(order.clone(), k.clone()))));
        assert_eq!(parse("order:k:dlq"), Some(Name::Dlq(order, Some(k))));
        for foreign in ["", ":", "__outbox__", "Order:k", "order:", "order:k:other", "order:k:__lease__:", "a:b:c:d:e"]
        {
            assert_eq!(parse(foreign), None, "{foreign}");
        }
    }

    proptest! {
        #[test]
        fn names_round_trip((name, meaning) in names()) {
            prop_assert_eq!(parse(&name, &KeyRules::default()), Some(meaning));
        }

        #[test]
        fn no_text_panics(name in "\\PC{0,30}") {
            let _ = parse(&name, &KeyRules::default());
        }
    }
}
