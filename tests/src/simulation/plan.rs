//! What a handler is to do with an event: written into a header by the publisher, so that every host and every try knows.

use std::fmt;

use keyrail_ordering::Event;

use super::dice::Dice;

const HEADER: &str = "plan";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// Takes this long.
    Slow { ms: u64 },
    /// Fails this many tries.
    Fail { tries: u32 },
    /// Says that no try can succeed.
    Reject,
    /// Does not come back, the first time.
    Hang,
}

/// What one handler does; all others just handle the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) group: String,
    pub(super) behaviour: Behaviour,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = &self.group;
        match self.behaviour {
            Behaviour::Slow { ms } => write!(f, "{group} slow {ms}"),
            Behaviour::Fail { tries } => write!(f, "{group} fail {tries}"),
            Behaviour::Reject => write!(f, "{group} reject"),
            Behaviour::Hang => write!(f, "{group} hang"),
        }
    }
}

impl Plan {
    /// For an event of this category; this part of them is slow, most go well.
    pub(super) fn roll(dice: &mut Dice, category: &str, slow: f64) -> Option<Self> {
        let group = match category {
            "order" => dice.pick(&["orders", "fulfil"]),
            "payment" => "fulfil",
            _ => "metrics",
        };
        let behaviour = match dice.between(0, 99) {
            0..=7 => Behaviour::Fail { tries: dice.between(1, 2) as u32 },
            8..=9 => Behaviour::Fail { tries: u32::MAX },
            10 => Behaviour::Reject,
            11 if group != "metrics" => Behaviour::Hang,
            _ if dice.hits(slow) => Behaviour::Slow { ms: dice.between(1, 2_000) },
            _ => return None,
        };
        Some(Self { group: group.into(), behaviour })
    }

    pub(super) fn header(&self) -> (String, String) {
        (HEADER.into(), self.to_string())
    }

    pub(super) fn of(event: &Event) -> Option<Self> {
        let (_, text) = event.headers.iter().find(|(name, _)| name == HEADER)?;
        let mut words = text.split(' ');
        let group = words.next()?.to_owned();
        let behaviour = match words.next()? {
            "slow" => Behaviour::Slow { ms: words.next()?.parse().ok()? },
            "fail" => Behaviour::Fail { tries: words.next()?.parse().ok()? },
            "reject" => Behaviour::Reject,
            _ => Behaviour::Hang,
        };
        Some(Self { group, behaviour })
    }
}
