//! Who is there: announced in memory, for as long as the lease clock says. A process that starts anew knows nobody.
//!
//! Many hosts may share one broker object, as in a simulation, so members are kept by owner.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use keyrail_ordering::{GroupName, Member, OwnerId};

use super::EmbeddedBroker;
use crate::{Bell, Error, Members};

struct Announced {
    member: Member,
    expires_at_ms: u64,
}

#[derive(Default)]
pub(super) struct LiveMembers(Mutex<BTreeMap<OwnerId, Announced>>);

impl LiveMembers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<OwnerId, Announced>> {
        // Each operation leaves the map whole, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a member on record; answers with all that are there, and whether the others must hear of it.
    pub(super) fn announce(&self, member: &Member, now_ms: u64, ttl_ms: u64) -> (Vec<Member>, bool) {
        let mut map = self.lock();
        map.retain(|_, announced| now_ms < announced.expires_at_ms);
        let announced = Announced { member: member.clone(), expires_at_ms: now_ms.saturating_add(ttl_ms) };
        let before = map.insert(member.owner.clone(), announced);
        let is_news = before
            .is_none_or(|before| before.member.leaving != member.leaving || groups(&before.member) != groups(member));
        (map.values().map(|announced| announced.member.clone()).collect(), is_news)
    }

    fn there(&self, now_ms: u64) -> Vec<Member> {
        let map = self.lock();
        map.values().filter(|announced| now_ms < announced.expires_at_ms).map(|one| one.member.clone()).collect()
    }

    fn remove(&self, owner: &OwnerId) -> bool {
        self.lock().remove(owner).is_some()
    }
}

fn groups(member: &Member) -> Vec<&GroupName> {
    let mut groups: Vec<_> = member.groups.iter().collect();
    groups.sort_unstable();
    groups
}

#[async_trait]
impl Members for EmbeddedBroker {
    async fn members(&self) -> Result<Vec<Member>, Error> {
        Ok(self.shared.members.there(self.shared.now_ms()))
    }

    async fn leave(&self, owner: &OwnerId) -> Result<(), Error> {
        if self.shared.members.remove(owner) {
            self.shared.ring(Bell::Members);
        }
        Ok(())
    }
}
