//! Internal records as bytes: one version byte, then bincode.
//!
//! The only place that knows bincode. A record that was written by a release with another version byte, or that was cut
//! or has bytes left over, is [`Error::Corrupt`], never a half-read value. Stream entries are not encoded here: they are
//! plain fields, readable with redis-cli.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// The present version of every record. A change of any stored type raises it.
const VERSION: u8 = 3;

/// A record's bytes.
pub fn encode<T: Serialize + ?Sized>(record: &T) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    // Writing into a Vec cannot fail, and none of our records has a serializer that refuses a value.
    bincode::serde::encode_into_std_write(record, &mut bytes, bincode::config::standard())
        .expect("records of our own types always serialize");
    bytes
}

/// The record that `bytes` hold.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let Some((version, body)) = bytes.split_first() else {
        return Err(Error::Corrupt("the record is empty".into()));
    };
    if *version != VERSION {
        return Err(Error::Corrupt(format!(
            "the record has version {version}, and this release reads version {VERSION}; use the release that wrote it"
        )));
    }
    let (record, read) = bincode::serde::decode_from_slice(body, bincode::config::standard())
        .map_err(|error| Error::Corrupt(error.to_string()))?;
    if read != body.len() {
        return Err(Error::Corrupt(format!("the record has {} bytes after its end", body.len() - read)));
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyrail_ordering::{
        Catalog, CategoryEntry, CategoryName, EntryId, EntryRef, Field, FieldType, GroupName, HaltCause, HaltRecord,
        HandlerEntry, Key, KeyRules, Lane, Member, MessageName, MessageType, Metadata, OwnerId, Role, SequentialBy,
        StreamId,
    };
    use proptest::prelude::*;

    fn halt_records() -> impl Strategy<Value = HaltRecord> {
        let causes = prop_oneof![
            Just(HaltCause::Poison),
            Just(HaltCause::Rejected),
            Just(HaltCause::Crashed),
            Just(HaltCause::Missing),
            Just(HaltCause::Undecodable),
        ];
        let key = proptest::option::of("[a-zé€ -]{1,20}")
            .prop_map(|text| text.and_then(|text| Key::parse(&text, &KeyRules::default()).ok()));
        (any::<(u64, u64, u32, bool)>(), key, causes, "\\PC{0,60}", "[0-9.]{0,8}").prop_map(
            |((epoch, sequence, attempts, backfill), key, cause, error, handler_version)| {
                let lane = if backfill { Lane::Backfill } else { Lane::Primary };
                let stream = StreamId { category: CategoryName::parse("order").unwrap(), key, lane };
                let head = EntryRef { stream, id: EntryId::new(epoch, sequence) };
                HaltRecord { head, cause, attempts, error, handler_version }
            },
        )
    }

    fn catalogs() -> impl Strategy<Value = Catalog> {
        let name = "[a-z][a-z0-9_.-]{0,10}";
        let fields = proptest::collection::vec((name, any::<bool>()), 0..4);
        let handler = (name, name, fields, proptest::option::of(name), any::<u32>());
        proptest::collection::vec(handler, 0..4).prop_map(|handlers| {
            let mut catalog = Catalog::default();
            for (group, category, fields, key_field, version) in handlers {
                let group = GroupName::parse(&group).unwrap();
                let category = CategoryName::parse(&category).unwrap();
                let name = MessageName::parse("OrderPlaced").unwrap();
                let fields: Vec<_> = fields
                    .into_iter()
                    .map(|(name, required)| Field { name, kind: FieldType::Text, required })
                    .collect();
                let mut entry = CategoryEntry { key_field: key_field.clone(), ..CategoryEntry::default() };
                entry.groups.push(group.clone());
                entry.messages.entry(name.clone()).or_default().insert(version, fields.clone());
                catalog.categories.insert(category.clone(), entry);
                let metadata = Metadata {
                    name: group.clone(),
                    version: version.to_string(),
                    role: Role::EventHandler,
                    handles: vec![MessageType { category, name, version, fields }],
                    sequential_by: key_field.map_or(SequentialBy::Unordered, SequentialBy::Field),
                    options: vec![("a".into(), "b".into())],
                };
                catalog.handlers.insert(group, HandlerEntry { metadata, content_hash: "00ff".into() });
            }
            catalog
        })
    }

    fn members() -> impl Strategy<Value = Member> {
        let groups = proptest::collection::vec("[a-z][a-z0-9_.-]{0,10}", 0..4);
        ("[a-z0-9-]{1,20}", groups, any::<(u64, u64, u64, u64, bool)>(), "[0-9.]{0,8}").prop_map(
            |(owner, groups, (capacity, owned, running, settled, leaving), release)| {
                let groups = groups.iter().map(|group| GroupName::parse(group).unwrap()).collect();
                Member {
                    owner: OwnerId::new(&owner),
                    groups,
                    capacity,
                    owned,
                    running,
                    settled,
                    release,
                    leaving,
                    held: vec![],
                    hot: vec![],
                }
            },
        )
    }

    #[test]
    fn other_versions_cut_and_overlong_records_are_corrupt() {
        let bytes = encode("text");
        let read = |bytes: &[u8]| decode::<String>(bytes).unwrap_err().to_string();
        assert!(read(&[]).contains("empty"));
        assert!(read(&[9, 0]).contains("version 9"));
        assert!(read(&bytes[..bytes.len() - 1]).contains("cannot be read"));
        assert!(read(&[bytes.as_slice(), b"x"].concat()).contains("1 bytes after its end"));
    }

    proptest! {
        #[test]
        fn halt_records_round_trip(record in halt_records()) {
            prop_assert_eq!(decode::<HaltRecord>(&encode(&record)).unwrap(), record);
        }

        #[test]
        fn catalogs_round_trip(catalog in catalogs()) {
            prop_assert_eq!(decode::<Catalog>(&encode(&catalog)).unwrap(), catalog);
        }

        #[test]
        fn members_round_trip(member in members()) {
            prop_assert_eq!(decode::<Member>(&encode(&member)).unwrap(), member);
        }

        #[test]
        fn whatever_bytes_come_nothing_panics(bytes: Vec<u8>) {
            let _ = decode::<HaltRecord>(&bytes);
            let _ = decode::<Catalog>(&bytes);
            let _ = decode::<Member>(&bytes);
        }
    }
}
