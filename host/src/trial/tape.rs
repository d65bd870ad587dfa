//! The HTTP calls of one try: sent, sent and kept, or answered from what was kept.

use keyrail_runtime::{HttpPlayer, HttpRecorder, HttpRoute};

use super::{Http, HttpCall};

pub(super) enum Tape {
    None,
    Records(HttpRecorder),
    Plays(HttpPlayer),
}

impl Tape {
    /// For this try: what is played is what the same try asked when it was kept.
    pub(super) fn new(http: &Http<'_>, attempt: u32) -> Self {
        match http {
            Http::Live => Self::None,
            Http::Recorded => Self::Records(HttpRecorder::default()),
            Http::Played(calls) => {
                let of_try = calls.iter().filter(|call| call.attempt == attempt);
                Self::Plays(HttpPlayer::new(of_try.map(|call| call.exchange.clone()).collect()))
            }
        }
    }

    pub(super) fn route(&self) -> HttpRoute {
        match self {
            Self::None => HttpRoute::Network,
            Self::Records(recorder) => HttpRoute::Recorded(recorder.clone()),
            Self::Plays(player) => HttpRoute::Played(player.clone()),
        }
    }

    /// After the try: the calls that were kept, and in what they were others than those that were played.
    pub(super) fn end(self, attempt: u32) -> (Vec<HttpCall>, Vec<String>) {
        match self {
            Self::None => (vec![], vec![]),
            Self::Records(recorder) => {
                let calls = recorder.exchanges().into_iter().map(|exchange| HttpCall { attempt, exchange });
                (calls.collect(), vec![])
            }
            Self::Plays(player) => {
                let differences = player.differences().into_iter();
                (vec![], differences.map(|difference| format!("try {attempt}, {difference}")).collect())
            }
        }
    }
}

/// Calls that would be played to a later try than the last one: none of them was made.
pub(super) fn of_later_tries(http: &Http<'_>, last: u32) -> Vec<String> {
    let Http::Played(calls) = http else { return vec![] };
    let later = calls.iter().filter(|call| call.attempt > last);
    let shown = |call: &HttpCall| {
        let HttpCall { attempt, exchange } = call;
        format!("try {attempt}, {} {}, was not made", exchange.request.method, exchange.request.url)
    };
    later.map(shown).collect()
}
