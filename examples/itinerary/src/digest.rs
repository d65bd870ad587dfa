//! 64-bit FNV-1a over the ids of all events in the order applied, not reset between ids, kept as 16 hex digits.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;
const HEX: &[u8; 16] = b"0123456789abcdef";

/// A running digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(OFFSET_BASIS)
    }
}

impl Digest {
    /// Adds an event's id.
    pub fn add(&mut self, id: &str) {
        self.0 = id.bytes().fold(self.0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits: String =
            (0..16).rev().map(|digit| char::from(HEX[(self.0 >> (4 * digit)) as usize & 15])).collect();
        serializer.serialize_str(&digits)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = String::deserialize(deserializer)?;
        u64::from_str_radix(&digits, 16).map(Self).map_err(|_| serde::de::Error::custom("a digest is 16 hex digits"))
    }
}
