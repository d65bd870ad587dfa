//! What a deployment may become.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;

use keyrail_ordering::{
    Capabilities, Catalog, CategoryName, DeployError, Field, FieldType, GroupName, Key, KeyRules, MessageName,
    MessageType, Metadata, Proposal, Role, Selection, SequentialBy,
};
use proptest::prelude::*;

const PARTITIONING: Capabilities = Capabilities { stream_partitioning: true };

fn group() -> GroupName {
    GroupName::parse("billing").unwrap()
}

fn metadata(version: &str, messages: &[&str]) -> Metadata {
    let message = |name: &&str| MessageType {
        category: CategoryName::parse("order").unwrap(),
        name: MessageName::parse(name).unwrap(),
        version: 1,
        fields: vec![Field { name: "client".into(), kind: FieldType::Text, required: true }],
    };
    Metadata {
        name: group(),
        version: version.into(),
        role: Role::EventHandler,
        handles: messages.iter().map(message).collect(),
        sequential_by: SequentialBy::Field("client".into()),
        options: vec![],
    }
}

fn proposal(hash: &str, canary: Option<Selection>) -> Proposal {
    let text = |text: &str| text.to_string();
    Proposal { content_hash: hash.into(), manifest: text(""), canary, by: text("ann"), reason: text("x"), at_ms: 1 }
}

fn propose(catalog: &Catalog, version: &str, canary: Option<Selection>) -> (Catalog, u64) {
    catalog.propose(&metadata(version, &["Placed"]), proposal(version, canary), PARTITIONING).unwrap()
}

/// A catalog in which this version serves.
fn serving(catalog: &Catalog, version: &str) -> (Catalog, u64) {
    let (proposed, number) = propose(catalog, version, None);
    (proposed.begin(&metadata(version, &["Placed"]), number, PARTITIONING).unwrap(), number)
}

fn active(catalog: &Catalog) -> Option<String> {
    catalog.deployments[&group()].active().map(keyrail_ordering::Revision::label)
}

#[test]
fn a_candidate_changes_nothing_until_it_begins() {
    let (one, first) = serving(&Catalog::default(), "1");
    let wider = metadata("2", &["Placed", "Cancelled"]);
    let (proposed, second) = one.propose(&wider, proposal("2", None), PARTITIONING).unwrap();
    assert_eq!((active(&proposed), proposed.handlers.clone()), (Some("1#1".into()), one.handlers.clone()));
    let wanted: Vec<_> = proposed.deployments[&group()].wanted().map(|revision| revision.number).collect();
    assert_eq!(wanted, [first, second], "hosts load it beside the one that serves");
    let two = proposed.begin(&wider, second, PARTITIONING).unwrap();
    assert_eq!(active(&two), Some("2#2".into()));
    assert_eq!(two.handlers[&group()].content_hash, "2");
    assert_eq!(two.categories.values().next().unwrap().messages.len(), 2, "accepted and served in one step");
    assert_eq!(two.deployments[&group()].candidate, None);
}

#[test]
fn a_later_proposal_takes_the_earlier_one_back() {
    let (catalog, _) = serving(&Catalog::default(), "1");
    let (catalog, second) = propose(&catalog, "2", None);
    let (catalog, third) = propose(&catalog, "3", None);
    let late = catalog.begin(&metadata("2", &["Placed"]), second, PARTITIONING).unwrap_err();
    assert!(late.to_string().contains("revision 3 was deployed in its place"), "{late}");
    catalog.begin(&metadata("3", &["Placed"]), third, PARTITIONING).unwrap();
}

#[test]
fn a_withdrawn_candidate_leaves_what_served() {
    let (catalog, _) = serving(&Catalog::default(), "1");
    let (catalog, second) = propose(&catalog, "2", None);
    let catalog = catalog.withdraw(&group(), second, "h1 cannot run it").unwrap();
    assert_eq!(active(&catalog), Some("1#1".into()));
    assert_eq!(catalog.deployments[&group()].revision(second).unwrap().withdrawn.as_deref(), Some("h1 cannot run it"));
    let again = catalog.withdraw(&group(), second, "x").unwrap_err();
    assert!(matches!(again, DeployError::Superseded { .. }), "{again}");
}

