//! Who should own a partition: rendezvous hashing over the live members.
//!
//! Every host works this out by itself from the same list, so no host decides for another; what makes an owner is the
//! lease alone. A member that joins takes its share from all others, one that leaves gives its share to all others, and
//! no other partition moves. (Thaler and Ravishankar, 1998: each member gets a weight for each partition, the highest wins.)

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::{GroupName, HotKey, OwnerId, PartitionId, Scope};

/// A host process that serves handlers, as it tells the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    /// Which.
    pub owner: OwnerId,
    /// The handlers that it runs.
    pub groups: Vec<GroupName>,
    /// How many partitions it may own at once.
    pub capacity: u64,
    /// How many it owned when it told.
    pub owned: u64,
    /// Events that it was running when it told.
    pub running: u64,
    /// Events that it had settled since its start.
    pub settled: u64,
    /// The release of the host.
    pub release: String,
    /// It takes nothing any more.
    pub leaving: bool,
    /// The versions of handlers that it has, or tries to have.
    pub held: Vec<Held>,
    /// The busiest of the keys that it owns, the busiest first; few.
    #[serde(default)]
    pub hot: Vec<HotKey>,
}

/// A version of a handler on one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Held {
    /// The handler.
    pub group: GroupName,
    /// The revision that was deployed; none for a file of this host's own.
    pub revision: Option<u64>,
    /// The version that it declares; empty as long as it is not loaded.
    pub version: String,
    /// How far it is.
    pub state: HeldState,
    /// What it used since this host loaded it.
    pub usage: Usage,
}

/// How far a host is with a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeldState {
    /// Being read, compiled and checked.
    Loading,
    /// Can serve.
    Ready,
    /// Serves.
    Serving,
    /// Cannot serve, and why.
    Failed(String),
}

/// What a version of a handler used on one host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Calls.
    pub calls: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Time in guest code, in microseconds.
    pub cpu_us: u64,
    /// Time in calls of the host, in microseconds.
    pub host_us: u64,
    /// The most memory that one instance had, in bytes.
    pub memory_max_bytes: u64,
    /// Attempts at what is not granted.
    pub denied: u64,
}

impl Member {
    fn serves(&self, group: &GroupName) -> bool {
        !self.leaving && self.groups.contains(group)
    }

    fn has_room(&self) -> bool {
        self.owned < self.capacity
    }
}

/// The live members at one time.
#[derive(Debug, Clone, Default)]
pub struct Membership {
    members: Vec<(u64, Member)>,
}

impl Membership {
    /// Of these members, in any order.
    pub fn new(members: impl IntoIterator<Item = Member>) -> Self {
        let mut members: Vec<_> =
            members.into_iter().map(|member| (xxh3_64(member.owner.as_str().as_bytes()), member)).collect();
        members.sort_by(|(_, a), (_, b)| a.owner.cmp(&b.owner));
        members.dedup_by(|(_, a), (_, b)| a.owner == b.owner);
        Self { members }
    }

    /// The members, by owner.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().map(|(_, member)| member)
    }

    /// Whether the same members serve the same groups, whatever their load.
    pub fn is_same_assignment(&self, other: &Self) -> bool {
        let serving = |membership: &Self| -> Vec<_> {
            let serving = membership.members().filter(|member| !member.leaving);
            serving.map(|member| (member.owner.clone(), member.groups.clone())).collect()
        };
        serving(self) == serving(other)
    }

    /// Who should own the partition, whatever its load.
    pub fn preferred(&self, partition: &PartitionId) -> Option<&OwnerId> {
        self.highest(partition, |_| true)
    }

    /// Who should take the partition now: the preferred member, or the next one that has room.
    pub fn taker(&self, partition: &PartitionId) -> Option<&OwnerId> {
        self.highest(partition, Member::has_room).or_else(|| self.preferred(partition))
    }

    /// To whom `owner` should give the partition up: to the member that should have it, if that has room for it.
    pub fn successor(&self, owner: &OwnerId, partition: &PartitionId) -> Option<&OwnerId> {
        let preferred = self.preferred(partition).filter(|preferred| *preferred != owner)?;
        let has_room = self.members().any(|member| member.owner == *preferred && member.has_room());
        has_room.then_some(preferred)
    }

    fn highest(&self, partition: &PartitionId, fits: impl Fn(&Member) -> bool) -> Option<&OwnerId> {
        let place = place_of(partition);
        let serving = self.members.iter().filter(|(_, member)| member.serves(&partition.group) && fits(member));
        // Equal weights are next to impossible; the owner's name decides them all the same.
        let highest =
            serving.max_by_key(|(seed, member)| (xxh3_64_with_seed(&place.to_le_bytes(), *seed), &member.owner));
        highest.map(|(_, member)| &member.owner)
    }
}

/// The partition as a number, the same on every host and in every release.
fn place_of(partition: &PartitionId) -> u64 {
    let text = match &partition.scope {
        Scope::Key { category, key } => format!("{}\n{category}\n{key}", partition.group),
        Scope::Correlation { value } => format!("{}\n\n{value}", partition.group),
    };
    xxh3_64(text.as_bytes())
}
