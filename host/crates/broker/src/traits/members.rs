//! Who is there.

use async_trait::async_trait;
use keyrail_ordering::{Member, OwnerId};

use crate::Error;

/// The members of the fleet. They announce themselves through [`Heartbeat`](crate::Heartbeat).
#[async_trait]
pub trait Members: Send + Sync {
    /// Those whose time is not over, in no promised order.
    async fn members(&self) -> Result<Vec<Member>, Error>;

    /// Removes a member at once, and rings [`Bell::Members`](crate::Bell::Members). One that is gone already is no error.
    async fn leave(&self, owner: &OwnerId) -> Result<(), Error>;
}
