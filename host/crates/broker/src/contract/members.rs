//! Who is there: told, dropped when the time is over, and rung for when it matters.

use futures::StreamExt;
use keyrail_ordering::{Member, OwnerId};

use super::Subject;
use super::story::{LONG_TTL_MS, Story, eventually, group, listen, source};
use crate::{Bell, Bells};

fn member(owner: &str, groups: &[&str]) -> Member {
    Member {
        owner: OwnerId::new(owner),
        groups: groups.iter().map(|name| group(name)).collect(),
        capacity: 8,
        owned: 1,
        running: 0,
        settled: 3,
        release: "1.2.3".into(),
        leaving: false,
        held: vec![],
        hot: vec![],
    }
}

fn owners(members: &[Member]) -> Vec<String> {
    let mut owners: Vec<_> = members.iter().map(|member| member.owner.to_string()).collect();
    owners.sort_unstable();
    owners
}

/// Waits until the bell of the outbox, which is rung here, has been heard; answers with how often the members' rang before.
async fn rung_for_members(story: &Story, bells: &mut Bells, n: u32) -> usize {
    use super::story::{CommitWords, commit, outgoing};
    let key = format!("bell-{n}");
    story.publish(&key, [&format!("rung-{n}")]).await;
    let held = story.acquire("ringer", &key).await;
    story.broker.commit(&held.lease, commit(&held.entries[0]).emit(outgoing("out", &key))).await.unwrap();
    let mut rung = 0;
    loop {
        match bells.next().await.expect("the bells ended") {
            Bell::Members => rung += 1,
            Bell::Outbox => return rung,
            _ => {}
        }
    }
}

pub async fn a_member_is_there_as_it_told(subject: Subject) {
    let story = Story::begin(subject).await;
    assert_eq!(story.broker.members().await.unwrap(), []);
    let mut heartbeat = story.broker.heartbeat();
    let a = member("a", &["billing"]);
    assert_eq!(heartbeat.announce(&a, LONG_TTL_MS).await.unwrap(), std::slice::from_ref(&a));
    let b = Member { owned: 7, ..member("b", &["billing", "mail"]) };
    assert_eq!(owners(&heartbeat.announce(&b, LONG_TTL_MS).await.unwrap()), ["a", "b"]);
    let later = Member { owned: 2, settled: 9, ..a };
    let told = heartbeat.announce(&later, LONG_TTL_MS).await.unwrap();
    assert!(told.contains(&later) && told.contains(&b) && told.len() == 2, "{told:?}");
    assert_eq!(owners(&story.broker.members().await.unwrap()), ["a", "b"]);
}

pub async fn a_member_that_leaves_is_gone_at_once(subject: Subject) {
    let story = Story::begin(subject).await;
    let mut heartbeat = story.broker.heartbeat();
    for owner in ["a", "b"] {
        heartbeat.announce(&member(owner, &["billing"]), LONG_TTL_MS).await.unwrap();
    }
    story.broker.leave(&OwnerId::new("a")).await.unwrap();
    story.broker.leave(&OwnerId::new("a")).await.unwrap();
    assert_eq!(owners(&story.broker.members().await.unwrap()), ["b"]);
}

pub async fn a_member_whose_time_is_over_is_gone(subject: Subject) {
    let story = Story::begin(subject).await;
    let mut heartbeat = story.broker.heartbeat();
    heartbeat.announce(&member("dead", &["billing"]), 1).await.unwrap();
    heartbeat.announce(&member("live", &["billing"]), LONG_TTL_MS).await.unwrap();
    let alone = || async { (owners(&story.broker.members().await.unwrap()) == ["live"]).then_some(()) };
    eventually("the dead one goes", alone).await;
    let told = heartbeat.announce(&member("live", &["billing"]), LONG_TTL_MS).await.unwrap();
    assert_eq!(owners(&told), ["live"]);
}

pub async fn the_bell_rings_for_what_the_others_must_know(subject: Subject) {
    let story = Story::begin(subject).await;
    let mut bells = listen(&*story.broker, vec![source("billing")]).await;
    let mut heartbeat = story.broker.heartbeat();
    let a = member("a", &["billing"]);
    heartbeat.announce(&a, LONG_TTL_MS).await.unwrap();
    assert_eq!(rung_for_members(&story, &mut bells, 1).await, 1, "it is new");
    heartbeat.announce(&Member { owned: 5, running: 2, ..a.clone() }, LONG_TTL_MS).await.unwrap();
    assert_eq!(rung_for_members(&story, &mut bells, 2).await, 0, "that it is busier needs no bell");
    heartbeat.announce(&member("a", &["billing", "mail"]), LONG_TTL_MS).await.unwrap();
    assert_eq!(rung_for_members(&story, &mut bells, 3).await, 1, "it serves more");
    let leaving = Member { leaving: true, ..member("a", &["billing", "mail"]) };
    heartbeat.announce(&leaving, LONG_TTL_MS).await.unwrap();
    assert_eq!(rung_for_members(&story, &mut bells, 4).await, 1, "it says that it leaves");
    story.broker.leave(&OwnerId::new("a")).await.unwrap();
    assert_eq!(rung_for_members(&story, &mut bells, 5).await, 1, "it left");
    story.broker.leave(&OwnerId::new("a")).await.unwrap();
    assert_eq!(rung_for_members(&story, &mut bells, 6).await, 0, "it was gone already");
}
