//! An entry of a partition as operators see and type it: `3-41`, in the backfill lane `backfill/3-41`, of a process manager
//! `payment/3-41` and `payment/backfill/3-41`.
//!
//! Invariant: what [`EntryName::of`] prints, [`EntryName::find`] finds in the same partition, whatever categories are called.

use std::fmt;

use keyrail_ordering::{EntryId, EntryRef, PartitionSpec, Scope, StreamId};

/// The text of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryName(String);

impl EntryName {
    /// The name of an entry in a partition of this kind.
    pub fn of(entry: &EntryRef, scope: &Scope) -> Self {
        Self::in_stream(&entry.stream, matches!(scope, Scope::Correlation { .. }), entry.id)
    }

    /// The same; `with_category` for partitions over several categories.
    pub(in crate::service) fn in_stream(stream: &StreamId, with_category: bool, id: EntryId) -> Self {
        Self(format!("{}{id}", stream.prefix(with_category)))
    }

    /// The entry of this name in a partition; or the forms that it may have.
    pub fn find(text: &str, partition: &PartitionSpec) -> Result<EntryRef, String> {
        let with_category = matches!(partition.id.scope, Scope::Correlation { .. });
        let place = text.rfind('/').map_or(0, |slash| slash + 1);
        let (wanted, id) = text.split_at(place);
        let stream = partition.streams.iter().find(|stream| stream.prefix(with_category) == wanted);
        if let (Some(stream), Ok(id)) = (stream, id.parse()) {
            return Ok(EntryRef { stream: stream.clone(), id });
        }
        let form = |stream: &StreamId| format!("{}EPOCH-SEQUENCE", stream.prefix(with_category));
        Err(partition.streams.iter().map(form).collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Display for EntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use keyrail_ordering::{CategoryName, Key, KeyRules};

    fn partitions() -> [PartitionSpec; 2] {
        let category = |name| CategoryName::parse(name).unwrap();
        let key = Key::parse("k1", &KeyRules::default()).unwrap();
        let group: keyrail_ordering::GroupName = "g".parse().unwrap();
        // A category may be called like the lane.
        let categories = [category("backfill"), category("payment")];
        [
            PartitionSpec::of_key(group.clone(), category("order"), key.clone()),
            PartitionSpec::of_correlation(group, &categories, key),
        ]
    }

    #[test]
    fn every_entry_is_found_by_the_name_that_is_printed() {
        let mut names = vec![];
        for partition in partitions() {
            for stream in &partition.streams {
                let entry = EntryRef { stream: stream.clone(), id: EntryId::new(3, 41) };
                let name = EntryName::of(&entry, &partition.id.scope).to_string();
                assert_eq!(EntryName::find(&name, &partition), Ok(entry), "{name}");
                names.push(name);
            }
        }
        let expected = ["3-41", "backfill/3-41", "backfill/3-41", "payment/3-41", "backfill/backfill/3-41"];
        assert_eq!(names[..5], expected);
    }

    #[test]
    fn anything_else_is_refused_with_the_forms() {
        let [keyed, correlated] = partitions();
        for text in ["", "3", "3-", "x/3-41", "/3-41", "backfill/", "order/3-41", "3-41 "] {
            let forms = EntryName::find(text, &keyed).unwrap_err();
            assert_eq!(forms, "EPOCH-SEQUENCE, backfill/EPOCH-SEQUENCE", "{text}");
        }
        assert!(EntryName::find("3-41", &correlated).unwrap_err().contains("payment/backfill/EPOCH-SEQUENCE"));
    }
}
