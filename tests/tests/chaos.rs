//! A short run of `cargo xtask chaos`.
#![allow(clippy::unwrap_used, missing_docs)]

use keyrail_tests::chaos::{Plan, run_plan};

#[test]
fn every_aircraft_has_its_history_whatever_strikes() {
    let summary = run_plan(&Plan { file: None, laps: 1, faults: 20, seed: 2_013 }).unwrap();
    assert_eq!(summary.events, 52_796);
    assert_eq!(summary.faults.values().sum::<u64>(), 20);
    println!("{summary:#?}");
}
