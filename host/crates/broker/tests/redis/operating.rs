//! What operators do, where the server holds something unusual: entries that are gone, process managers, other types.

use keyrail_broker::{
    AcquireError, By, Error, FencedError, HeadAction, Leases, Log, Operate, OperateError, Publish, ReadySource,
};
use keyrail_ordering::{Content, EntryId, HaltCause, HaltRecord, Lease};

use crate::world::*;

fn by() -> By {
    By { who: "ann".into(), reason: "why not".into() }
}

async fn halt_as_missing(world: &World, lease: &Lease, head: keyrail_ordering::EntryRef) {
    let (error, handler_version) = ("gone".into(), "1".into());
    let record = HaltRecord { head, cause: HaltCause::Missing, attempts: 0, error, handler_version };
    world.a.halt(lease, &record).await.unwrap();
}

async fn act(world: &World, action: HeadAction, id: EntryId) -> Result<(), OperateError> {
    world.a.act_on_head(&partition("k1"), &at("k1", &id.to_string()), action, &by()).await
}

#[tokio::test]
async fn c023_a_head_whose_body_is_gone_is_skipped_or_set_aside() {
    for action in [HeadAction::Skip, HeadAction::SetAside] {
        let world = World::new().await;
        let published = world.publish("k1", 1..=3).await;
        let held = world.acquire(&world.a, "k1", "a").await;
        world.cli(&format!("XDEL order:k1 {}", published[0].id)).await;
        halt_as_missing(&world, &held.lease, held.entries[0].at.clone()).await;
        let head = world.a.head(&partition("k1")).await.unwrap().unwrap();
        assert_eq!((&head.entry.content, head.entry.at.id), (&Content::Missing, published[0].id));
        act(&world, action, published[0].id).await.unwrap();
        let next = world.acquire(&world.a, "k1", "b").await;
        assert_eq!(ids(&next.entries), ["k1-2", "k1-3"]);
        let (letters, _) = world.a.dead_letters(&category("order"), Some(&key("k1")), 0, 10).await.unwrap();
        assert_eq!(letters.len(), usize::from(action == HeadAction::SetAside));
        commit_all(&world.a, &next.lease, &next.entries).await;
    }
}

#[tokio::test]
async fn c023_a_hole_stands_until_it_is_skipped_and_what_follows_it_is_kept() {
    for (action, rest) in [(HeadAction::Retry, vec!["missing", "k1-4"]), (HeadAction::Skip, vec!["k1-4"])] {
        let world = World::new().await;
        let published = world.publish("k1", 1..=4).await;
        let held = world.a.acquire(partition("k1"), &owner("a"), TTL_MS, 1).await.unwrap();
        for gone in &published[1..3] {
            world.cli(&format!("XDEL order:k1 {}", gone.id)).await;
        }
        let mut commit = settle(&held.entries[0]);
        commit.take_max = 10;
        let after_gap = world.a.commit(&held.lease, commit).await.unwrap().entries;
        assert_eq!(ids(&after_gap), ["missing", "k1-4"]);
        assert_eq!(after_gap[0].at.id, published[1].id);
        halt_as_missing(&world, &held.lease, after_gap[0].at.clone()).await;
        let head = world.a.head(&partition("k1")).await.unwrap().unwrap();
        assert_eq!((&head.entry.content, head.entry.at.id), (&Content::Missing, published[1].id));
        act(&world, action, published[1].id).await.unwrap();
        let next = world.acquire(&world.a, "k1", "b").await;
        assert_eq!(ids(&next.entries), rest, "{action:?}");
        if action == HeadAction::Skip {
            commit_all(&world.a, &next.lease, &next.entries).await;
        }
    }
}

