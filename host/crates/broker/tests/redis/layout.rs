//! Names and what lies under them.

use futures::StreamExt;
use keyrail_broker::redis::keyspace::{self, Listing, Part};
use keyrail_broker::{Bell, CatalogStore, Error, Inspect, Leases, Log, Publish, ReadySource};
use keyrail_ordering::{EntryId, Lane, PartitionId, Scope};

use crate::world::*;

#[tokio::test]
async fn lua_and_rust_build_the_same_names() {
    let world = World::new().await;
    for source in [source(), ReadySource::ProcessManager { group: group("h") }] {
        let scope = match &source {
            ReadySource::Category { category, .. } | ReadySource::Shared { category, .. } => {
                Scope::Key { category: category.clone(), key: key("k") }
            }
            ReadySource::ProcessManager { .. } => Scope::Correlation { value: key("k") },
        };
        let id = PartitionId { group: group("h"), scope };
        let collection = keyspace::collection(&source);
        let lua = world.cli(&format!("FCALL_RO keyrail_6_names 0 {collection} k h e1")).await;
        let redis::Value::Array(lua) = lua else { panic!() };
        let lua: Vec<String> = lua.into_iter().map(|name| redis::from_redis_value(name).unwrap()).collect();
        let mut rust = vec![keyspace::scope(&id)];
        rust.extend([Part::Lease, Part::Attempts, Part::Halt, Part::State].map(|part| keyspace::part(&id, part)));
        assert_eq!(lua[..5], rust);
        if collection == "order" {
            let order = category("order");
            let of_category = [keyspace::index(&order), keyspace::groups(&order), keyspace::seen(&order, "e1")];
            assert_eq!(lua[5..8], of_category);
        }
        let lists = [
            Listing::Ready,
            Listing::Halted,
            Listing::Owners,
            Listing::States,
            Listing::Attempts,
            Listing::Waiting,
            Listing::Turns,
            Listing::Versions,
        ];
        assert_eq!(lua[8..16], lists.map(|list| keyspace::listing(&source, list)));
        if collection == "order" {
            let order = category("order");
            let letters = [keyspace::dlq(&order, Some(&key("k"))), keyspace::dlq(&order, None)];
            assert_eq!(lua[16..18], [keyspace::paused(&order), keyspace::dlqs(&order)]);
            assert_eq!(lua[18..20], letters);
        }
        let fixed = [
            keyspace::EPOCH,
            keyspace::GENERATION,
            keyspace::CATALOG,
            keyspace::OUTBOX,
            keyspace::ABANDONED,
            keyspace::AUDIT,
            keyspace::PAUSED_CATEGORIES,
            keyspace::PUBLISHED,
        ];
        assert_eq!(lua[20..], fixed);
    }
}

#[tokio::test]
async fn a_stream_is_readable_with_redis_cli() {
    let world = World::new().await;
    let mut publication = event("order", "k1", "e1");
    publication.event.headers.push(("trace".into(), "7".into()));
    world.a.publish(vec![publication]).await.unwrap();
    let redis::Value::Array(rows) = world.cli("XRANGE order:k1 - +").await else { panic!() };
    let (id, fields): (String, Vec<(String, String)>) = redis::from_redis_value(rows[0].clone()).unwrap();
    assert_eq!(id.parse::<EntryId>().unwrap().sequence, 0);
    let names: Vec<_> = fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["id", "type", "version", "at", "headers", "data"]);
    assert_eq!(fields[4].1, r#"[["trace","7"]]"#);
    assert_eq!(world.number("HLEN order:__partitions__").await, 1);
}

#[tokio::test]
async fn c043_the_public_function_checks_keys_itself() {
    let world = World::new().await;
    let long = "x".repeat(257);
    let bad = ["", "a:b", "{a}", "a\nb", "a\u{0}", " a", "a ", "dlq", "backfill", "__x__", "a\u{85}b", long.as_str()];
    for text in bad {
        let mut call = redis::cmd("FCALL");
        call.arg("keyrail_publish").arg(1).arg(format!("order:{text}"));
        for argument in ["order", text, "client", "", "0", "e1", "Placed", "1", "", "{}"] {
            call.arg(argument);
        }
        let (status, why): (i64, String) = call.query_async(&mut world.raw.clone()).await.unwrap();
        assert_eq!(status, 3, "{text:?}: {why}");
    }
    assert_eq!(world.number("EXISTS order:__partitions__").await, 0);
}

