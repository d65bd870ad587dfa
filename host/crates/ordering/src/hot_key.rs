//! Keys that use most of what one lane can do. Events of a key run one at a time, so a key that is busy all the time is at
//! its limit, however many hosts there are.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{CategoryName, GroupName, Key};

/// A key, and how busy it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HotKey {
    /// The handler.
    pub group: GroupName,
    /// The category; none for a process manager.
    pub category: Option<CategoryName>,
    /// The key, or the correlation value.
    pub key: Key,
    /// The share of the last seconds in which an event of it was handled or committed.
    pub share: Share,
}

/// A part of a whole, in steps of a thousandth. Written as a number from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[schemars(with = "f64")]
pub struct Share(u16);

impl Share {
    /// All of it.
    const WHOLE: u16 = 1_000;

    /// `part` of `whole`; never more than all of it, and nothing of nothing.
    pub fn of(part: u64, whole: u64) -> Self {
        let thousandths = u128::from(part) * u128::from(Self::WHOLE) / u128::from(whole.max(1));
        Self(u16::try_from(thousandths).unwrap_or(Self::WHOLE).min(Self::WHOLE))
    }

    /// From 0 to 1.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE)
    }

    /// From 0 to 100, rounded down.
    pub fn percent(self) -> u16 {
        self.0 / 10
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_f64().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let share = f64::deserialize(deserializer)?;
        // What is none, such as -1 or NaN, becomes 0.
        Ok(Self((share * f64::from(Self::WHOLE)).round().clamp(0.0, f64::from(Self::WHOLE)) as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_of_a_whole_and_never_more() {
        assert_eq!(Share::of(1, 2).as_f64().to_bits(), 0.5_f64.to_bits());
        assert_eq!(Share::of(9, 3).percent(), 100);
        assert_eq!(Share::of(u64::MAX, u64::MAX).percent(), 100);
        assert_eq!(Share::of(5, 0).percent(), 100);
        assert_eq!(Share::of(0, 0), Share::default());
        assert!(Share::of(801, 1_000) > Share::of(4, 5));
    }
}