#[tokio::test]
async fn a_head_that_was_never_delivered_and_is_gone_is_skipped() {
    let world = World::new().await;
    let published = world.publish("k1", 1..=3).await;
    let held = world.a.acquire(partition("k1"), &owner("a"), TTL_MS, 1).await.unwrap();
    world.a.commit(&held.lease, settle(&held.entries[0])).await.unwrap();
    world.cli(&format!("XDEL order:k1 {}", published[1].id)).await;
    halt_as_missing(&world, &held.lease, at("k1", &published[1].id.to_string())).await;
    act(&world, HeadAction::Skip, published[1].id).await.unwrap();
    let next = world.acquire(&world.a, "k1", "b").await;
    assert_eq!(ids(&next.entries), ["k1-3"]);
    assert_eq!(next.positions[0].1, published[1].id);
}

#[tokio::test]
async fn a_dead_letter_is_readable_with_redis_cli_and_gone_with_its_last() {
    let world = World::new().await;
    let published = world.publish("k1", 1..=1).await;
    act(&world, HeadAction::SetAside, published[0].id).await.unwrap();
    let redis::Value::Array(rows) = world.cli("XRANGE order:k1:dlq - +").await else { panic!() };
    let (id, fields): (String, Vec<(String, String)>) = redis::from_redis_value(rows[0].clone()).unwrap();
    let names: Vec<_> = fields.iter().map(|(name, _)| name.as_str()).collect();
    let wanted =
        ["group", "stream", "entry", "attempts", "error", "who", "reason", "at", "id", "type", "version", "data"];
    assert_eq!(names, wanted);
    assert_eq!(world.number("ZCARD order:__dlqs__").await, 1);
    world.a.purge(&category("order"), Some(&key("k1")), id.parse().unwrap(), &by()).await.unwrap();
    for gone in ["order:k1:dlq", "order:__dlqs__"] {
        assert_eq!(world.number(&format!("EXISTS {gone}")).await, 0, "{gone}");
    }
}

#[tokio::test]
async fn a_letter_of_a_handler_that_is_gone_is_not_redriven() {
    let world = World::new().await;
    let published = world.publish("k1", 1..=1).await;
    act(&world, HeadAction::SetAside, published[0].id).await.unwrap();
    let (order, k1) = (category("order"), key("k1"));
    let (letters, _) = world.a.dead_letters(&order, None, 0, 10).await.unwrap();
    world.cli("HDEL order:__groups__ h").await;
    let refused = world.a.redrive(&order, Some(&k1), letters[0].id, &by()).await.unwrap_err().to_string();
    assert!(refused.contains("not registered"), "{refused}");
    assert_eq!(world.a.dead_letters(&order, None, 0, 10).await.unwrap().0, letters, "nothing was changed");
}

#[tokio::test]
async fn a_full_server_keeps_the_letter_and_lets_operators_act() {
    let world = World::new().await;
    let published = world.publish("k1", 1..=2).await;
    world.cli("CONFIG SET maxmemory 1").await;
    act(&world, HeadAction::SetAside, published[0].id).await.unwrap();
    let (order, k1) = (category("order"), key("k1"));
    let (letters, _) = world.a.dead_letters(&order, None, 0, 10).await.unwrap();
    let full = world.a.redrive(&order, Some(&k1), letters[0].id, &by()).await;
    assert!(matches!(&full, Err(OperateError::Broker(Error::Refused(why))) if why.contains("full")), "{full:?}");
    assert_eq!(world.a.dead_letters(&order, None, 0, 10).await.unwrap().0.len(), 1);
}

#[tokio::test]
async fn another_type_in_the_way_refuses_the_action_before_it_changes_anything() {
    for name in ["__audit__", "order:k1:dlq", "order:__dlqs__"] {
        let world = World::new().await;
        let published = world.publish("k1", 1..=1).await;
        let held = world.acquire(&world.a, "k1", "a").await;
        world.cli(&format!("SET {name} x")).await;
        let refused = act(&world, HeadAction::SetAside, published[0].id).await.unwrap_err().to_string();
        assert!(refused.contains(name), "{refused}");
        world.a.commit(&held.lease, settle(&held.entries[0])).await.unwrap();
    }
}

