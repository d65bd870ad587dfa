//! Who makes a request, and what it may do.

use std::sync::Arc;

use super::tokens::{Holder, Role};
use crate::service::WhoAndWhy;

/// Who makes a request. In the extensions of every request that reached a route.
#[derive(Debug, Clone)]
pub(super) enum Caller {
    /// Whoever reaches the Unix socket, which is its owner's alone, or a loopback address where no tokens are asked for.
    Local,
    /// Who showed a token.
    Holder(Arc<Holder>),
    /// Who showed none where one is needed.
    Nobody,
}

/// Whether a caller may do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    Yes,
    /// A token is needed.
    NeedsToken,
    /// The token is not good for it.
    No,
}

impl Caller {
    pub(super) fn may(&self, role: Role) -> Allowed {
        match self {
            Self::Local => Allowed::Yes,
            Self::Holder(holder) if holder.roles.contains(&role) => Allowed::Yes,
            Self::Holder(_) => Allowed::No,
            Self::Nobody => Allowed::NeedsToken,
        }
    }

    /// What goes on record: the holder of a token is who the token says, whatever else it claims to be.
    pub(super) fn signed(&self, by: WhoAndWhy) -> WhoAndWhy {
        let Self::Holder(holder) = self else { return by };
        let who = if by.who.is_empty() || by.who == holder.name {
            holder.name.clone()
        } else {
            format!("{} ({})", holder.name, by.who)
        };
        WhoAndWhy { who, reason: by.reason }
    }

    /// What it is counted as where requests are limited; none where they are counted by address.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Holder(holder) => Some(&holder.name),
            Self::Local | Self::Nobody => None,
        }
    }
}
