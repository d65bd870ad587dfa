//! Attempts: partition → failed tries and crashes of its head.
//!
//! Life: written by fail, and by acquire after a crash; removed when its head is settled. A record of another head than
//! the present one means nothing. The time of the next try is by the wall clock, since it must survive a restart; a wait
//! never gets longer than it was, however that clock jumps.

use keyrail_ordering::{AttemptsRecord, EntryRef, PartitionId};
use redb::{ReadableTable, Table, TableDefinition};
use serde::{Deserialize, Serialize};

use super::{PartitionKey, partition_key, storage};
use crate::{Error, wire};

pub(in crate::embedded) const TABLE: TableDefinition<PartitionKey, &[u8]> = TableDefinition::new("attempts");

/// Longer error texts are cut.
const ERROR_MAX_BYTES: usize = 4_096;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::embedded) struct StoredAttempts {
    pub(in crate::embedded) head: EntryRef,
    pub(in crate::embedded) attempts: u32,
    pub(in crate::embedded) crashes: u32,
    pub(in crate::embedded) due_at_ms: u64,
    pub(in crate::embedded) wait_ms: u64,
    pub(in crate::embedded) last_error: String,
}

impl StoredAttempts {
    pub(in crate::embedded) fn none(head: EntryRef) -> Self {
        Self { head, attempts: 0, crashes: 0, due_at_ms: 0, wait_ms: 0, last_error: String::new() }
    }

    pub(in crate::embedded) fn wait_ms(&self, wall_ms: u64) -> u64 {
        self.due_at_ms.saturating_sub(wall_ms).min(self.wait_ms)
    }

    pub(in crate::embedded) fn into_record(self, wall_ms: u64) -> AttemptsRecord {
        AttemptsRecord {
            wait_ms: self.wait_ms(wall_ms),
            head: self.head,
            attempts: self.attempts,
            crashes: self.crashes,
            last_error: self.last_error,
        }
    }
}

pub(in crate::embedded) fn cut(error: &str) -> &str {
    &error[..error.floor_char_boundary(ERROR_MAX_BYTES)]
}

pub(in crate::embedded) fn get(
    table: &impl ReadableTable<PartitionKey, &'static [u8]>,
    partition: &PartitionId,
) -> Result<Option<StoredAttempts>, Error> {
    let row = table.get(partition_key(partition)).map_err(storage)?;
    row.map(|row| wire::decode(row.value())).transpose()
}

pub(in crate::embedded) fn put(
    table: &mut Table<PartitionKey, &'static [u8]>,
    partition: &PartitionId,
    record: &StoredAttempts,
) -> Result<(), Error> {
    table.insert(partition_key(partition), wire::encode(record).as_slice()).map_err(storage)?;
    Ok(())
}

pub(in crate::embedded) fn remove(
    table: &mut Table<PartitionKey, &'static [u8]>,
    partition: &PartitionId,
) -> Result<(), Error> {
    table.remove(partition_key(partition)).map_err(storage)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyrail_ordering::{CategoryName, EntryId, Key, KeyRules, StreamId};

    #[test]
    fn a_clock_that_jumps_back_lengthens_no_wait() {
        let key = Key::parse("k1", &KeyRules::default()).unwrap();
        let stream = StreamId::primary(CategoryName::parse("order").unwrap(), key);
        let none = StoredAttempts::none(EntryRef { stream, id: EntryId::new(1, 0) });
        let stored = StoredAttempts { due_at_ms: 1_000, wait_ms: 200, ..none };
        assert_eq!(stored.wait_ms(900), 100);
        assert_eq!(stored.wait_ms(1_000), 0);
        assert_eq!(stored.wait_ms(0), 200);
    }

    #[test]
    fn long_errors_are_cut_between_characters() {
        assert_eq!(cut(&"é".repeat(4_000)).len(), ERROR_MAX_BYTES);
        assert_eq!(cut(&format!("a{}", "é".repeat(4_000))).len(), ERROR_MAX_BYTES - 1);
        assert_eq!(cut("short"), "short");
    }
}