#[tokio::test]
async fn a_pause_of_one_category_takes_its_process_managers_too() {
    let world = World::new().await;
    register(&world.a, &handler("pm", &["order", "payment"], true)).await;
    world.a.publish(vec![event("payment", "x", "p1"), event("payment", "y", "p2")]).await.unwrap();
    let x = world.a.acquire(manager("x"), &owner("a"), TTL_MS, 10).await.unwrap();
    let y = world.a.acquire(manager("y"), &owner("a"), TTL_MS, 10).await.unwrap();
    let pm = ReadySource::ProcessManager { group: group("pm") };

    assert!(world.a.pause(&category("order"), Some(&key("x")), &by()).await.unwrap());
    assert!(matches!(world.a.commit(&x.lease, settle(&x.entries[0])).await, Err(FencedError::Fenced)));
    assert_eq!(world.a.ready(&pm, 0, 10).await.unwrap().keys, []);
    assert_eq!(world.a.heartbeat().renew(std::slice::from_ref(&y.lease), TTL_MS).await.unwrap(), [true]);

    // Nothing of y is in `order`; its manager reads from it all the same.
    assert!(world.a.pause(&category("order"), None, &by()).await.unwrap());
    assert!(matches!(world.a.commit(&y.lease, settle(&y.entries[0])).await, Err(FencedError::Fenced)));
    let refused = world.b.acquire(manager("y"), &owner("b"), TTL_MS, 10).await;
    assert!(matches!(refused, Err(AcquireError::Paused)));
    assert_eq!(world.a.ready(&pm, 0, 10).await.unwrap().keys, []);

    world.a.resume(&category("order"), None, &by()).await.unwrap();
    assert_eq!(world.a.ready(&pm, 0, 10).await.unwrap().keys, [key("y")]);
    let again = world.b.acquire(manager("y"), &owner("b"), TTL_MS, 10).await.unwrap();
    assert_eq!((ids(&again.entries), again.attempts), (vec!["p2".to_string()], None));
    world.a.resume(&category("order"), Some(&key("x")), &by()).await.unwrap();
    assert_eq!(world.number("EXISTS __paused__").await, 0);
}

#[tokio::test]
async fn a_foreign_record_in_the_audit_makes_no_action_fail_halfway() {
    let world = World::new().await;
    let published = world.publish("k1", 1..=1).await;
    world.cli("XADD __audit__ 1700000000000-7 action foreign").await;
    world.cli("XADD order:k1:dlq 1700000000000-7 a b").await;
    act(&world, HeadAction::SetAside, published[0].id).await.unwrap();
    let (rows, _) = world.a.audit(0, 10).await.unwrap();
    assert_eq!((rows[0].action.as_str(), rows.len()), ("set-aside", 2));
    let (letters, _) = world.a.dead_letters(&category("order"), None, 0, 10).await.unwrap();
    assert_eq!(letters.len(), 1, "what is no letter is passed over");
}

#[tokio::test]
async fn the_audit_is_trimmed_but_keeps_what_it_promises() {
    let world = World::new().await;
    for _ in 0..120 {
        let mut fill = redis::pipe();
        for n in 0..100 {
            fill.cmd("XADD").arg("__audit__").arg("1-*").arg("action").arg(format!("old-{n}")).ignore();
        }
        let _: () = fill.query_async(&mut world.raw.clone()).await.unwrap();
    }
    world.a.pause(&category("order"), None, &by()).await.unwrap();
    let kept = world.number("XLEN __audit__").await;
    assert!((10_000..12_000).contains(&kept), "{kept}");
    let (rows, next) = world.a.audit(0, 3).await.unwrap();
    assert_eq!((rows[0].action.as_str(), rows[1].action.as_str(), rows.len()), ("pause", "old-99", 3));
    let (rows, _) = world.a.audit(next.unwrap(), 1).await.unwrap();
    assert_eq!(rows[0].action, "old-97");
}