#[test]
fn a_canary_needs_a_version_of_the_same_shape_that_serves() {
    let keys = Some(Selection::Keys(["a".to_string()].into()));
    let alone = Catalog::default().propose(&metadata("1", &["Placed"]), proposal("1", keys.clone()), PARTITIONING);
    assert!(matches!(alone, Err(DeployError::NothingServes(_))), "{alone:?}");
    let (one, _) = serving(&Catalog::default(), "1");
    let wider = one.propose(&metadata("2", &["Placed", "Cancelled"]), proposal("2", keys.clone()), PARTITIONING);
    assert!(matches!(wider, Err(DeployError::CanaryDiffers(_))), "{wider:?}");
    let (proposed, number) = propose(&one, "2", keys);
    assert!(!proposed.deployments[&group()].candidate.as_ref().unwrap().serves);
    let canary = proposed.begin(&metadata("2", &["Placed"]), number, PARTITIONING).unwrap();
    assert!(canary.deployments[&group()].candidate.as_ref().unwrap().serves);
    assert_eq!((active(&canary), canary.handlers.clone()), (Some("1#1".into()), one.handlers));
    let promoted = canary.activate(&metadata("2", &["Placed"]), number, PARTITIONING).unwrap();
    assert_eq!((active(&promoted), promoted.deployments[&group()].candidate.clone()), (Some("2#2".into()), None));
}

#[test]
fn a_rollback_goes_to_what_served_before_and_a_second_one_not_back() {
    let (catalog, _) = serving(&Catalog::default(), "1");
    assert!(matches!(catalog.rollback_target(&group(), None), Err(DeployError::NoPrevious(_))));
    let (catalog, second) = serving(&catalog, "2");
    assert_eq!(catalog.rollback_target(&group(), None), Ok(1));
    let back = catalog.activate(&metadata("1", &["Placed"]), 1, PARTITIONING).unwrap();
    assert_eq!(active(&back), Some("1#1".into()));
    assert!(matches!(back.rollback_target(&group(), None), Err(DeployError::NoPrevious(_))));
    assert_eq!(back.rollback_target(&group(), Some(second)), Ok(second));
    let known = catalog.rollback_target(&group(), Some(9)).unwrap_err();
    assert!(known.to_string().contains("there are: 1, 2"), "{known}");
    let same = catalog.activate(&metadata("2", &["Placed"]), 2, PARTITIONING).unwrap_err();
    assert!(matches!(same, DeployError::AlreadyActive { .. }), "{same}");
}

#[test]
fn a_rollback_that_another_handler_forbids_is_refused() {
    let (catalog, _) = serving(&Catalog::default(), "1");
    let (catalog, _) = serving(&catalog, "2");
    let mut other = metadata("1", &["Placed"]);
    other.name = GroupName::parse("audit").unwrap();
    let catalog = catalog.register(&other, "x", PARTITIONING).unwrap();
    let mut one = metadata("1", &["Placed"]);
    one.handles[0].fields.push(Field { name: "total".into(), kind: FieldType::Number, required: true });
    let refused = catalog.activate(&one, 1, PARTITIONING).unwrap_err();
    assert!(matches!(refused, DeployError::Refused(_)), "{refused}");
}

#[test]
fn what_is_undeployed_stays_registered_and_comes_back() {
    let (catalog, _) = serving(&Catalog::default(), "1");
    let gone = catalog.undeploy(&group(), "moved").unwrap();
    assert_eq!((active(&gone), gone.handlers.clone()), (None, catalog.handlers.clone()));
    assert_eq!(gone.deployments[&group()].wanted().count(), 0);
    assert_eq!(gone.rollback_target(&group(), None), Ok(1));
    let unknown = catalog.undeploy(&GroupName::parse("mail").unwrap(), "x").unwrap_err();
    assert!(unknown.to_string().contains("these are: billing"), "{unknown}");
}

#[test]
fn the_oldest_revisions_are_forgotten_but_none_that_is_needed() {
    let (mut catalog, _) = serving(&Catalog::default(), "0");
    for version in 1..30 {
        let (next, number) = propose(&catalog, &version.to_string(), None);
        catalog = next.withdraw(&group(), number, "x").unwrap();
    }
    let deployment = &catalog.deployments[&group()];
    assert_eq!(deployment.revisions.len(), 10);
    assert_eq!((active(&catalog), deployment.last_number), (Some("0#1".into()), 30));
}

proptest! {
    #[test]
    fn a_share_takes_about_that_many_keys_and_always_the_same(percent in 1_u8..100) {
        let keys: Vec<_> = (0..2_000).map(|n| Key::parse(&format!("client-{n}"), &KeyRules::default()).unwrap()).collect();
        let chosen = |percent| -> BTreeSet<&Key> {
            keys.iter().filter(|key| Selection::Percent(percent).contains(&group(), key)).collect()
        };
        let now = chosen(percent);
        let share = now.len() as f64 / keys.len() as f64 * 100.0;
        prop_assert!((share - f64::from(percent)).abs() < 5.0, "{share} of {percent}");
        prop_assert!(chosen(100).len() == keys.len());
        prop_assert!(percent == 99 || now.is_subset(&chosen(percent + 1)), "a larger share keeps the keys of a smaller one");
    }
}
