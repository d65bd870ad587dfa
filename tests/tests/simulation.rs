//! The engine in a simulated world. `docs/simulation.md` says what is simulated and how to look into a seed that fails.
#![allow(clippy::unwrap_used, missing_docs)]

use keyrail_tests::simulation::{self, Mistake, Options, Report};

/// Seeds that every change must pass.
const SEEDS: u64 = 1_000;
const THREADS: u64 = 2;

fn with(mistake: Option<Mistake>) -> impl Fn(u64) -> Options {
    move |seed| Options { seed, mistake, trace: false }
}

fn told(reports: &[Report]) -> String {
    let line = |report: &Report| {
        let violation = &report.violations[0];
        format!(
            "seed {}: {} at {} ms: {}; see cargo xtask simulate --seeds 1 --seed {} --trace",
            report.seed, violation.check, violation.at_ms, violation.what, report.seed
        )
    };
    reports.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_thousand_seeds_break_nothing() {
    let found = simulation::run_many(0..SEEDS, THREADS, with(None), |_| {});
    assert!(found.is_empty(), "{}", told(&found));
}

#[test]
fn a_seed_runs_the_same_again() {
    for seed in 0..20 {
        let [once, again] = [(); 2].map(|()| simulation::run(with(None)(seed)));
        assert_eq!((once.hash, once.facts), (again.hash, again.facts), "seed {seed}");
    }
}

#[test]
fn other_seeds_run_otherwise() {
    let hashes: std::collections::BTreeSet<_> = (0..20).map(|seed| simulation::run(with(None)(seed)).hash).collect();
    assert_eq!(hashes.len(), 20);
}

/// Runs seeds until one finds the mistake, with a check that is made for it.
fn is_found(mistake: Mistake, checks: &[&str], within: u64) {
    for seed in 0..within {
        let report = simulation::run(with(Some(mistake))(seed));
        if let Some(violation) = report.violations.first() {
            assert!(checks.contains(&violation.check), "{mistake:?} was found by {violation:?}");
            println!("{mistake:?}: found by seed {seed}: {}: {}", violation.check, violation.what);
            return;
        }
    }
    panic!("{mistake:?} is not found by {within} seeds");
}

/// A test for each planted mistake, with the checks that may find it and seeds within which one does.
macro_rules! planted {
    ($($name:ident: $mistake:ident by $checks:expr, within $within:literal;)*) => {
        $(
            #[test]
            fn $name() {
                is_found(Mistake::$mistake, &$checks, $within);
            }
        )*
    };
}

planted! {
    found_a_commit_that_ignores_the_fence: CommitIgnoresFence by ["ownership"], within 60;
    found_a_commit_that_ignores_the_generation: CommitIgnoresGeneration by ["ownership"], within 600;
    found_a_commit_that_ignores_the_head: CommitIgnoresHead by ["order"], within 200;
    found_a_commit_that_leaves_the_last: CommitLeavesTheLast by ["order", "halts"], within 60;
    found_a_commit_that_settles_one_more: CommitSettlesOneMore by ["order", "handled", "halts"], within 60;
    found_a_commit_that_applies_state_twice: CommitAppliesTwice by ["order"], within 60;
    found_emits_outside_the_commit: EmitsOutsideCommit by ["loss", "order"], within 60;
    found_a_commit_that_skips_an_entry: CommitSkipsAnEntry by ["order", "halts"], within 60;
    found_an_acquire_that_leaves_what_is_pending: AcquireLeavesPending by ["order", "liveness", "halts"], within 60;
    found_an_acquire_that_steals_a_lease: AcquireStealsHeld by ["ownership"], within 60;
    found_a_take_that_forgets_what_is_pending: TakeForgetsPending by ["order", "liveness", "halts"], within 60;
    found_a_release_of_another_owners_lease: ReleaseIgnoresOwner by ["ownership"], within 600;
    found_a_release_that_keeps_nothing_ready: ReleaseKeepsNothingReady by ["liveness"], within 60;
    found_renewals_that_are_always_granted: RenewAlwaysHeld by ["ownership"], within 60;
    found_a_failed_try_that_is_forgotten: FailForgotten by ["tries"], within 100;
    found_a_halt_that_is_forgotten: HaltForgotten by ["halts"], within 60;
    found_a_skip_that_ignores_the_head: SkipIgnoresHead by ["order"], within 200;
    found_a_pause_that_is_forgotten: PauseForgotten by ["pauses", "ownership"], within 60;
    found_a_publish_that_forgets_ids: PublishForgetsIds by ["order", "repeats"], within 100;
    found_a_reap_in_two_steps: ReapInTwoSteps by ["loss", "order"], within 200;
    found_lost_bells_without_sweeps: SweepsOff by ["liveness"], within 60;
    found_a_shared_commit_that_ignores_its_delivery: SharedIgnoresDelivery by ["shared"], within 60;
}