/// A time that the server refuses would be found out when the entry is written.
#[tokio::test]
async fn a_window_that_is_no_whole_number_is_taken_down_to_one() {
    let world = World::new().await;
    for (n, window) in ["0.4", "0.9", "1000.7"].into_iter().enumerate() {
        let mut call = redis::cmd("FCALL");
        call.arg("keyrail_publish").arg(1).arg("order:k1");
        for argument in ["order", "k1", "client", "", window, &format!("e{n}"), "Placed", "1", "", "{}"] {
            call.arg(argument);
        }
        let (status, why): (i64, String) = call.query_async(&mut world.raw.clone()).await.unwrap();
        assert_eq!(status, 0, "{window}: {why}");
    }
    assert_eq!(world.number("EXISTS order:__seen__:e0 order:__seen__:e1 order:__seen__:e2").await, 1);
}

#[tokio::test]
async fn the_backfill_lane_is_served_when_the_primary_is_empty() {
    let world = World::new().await;
    let backfill = |id: &str| {
        let mut publication = event("order", "k1", id);
        publication.lane = Lane::Backfill;
        publication
    };
    world.a.publish(vec![backfill("b1"), backfill("b2"), event("order", "k1", "p1")]).await.unwrap();
    let held = world.acquire(&world.a, "k1", "a").await;
    assert_eq!(ids(&held.entries), ["p1"]);
    let mut commit = settle(&held.entries[0]);
    commit.take_max = 10;
    let next = world.a.commit(&held.lease, commit).await.unwrap();
    assert_eq!(ids(&next.entries), ["b1", "b2"]);
    assert_eq!(next.entries[0].at.stream.lane, Lane::Backfill);
    // A new primary event waits until the lane's entries in hand are settled, and then goes first.
    world.a.publish(vec![event("order", "k1", "p2"), backfill("b3")]).await.unwrap();
    let mut commit = settle(&next.entries[0]);
    commit.take_max = 10;
    let blocked = world.a.commit(&held.lease, commit).await.unwrap();
    assert_eq!((blocked.entries.len(), blocked.more), (0, true));
    let mut commit = settle(&next.entries[1]);
    commit.take_max = 10;
    assert_eq!(ids(&world.a.commit(&held.lease, commit).await.unwrap().entries), ["p2"]);
    let (rows, _) = world.a.partitions(&source(), 0, 10).await.unwrap();
    assert_eq!((rows.len(), rows[0].waiting), (1, 2));
}

#[tokio::test]
async fn a_process_manager_owns_one_correlation_over_its_categories() {
    let world = World::new().await;
    register(&world.a, &handler("pm", &["order", "payment"], true)).await;
    let pm = ReadySource::ProcessManager { group: group("pm") };
    let mut bells = world.b.bells(vec![pm.clone()]).await.unwrap();
    assert_eq!(bells.next().await, Some(Bell::Lost));
    let batch = vec![event("order", "x", "o1"), event("payment", "x", "p1"), event("order", "x", "o2")];
    for answer in world.a.publish(batch).await.unwrap() {
        answer.unwrap();
    }
    assert_eq!(bells.next().await, Some(Bell::Ready { source: pm.clone(), key: key("x") }));
    assert_eq!(world.a.ready(&pm, 0, 10).await.unwrap().keys, [key("x")]);
    let (rows, next) = world.a.partitions(&pm, 0, 10).await.unwrap();
    assert!(rows.is_empty());
    let (rows, next) = world.a.partitions(&pm, next.unwrap(), 10).await.unwrap();
    assert_eq!((rows.len(), rows[0].waiting, next), (1, 3, None));

    let spec = manager("x");
    let held = world.a.acquire(spec, &owner("a"), TTL_MS, 10).await.unwrap();
    assert_eq!(ids(&held.entries), ["o1", "o2"]);
    let mut commit = settle(&held.entries[0]);
    commit.entries.push(held.entries[1].at.clone());
    commit.effects.state.push(put("n", "1"));
    commit.take_max = 10;
    let next = world.a.commit(&held.lease, commit).await.unwrap();
    assert_eq!(ids(&next.entries), ["p1"]);
    let mut commit = settle(&next.entries[0]);
    (commit.take_max, commit.release) = (10, true);
    let last = world.a.commit(&held.lease, commit).await.unwrap();
    assert!(last.released && last.entries.is_empty() && !last.more);
    assert_eq!(world.a.ready(&pm, 0, 10).await.unwrap().keys, []);
    let (states, _) = world.a.states(&pm, 0, 10).await.unwrap();
    assert_eq!((states[0].category.clone(), states[0].key.as_str()), (None, "x"));
    let (rows, _) = world.a.partitions(&pm, 0, 10).await.unwrap();
    assert_eq!((rows.len(), rows[0].waiting, rows[0].owned), (1, 0, false));
    assert_eq!(rows[0].owner, Some(owner("a")));
}

