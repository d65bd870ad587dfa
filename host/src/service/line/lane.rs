//! A lane as it is written.

use keyrail_ordering::Lane;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A lane as it is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LaneName {
    /// The ordinary one.
    #[default]
    Primary,
    /// Served only while the primary lane of the key is empty.
    Backfill,
}

impl LaneName {
    /// The name as text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Backfill => "backfill",
        }
    }
}

impl From<Lane> for LaneName {
    fn from(lane: Lane) -> Self {
        match lane {
            Lane::Primary => Self::Primary,
            Lane::Backfill => Self::Backfill,
        }
    }
}

impl From<LaneName> for Lane {
    fn from(name: LaneName) -> Self {
        match name {
            LaneName::Primary => Self::Primary,
            LaneName::Backfill => Self::Backfill,
        }
    }
}
