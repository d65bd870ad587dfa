//! Who is there.
//!
//! Invariant: whose time is over is decided by the server's clock alone; what a member says of itself is opaque to it,
//! except a signature of what the others have to hear of at once.

use async_trait::async_trait;
use keyrail_ordering::{Member, OwnerId};
use redis::Value;

use super::answer::Answer;
use super::functions::Call;
use super::{RedisBroker, TIME_MAX_MS, keyspace};
use crate::{Error, Members, wire};

#[async_trait]
impl Members for RedisBroker {
    async fn members(&self) -> Result<Vec<Member>, Error> {
        let mut call = Call::new("keyrail_6_member", 1);
        call.arg(keyspace::MEMBERS).arg("look");
        decode(self.call(&call).await?)
    }

    async fn leave(&self, owner: &OwnerId) -> Result<(), Error> {
        let mut call = Call::new("keyrail_6_member", 1);
        call.arg(keyspace::MEMBERS).arg("leave").arg(owner.as_str());
        self.call(&call).await?;
        Ok(())
    }
}

/// The call by which a member tells of itself.
pub(super) fn announcement(member: &Member, ttl_ms: u64) -> Call {
    let mut call = Call::new("keyrail_6_member", 1);
    call.arg(keyspace::MEMBERS)
        .arg("announce")
        .arg(member.owner.as_str())
        .arg(ttl_ms.clamp(1, TIME_MAX_MS))
        .arg(signature(member))
        .arg(wire::encode(member));
    call
}

/// All records of an answer. One that this release cannot read is a host of another release: it is passed over, since the
/// list decides only who should own what.
pub(super) fn decode(answer: Value) -> Result<Vec<Member>, Error> {
    let mut answer = Answer::of(answer)?;
    let mut members = Vec::with_capacity(answer.len());
    while !answer.is_empty() {
        match wire::decode(&answer.bytes()?) {
            Ok(member) => members.push(member),
            Err(error) => tracing::warn!("a member of the fleet is passed over: {error}"),
        }
    }
    Ok(members)
}

/// What rings the bell when it changes: the groups, and whether it leaves. Has no colon.
fn signature(member: &Member) -> String {
    let mut groups: Vec<&str> = member.groups.iter().map(keyrail_ordering::GroupName::as_str).collect();
    groups.sort_unstable();
    format!("{}{}", groups.join(","), if member.leaving { "!" } else { "" })
}