#[tokio::test]
async fn a_group_that_comes_later_is_given_what_is_there() {
    let world = World::new().await;
    world.publish("k1", 1..=2).await;
    world.publish("k2", 1..=2).await;
    let late = ReadySource::Category { group: group("late"), category: category("order") };
    let mut bells = world.b.bells(vec![late.clone()]).await.unwrap();
    assert_eq!(bells.next().await, Some(Bell::Lost));
    register(&world.a, &handler("late", &["order"], false)).await;
    assert_eq!(bells.next().await, Some(Bell::Look { source: late.clone() }));
    let mut keys = world.a.ready(&late, 0, 10).await.unwrap().keys;
    keys.sort();
    assert_eq!(keys, [key("k1"), key("k2")]);
}

#[tokio::test]
async fn the_catalog_refuses_another_key_for_a_category_with_entries() {
    let world = World::new().await;
    world.publish("k1", 1..=1).await;
    let (mut catalog, version) = world.a.catalog().await.unwrap();
    catalog.categories.get_mut(&category("order")).unwrap().key_field = Some("region".into());
    let refused = world.a.set_catalog(&catalog, version).await;
    assert!(matches!(refused, Err(Error::Refused(why)) if why.contains("client") && why.contains("region")));
    assert_eq!(world.a.set_catalog(&catalog, version + 5).await.unwrap(), None);
}

#[tokio::test]
async fn ready_and_partitions_page_through_many_keys() {
    let world = World::new().await;
    let batch: Vec<_> = (0..1_200).map(|n| event("order", &format!("k{n}"), &format!("e{n}"))).collect();
    world.a.publish(batch).await.unwrap().into_iter().for_each(|answer| assert!(answer.is_ok()));
    let mut found = std::collections::BTreeSet::new();
    let mut cursor = Some(0);
    while let Some(at) = cursor {
        let page = world.a.ready(&source(), at, 100).await.unwrap();
        assert!(page.keys.len() <= 100);
        found.extend(page.keys);
        cursor = page.next;
    }
    assert_eq!(found.len(), 1_200);
    let mut listed = std::collections::BTreeSet::new();
    let mut cursor = Some(0);
    while let Some(at) = cursor {
        let (rows, next) = world.a.partitions(&source(), at, 100).await.unwrap();
        listed.extend(rows.into_iter().map(|row| row.partition.key().clone()));
        cursor = next;
    }
    assert_eq!(listed, found);
    assert_eq!(world.a.backlog(&[source()]).await.unwrap().ready, 1_200);
}

#[tokio::test]
async fn large_state_is_not_prefetched_and_is_read_by_name() {
    let world = World::new().await;
    world.publish("k1", 1..=3).await;
    let held = world.acquire(&world.a, "k1", "a").await;
    let mut commit = settle(&held.entries[0]);
    commit.effects.state = vec![put("a", "1"), put("b", "2")];
    world.a.commit(&held.lease, commit).await.unwrap();
    world.a.release(&held.lease).await.unwrap();
    let held = world.acquire(&world.a, "k1", "a").await;
    assert_eq!(held.state.unwrap().len(), 2);
    let mut commit = settle(&held.entries[0]);
    commit.effects.state = (0..1_500).map(|n| put(&format!("n{n}"), "x")).collect();
    world.a.commit(&held.lease, commit).await.unwrap();
    world.a.release(&held.lease).await.unwrap();
    let held = world.acquire(&world.a, "k1", "a").await;
    assert_eq!(held.state, None);
    assert_eq!(world.a.state(&held.lease, "n1499").await.unwrap().as_deref(), Some(b"x".as_slice()));
    let (states, _) = world.a.states(&source(), 0, 10).await.unwrap();
    assert_eq!(states[0].values.len(), 1_502);
}

#[tokio::test]
async fn a_key_that_is_ready_without_work_leaves_the_ready_set_when_it_is_read() {
    let world = World::new().await;
    let ready = async || world.a.backlog(&[source()]).await.unwrap().ready;
    world.cli("ZADD order:__behind__:h 0 k1").await;
    let held = world.acquire(&world.a, "k1", "a").await;
    assert_eq!((held.entries.len(), held.more, ready().await), (0, false, 0));
    world.cli("ZADD order:__behind__:h 0 k1").await;
    assert_eq!(world.a.take(&held.lease, 10, false).await.unwrap().entries, []);
    assert_eq!(ready().await, 0);
}

