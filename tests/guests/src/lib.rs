//! A handler that misbehaves as its event asks: `probe/Probe {key, mode, n}`, for the tests of limits and failures.
//!
//! The modes are in `modes`. With the feature `lacks-key` it declares a type without its key field, which a host must
//! refuse to register; with `unordered` its category is not partitioned.

use keyrail_guest::{Context, Event, Handler, Metadata, Result, export};
use serde::{Deserialize, Serialize};

mod modes;

/// What to do.
#[derive(Debug, Clone, Event, Serialize, Deserialize)]
#[cfg_attr(not(feature = "unordered"), event(category = "probe"))]
#[cfg_attr(feature = "unordered", event(category = "signal"))]
pub struct Probe {
    /// The key.
    #[cfg_attr(feature = "lacks-key", serde(skip))]
    pub key: String,
    /// The name of a mode.
    pub mode: String,
    /// What the mode does it with; each mode has its own default for 0.
    #[serde(default)]
    pub n: u64,
}

/// The handler.
pub struct Misbehaving;

// By hand, because `#[handler]` would not compile what `lacks-key` declares.
impl Handler for Misbehaving {
    fn metadata() -> Metadata {
        if cfg!(feature = "unordered") {
            return Metadata::event_handler("probe-unordered", env!("CARGO_PKG_VERSION")).handles::<Probe>();
        }
        Metadata::event_handler("probe", env!("CARGO_PKG_VERSION")).handles::<Probe>().sequential_by("key")
    }

    fn handle(&self, ctx: &mut Context) -> Result<()> {
        let probe: Probe = ctx.parse()?;
        modes::run(&probe, ctx)
    }
}

export!(Misbehaving);

#[cfg(test)]
mod tests {
    use keyrail_guest::Disposition;
    use keyrail_guest::testing::Harness;

    use super::*;

    fn probe(mode: &str, n: u64) -> Probe {
        Probe { key: "k1".into(), mode: mode.into(), n }
    }

    #[test]
    fn it_counts_per_key() {
        let mut probes = Harness::new(Misbehaving);
        for _ in 0..3 {
            probes.deliver(&probe("count", 0)).assert_done();
        }
        assert_eq!(probes.state::<u64>("k1", "count"), Some(3));
    }

    #[test]
    fn it_fails_as_asked() {
        let mut probes = Harness::new(Misbehaving);
        let disposition = |probes: &mut Harness<_>, mode, n| probes.deliver(&probe(mode, n)).disposition;
        assert_eq!(
            disposition(&mut probes, "retry", 250),
            Disposition::Retry { reason: "asked to retry".into(), after_ms: Some(250) }
        );
        assert_eq!(disposition(&mut probes, "reject", 0), Disposition::Reject("asked to reject".into()));
        assert_eq!(disposition(&mut probes, "?", 0), Disposition::Reject("no such mode: ?".into()));
        assert!(matches!(disposition(&mut probes, "emit-bad", 1), Disposition::Reject(_)), "though it answers Ok");
    }
}
