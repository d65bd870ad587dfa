//! Who should own what: balance, least movement, and the same answer everywhere.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;

use keyrail_ordering::{CategoryName, GroupName, Key, KeyRules, Member, Membership, OwnerId, PartitionId};
use proptest::prelude::*;

fn group() -> GroupName {
    GroupName::parse("h").unwrap()
}

fn member(name: &str) -> Member {
    Member {
        owner: OwnerId::new(name),
        groups: vec![group()],
        capacity: 256,
        owned: 0,
        running: 0,
        settled: 0,
        release: "0".into(),
        leaving: false,
        held: vec![],
        hot: vec![],
    }
}

fn members(count: usize) -> Vec<Member> {
    (0..count).map(|n| member(&format!("host-{n}-{:08x}", n * 7_919))).collect()
}

fn partition(n: usize) -> PartitionId {
    let key = Key::parse(&format!("client-{n}"), &KeyRules::default()).unwrap();
    PartitionId::of_key(group(), CategoryName::parse("order").unwrap(), key)
}

fn owners(members: &[Member], partitions: usize) -> Vec<OwnerId> {
    let membership = Membership::new(members.to_vec());
    (0..partitions).map(|n| membership.preferred(&partition(n)).unwrap().clone()).collect()
}

#[test]
fn each_member_gets_a_fair_share() {
    for count in [2, 3, 5, 10] {
        let mut shares: BTreeMap<OwnerId, usize> = BTreeMap::new();
        for owner in owners(&members(count), 10_000) {
            *shares.entry(owner).or_default() += 1;
        }
        let fair = 10_000 / count;
        assert_eq!(shares.len(), count);
        assert!(shares.values().all(|share| share.abs_diff(fair) < fair / 5), "{count} members: {shares:?}");
    }
}

#[test]
fn a_member_that_joins_takes_its_share_and_nothing_else_moves() {
    let before = owners(&members(3), 10_000);
    let after = owners(&members(4), 10_000);
    let newcomer = &members(4)[3].owner;
    let moved: Vec<_> = before.iter().zip(&after).filter(|(before, after)| before != after).collect();
    assert!(moved.iter().all(|(_, after)| *after == newcomer), "a partition moved between two that stayed");
    assert!(moved.len().abs_diff(2_500) < 500, "{} moved", moved.len());
}

#[test]
fn a_member_that_leaves_gives_up_its_share_and_nothing_else_moves() {
    let all = members(4);
    let mut leaving = all.clone();
    leaving[1].leaving = true;
    for (before, after) in owners(&all, 5_000).iter().zip(owners(&leaving, 5_000)) {
        assert_eq!(*before != after, *before == all[1].owner);
    }
}

#[test]
fn a_full_member_is_passed_over_and_nothing_is_given_to_it() {
    let mut all = members(3);
    let partition = partition(1);
    let preferred = Membership::new(all.clone()).preferred(&partition).unwrap().clone();
    for member in &mut all {
        if member.owner == preferred {
            member.owned = member.capacity;
        }
    }
    let membership = Membership::new(all.clone());
    let taker = membership.taker(&partition).unwrap().clone();
    assert_ne!(taker, preferred);
    assert_eq!(membership.preferred(&partition), Some(&preferred));
    assert_eq!(membership.successor(&taker, &partition), None, "given to a member without room");
    for member in &mut all {
        member.owned = member.capacity;
    }
    assert_eq!(Membership::new(all).taker(&partition), Some(&preferred), "all full: then as if none were");
}

#[test]
fn only_members_that_serve_the_group_count() {
    let mut all = members(3);
    let serving = all[2].owner.clone();
    all[0].groups = vec![GroupName::parse("other").unwrap()];
    all[1].groups = vec![];
    let membership = Membership::new(all);
    assert!((0..100).all(|n| membership.preferred(&partition(n)) == Some(&serving)));
    assert_eq!(Membership::default().preferred(&partition(1)), None);
}

#[test]
fn load_alone_moves_nothing() {
    let quiet = Membership::new(members(3));
    let mut busy = members(3);
    busy[1].owned = 200;
    busy[2].settled = 9;
    let busy = Membership::new(busy);
    assert!(quiet.is_same_assignment(&busy));
    assert!((0..1_000).all(|n| quiet.preferred(&partition(n)) == busy.preferred(&partition(n))));
    assert!(!quiet.is_same_assignment(&Membership::new(members(2))));
}

#[test]
fn the_answer_is_the_same_in_every_release() {
    let owners = owners(&members(3), 6);
    let names: Vec<_> = owners.iter().map(|owner| owner.as_str().split('-').nth(1).unwrap()).collect();
    assert_eq!(names.join(""), "201200");
}

proptest! {
    #[test]
    fn the_order_of_the_list_does_not_matter(mut names in proptest::collection::vec("[a-z]{1,8}", 1..8), n in 0..1_000usize) {
        let forward = Membership::new(names.iter().map(|name| member(name)));
        names.reverse();
        let backward = Membership::new(names.iter().map(|name| member(name)));
        prop_assert_eq!(forward.preferred(&partition(n)), backward.preferred(&partition(n)));
    }
}