/// Acquire believes the server's count when it says that something waits.
#[tokio::test]
async fn a_key_of_which_the_server_counts_entries_that_are_not_there_leaves_the_ready_set_when_it_is_read() {
    let world = World::new().await;
    world.publish("k1", 1..=1).await;
    let held = world.acquire(&world.a, "k1", "a").await;
    commit_all(&world.a, &held.lease, &held.entries).await;
    world.a.release(&held.lease).await.unwrap();
    world.cli("XSETID order:k1 1-0 ENTRIESADDED 50").await;
    world.cli("ZADD order:__behind__:h 0 k1").await;
    let held = world.acquire(&world.a, "k1", "a").await;
    assert_eq!((held.entries.len(), held.more), (0, true));
    let taken = world.a.take(&held.lease, 10, false).await.unwrap();
    assert_eq!((taken.entries.len(), taken.more), (0, false));
    assert_eq!(world.a.backlog(&[source()]).await.unwrap().ready, 0);
}

/// The first rows come along with acquire from the beginning of the stream, which is not where this group goes on.
#[tokio::test]
async fn a_group_that_is_ahead_of_another_is_given_what_it_has_not_settled() {
    let world = World::new().await;
    register(&world.a, &handler("slow", &["order"], false)).await;
    for first in [1, 31, 61] {
        world.publish("k1", first..=first + 29).await;
        let held = world.acquire(&world.a, "k1", "a").await;
        let found: Vec<u64> = held.entries.iter().map(|entry| entry.at.id.sequence + 1).collect();
        assert_eq!(found, (u64::from(first)..u64::from(first) + 10).collect::<Vec<_>>());
        assert!(held.more);
        let mut entries = held.entries;
        while !entries.is_empty() {
            commit_all(&world.a, &held.lease, &entries).await;
            entries = world.a.take(&held.lease, 10, false).await.unwrap().entries;
        }
        world.a.release(&held.lease).await.unwrap();
    }
}

#[tokio::test]
async fn a_partition_that_was_released_with_its_last_commit_leaves_no_consumer() {
    let world = World::new().await;
    world.publish("k1", 1..=1).await;
    let held = world.acquire(&world.a, "k1", "a").await;
    let mut commit = settle(&held.entries[0]);
    (commit.take_max, commit.release) = (1, true);
    assert!(world.a.commit(&held.lease, commit).await.unwrap().released);
    let redis::Value::Array(consumers) = world.cli("XINFO CONSUMERS order:k1 h").await else { panic!() };
    assert!(consumers.is_empty(), "{consumers:?}");
}

#[tokio::test]
async fn ready_tells_how_long_until_what_it_passed_over_may_be_due() {
    let world = World::new().await;
    world.publish("held", 1..=1).await;
    world.publish("failed", 1..=1).await;
    assert_eq!(world.a.ready(&source(), 0, 10).await.unwrap().due_ms, None, "nothing was passed over");
    let held = world.acquire(&world.a, "held", "a").await;
    let due = world.a.ready(&source(), 0, 10).await.unwrap().due_ms.unwrap();
    assert!(due <= TTL_MS && due > TTL_MS / 2, "{due}: the lease's time");
    let failed = world.acquire(&world.a, "failed", "a").await;
    world.a.fail(&failed.lease, &failed.entries[0].at, 1, "no", TTL_MS / 4).await.unwrap();
    world.a.release(&failed.lease).await.unwrap();
    let ready = world.a.ready(&source(), 0, 10).await.unwrap();
    let due = ready.due_ms.unwrap();
    assert!(ready.keys.is_empty() && due <= TTL_MS / 4 && due > 0, "{due}: the next try");
    world.a.release(&held.lease).await.unwrap();
    assert_eq!(world.a.ready(&source(), 0, 10).await.unwrap().keys, [key("held")]);
}

#[tokio::test]
async fn an_event_without_key_rings_look_for_each_group_and_counts_in_the_backlog() {
    let world = World::new().await;
    for name in ["h1", "h2"] {
        register(&world.a, &unordered(name)).await;
    }
    let metrics = |name: &str| ReadySource::Shared { group: group(name), category: category("metrics") };
    let mut bells = world.b.bells(vec![metrics("h1"), metrics("h2")]).await.unwrap();
    assert_eq!(bells.next().await, Some(Bell::Lost));
    world.a.publish(vec![metric("m1")]).await.unwrap().remove(0).unwrap();
    let rung = [bells.next().await, bells.next().await];
    for name in ["h1", "h2"] {
        assert!(rung.contains(&Some(Bell::Look { source: metrics(name) })), "{rung:?}");
    }
    assert_eq!(world.a.backlog(&[metrics("h1"), metrics("h2")]).await.unwrap().ready, 2);
    let mut lane = metric("m2");
    lane.lane = Lane::Backfill;
    let refused = world.a.publish(vec![lane]).await.unwrap().remove(0).unwrap_err();
    assert!(refused.to_string().contains("no backfill lane"), "{refused}");
}
