//! What others do to the server, and what the network does to a call. Numbers are those of cases.md.

use keyrail_broker::redis::{RedisBroker, RedisSettings};
use keyrail_broker::{AcquireError, Error, FencedError, Inspect, Leases, Log, Members, Publish, PublishError};
use keyrail_ordering::Content;

use crate::world::*;

#[tokio::test]
async fn c001_an_entry_whose_read_timed_out_comes_first_when_it_is_taken_again() {
    let world = World::new().await;
    let settings = RedisSettings { response_timeout_ms: 150, ..RedisSettings::default() };
    let hasty = RedisBroker::connect(&world.server.url(), settings).await.unwrap();
    let held = hasty.acquire(partition("k1"), &owner("a"), TTL_MS, 10).await.unwrap();
    world.publish("k1", 1..=1).await;

    // The server holds the read back until after the client gave up, and then runs it.
    world.cli("CLIENT PAUSE 400 ALL").await;
    assert!(matches!(hasty.take(&held.lease, 1, false).await, Err(e) if e.to_string().contains("does not answer")));
    world.publish("k1", 2..=2).await;
    let taken = hasty.take(&held.lease, 10, true).await.unwrap();
    assert_eq!(ids(&taken.entries), ["k1-1", "k1-2"]);
    commit_all(&hasty, &held.lease, &taken.entries).await;
}

#[tokio::test]
async fn c001_a_read_that_nobody_heard_is_pending_and_comes_first() {
    let world = World::new().await;
    let held = world.acquire(&world.a, "k1", "a").await;
    world.publish("k1", 1..=1).await;
    // As if the answer was lost on the way.
    world.a.take(&held.lease, 1, false).await.unwrap();
    world.publish("k1", 2..=2).await;
    assert_eq!(ids(&world.a.take(&held.lease, 10, true).await.unwrap().entries), ["k1-1", "k1-2"]);
}

#[tokio::test]
async fn c002_a_late_acquire_lapses_and_the_partition_moves_on() {
    let world = World::new().await;
    world.publish("k1", 1..=2).await;
    let settings = RedisSettings { response_timeout_ms: 100, ..RedisSettings::default() };
    let hasty = RedisBroker::connect(&world.server.url(), settings).await.unwrap();
    world.cli("CLIENT PAUSE 300 ALL").await;
    let lost = hasty.acquire(partition("k1"), &owner("a"), 200, 10).await;
    assert!(matches!(lost, Err(AcquireError::Broker(Error::Unavailable(_)))));
    let held = acquire_when_lapsed(&world.b, "k1", "b").await;
    assert_eq!(ids(&held.entries), ["k1-1", "k1-2"]);
    commit_all(&world.b, &held.lease, &held.entries).await;
}

#[tokio::test]
async fn c005_an_entry_that_was_deleted_is_named_missing_until_it_is_settled() {
    let world = World::new().await;
    let published = world.publish("k1", 1..=3).await;
    let held = world.acquire(&world.a, "k1", "a").await;
    world.cli(&format!("XDEL order:k1 {}", published[0].id)).await;
    // Its owner sees it, a successor sees it, and so does the one after that.
    let taken = world.a.take(&held.lease, 10, true).await.unwrap();
    assert_eq!(ids(&taken.entries), ["missing", "k1-2", "k1-3"]);
    assert_eq!(taken.entries[0].at, at("k1", &published[0].id.to_string()));
    world.lapse("k1").await;
    let second = world.acquire(&world.b, "k1", "b").await;
    assert_eq!(ids(&second.entries), ["missing", "k1-2", "k1-3"]);
    world.b.release(&second.lease).await.unwrap();
    let third = world.acquire(&world.b, "k1", "b").await;
    assert_eq!(ids(&third.entries), ["missing", "k1-2", "k1-3"]);
    // What an operator's skip does: it settles the head.
    commit_all(&world.b, &third.lease, &third.entries).await;
    assert_eq!(world.b.take(&third.lease, 10, true).await.unwrap().entries, []);
}

#[tokio::test]
async fn c023_of_entries_that_were_trimmed_before_they_were_read_the_first_is_named_missing() {
    let world = World::new().await;
    world.publish("k1", 1..=1).await;
    let held = world.acquire(&world.a, "k1", "a").await;
    commit_all(&world.a, &held.lease, &held.entries).await;
    world.a.release(&held.lease).await.unwrap();
    world.publish("k1", 2..=9).await;
    world.cli("XTRIM order:k1 MAXLEN 2").await;
    let next = world.acquire(&world.a, "k1", "a").await;
    assert_eq!(ids(&next.entries), ["missing", "k1-8", "k1-9"]);
    let (stream, before) = &next.positions[0];
    assert_eq!((stream, *before), (&held.entries[0].at.stream, held.entries[0].at.id));
    assert!(before.is_followed_by(next.entries[0].at.id), "the first that is missing is named");
}

#[tokio::test]
async fn c007_a_stream_that_was_deleted_under_its_owner_begins_anew() {
    let world = World::new().await;
    world.publish("k1", 1..=2).await;
    let held = world.acquire(&world.a, "k1", "a").await;
    world.cli("DEL order:k1").await;
    let published = world.publish("k1", 3..=5).await;
    assert!(published[0].id.epoch > held.entries[0].at.id.epoch);
    assert_eq!(published[0].id.sequence, 0);
    let taken = world.a.take(&held.lease, 10, true).await.unwrap();
    assert_eq!(ids(&taken.entries), ["k1-3", "k1-4", "k1-5"]);
    commit_all(&world.a, &held.lease, &taken.entries).await;
}

#[tokio::test]
async fn c007_after_a_flush_everything_is_made_again() {
    let world = World::new().await;
    world.publish("k1", 1..=2).await;
    let before = world.acquire(&world.a, "k1", "a").await;
    world.cli("FLUSHALL").await;
    register(&world.a, &handler("h", &["order"], false)).await;
    world.publish("k1", 11..=13).await;
    let after = world.acquire(&world.a, "k1", "a").await;
    assert_eq!(ids(&after.entries), ["k1-11", "k1-12", "k1-13"]);
    assert!(after.lease.generation > before.lease.generation);
}

#[tokio::test]
async fn c007_a_key_of_another_type_fails_alone() {
    let world = World::new().await;
    world.cli("SET order:k9 x").await;
    let batch = vec![event("order", "k8", "k8-1"), event("order", "k9", "k9-1"), event("order", "k8", "k8-2")];
    let answers = world.a.publish(batch).await.unwrap();
    assert!(answers[0].is_ok());
    assert!(matches!(&answers[1], Err(PublishError::Refused(why)) if why.contains("order:k9")), "{answers:?}");
    assert!(matches!(answers[2], Err(PublishError::NotTried)));
    let ready = world.a.ready(&source(), 0, 10).await.unwrap().keys;
    assert_eq!(ready.iter().map(ToString::to_string).collect::<Vec<_>>(), ["k8"], "nobody is sent to what was refused");
    let refused = world.a.acquire(partition("k9"), &owner("a"), TTL_MS, 10).await;
    assert!(matches!(refused, Err(AcquireError::Broker(Error::Refused(why))) if why.contains("string")));
    assert_eq!(ids(&world.acquire(&world.a, "k8", "a").await.entries), ["k8-1"]);
}

#[tokio::test]
async fn a_wrong_entry_is_that_entrys_failure() {
    let world = World::new().await;
    let first = world.publish("k1", 1..=1).await[0].id;
    world.cli(&format!("XADD order:k1 {}-* foo bar", first.epoch)).await;
    world.publish("k1", 2..=2).await;
    let held = world.acquire(&world.a, "k1", "a").await;
    assert_eq!(ids(&held.entries), ["k1-1", "undecodable", "k1-2"]);
    assert!(matches!(&held.entries[1].content, Content::Undecodable(why) if why.contains("`id`")));
}

#[tokio::test]
async fn c013_functions_that_were_flushed_are_loaded_again() {
    let world = World::new().await;
    world.publish("k1", 1..=3).await;
    world.cli("FUNCTION FLUSH").await;
    let held = world.acquire(&world.a, "k1", "a").await;
    world.cli("FUNCTION FLUSH").await;
    world.b.publish(vec![event("order", "k1", "k1-4")]).await.unwrap()[0].as_ref().unwrap();
    world.cli("FUNCTION FLUSH").await;
    assert_eq!(world.a.heartbeat().renew(std::slice::from_ref(&held.lease), TTL_MS).await.unwrap(), [true]);
    // Many calls at once find them gone.
    world.cli("FUNCTION FLUSH").await;
    let reads = (0..50).map(|_| world.a.state(&held.lease, "n"));
    for read in futures::future::join_all(reads).await {
        assert_eq!(read.unwrap(), None);
    }
}

#[tokio::test]
async fn c009_consumers_stay_a_handful_over_200_changes_of_hands() {
    let world = World::new().await;
    world.publish("k1", 1..=5).await;
    for turn in 0..200 {
        let held = world.acquire(&world.a, "k1", &format!("host-{turn}")).await;
        assert_eq!(held.entries.len(), 5);
        if turn % 2 == 0 { world.lapse("k1").await } else { world.a.release(&held.lease).await.unwrap() }
    }
    let redis::Value::Array(consumers) = world.cli("XINFO CONSUMERS order:k1 h").await else { panic!() };
    assert!(consumers.len() <= 2, "{} consumers", consumers.len());
}

#[tokio::test]
async fn c024_settled_entries_go_once_all_groups_settled_them() {
    let world = World::new().await;
    register(&world.a, &handler("slow", &["order"], false)).await;
    world.publish("k1", 1..=4).await;
    let held = world.acquire(&world.a, "k1", "a").await;
    let mut commit = settle(&held.entries[0]);
    commit.entries = held.entries.iter().map(|entry| entry.at.clone()).collect();
    commit.take_max = 10;
    world.a.commit(&held.lease, commit).await.unwrap();
    assert_eq!(world.number("XLEN order:k1").await, 4);

    let slow =
        std::sync::Arc::new(keyrail_ordering::PartitionSpec::of_key(group("slow"), category("order"), key("k1")));
    let slow = world.b.acquire(slow, &owner("b"), TTL_MS, 10).await.unwrap();
    assert_eq!(slow.entries.len(), 4);
    let mut commit = settle(&slow.entries[0]);
    commit.entries = slow.entries[..3].iter().map(|entry| entry.at.clone()).collect();
    world.b.commit(&slow.lease, commit).await.unwrap();
    let mut commit = settle(&slow.entries[3]);
    commit.release = true;
    assert!(world.b.commit(&slow.lease, commit).await.unwrap().released);
    assert_eq!(world.number("XLEN order:k1").await, 0);
    assert_eq!(world.number("EXISTS order:k1").await, 1);
    // The stream goes on where it was.
    let next = world.publish("k1", 5..=5).await[0].id;
    assert!(held.entries[3].at.id.is_followed_by(next));
    assert_eq!(ids(&world.a.take(&held.lease, 10, false).await.unwrap().entries), ["k1-5"]);
}

#[tokio::test]
async fn the_connection_mends_itself_when_the_server_comes_back() {
    let mut world = World::with(&["--appendonly", "yes", "--appendfsync", "always"]).await;
    world.publish("k1", 1..=2).await;
    let held = world.acquire(&world.a, "k1", "a").await;
    world.server.kill();
    assert!(matches!(world.a.take(&held.lease, 10, true).await, Err(e) if e.to_string().contains("does not answer")));
    world.server.restart().unwrap();
    let taken = eventually("the connection mends", async || world.a.take(&held.lease, 10, true).await.ok()).await;
    assert_eq!(ids(&taken.entries), ["k1-1", "k1-2"]);
}

#[tokio::test]
async fn a_full_server_refuses_publishing_and_lets_owners_drain() {
    let world = World::new().await;
    world.publish("k1", 1..=3).await;
    world.cli("CONFIG SET maxmemory 1").await;
    let answers = world.a.publish(vec![event("order", "k1", "x"), event("order", "k1", "y")]).await.unwrap();
    assert!(matches!(&answers[0], Err(PublishError::Refused(why)) if why.contains("full")), "{answers:?}");
    assert!(matches!(answers[1], Err(PublishError::NotTried)));
    let held = world.acquire(&world.a, "k1", "a").await;
    let mut commit = settle(&held.entries[0]);
    commit.effects.state.push(put("n", "1"));
    world.a.commit(&held.lease, commit).await.unwrap();
    world.a.fail(&held.lease, &held.entries[1].at, 1, "no", 0).await.unwrap();
    world.a.release(&held.lease).await.unwrap();
}

#[tokio::test]
async fn an_index_that_was_lost_is_repaired_by_the_next_event() {
    let world = World::new().await;
    let first = world.publish("k1", 1..=1).await[0].id;
    world.cli("DEL order:__partitions__").await;
    let second = world.publish("k1", 2..=2).await[0].id;
    assert!(first.is_followed_by(second));
    assert_eq!(world.number("HGET order:__partitions__ k1").await, i64::try_from(first.epoch).unwrap());
}

#[tokio::test]
async fn a_stream_that_begins_anew_is_not_halted_by_what_its_predecessor_left() {
    let world = World::new().await;
    world.publish("k1", 1..=2).await;
    let held = world.acquire(&world.a, "k1", "a").await;
    world.a.fail(&held.lease, &held.entries[0].at, 1, "no", 3_600_000).await.unwrap();
    let record = keyrail_ordering::HaltRecord {
        head: held.entries[0].at.clone(),
        cause: keyrail_ordering::HaltCause::Poison,
        attempts: 1,
        error: "no".into(),
        handler_version: "1".into(),
    };
    world.a.halt(&held.lease, &record).await.unwrap();
    world.cli("DEL order:k1").await;
    world.publish("k1", 3..=3).await;
    assert_eq!(world.a.backlog(&[source()]).await.unwrap().halted, 0);
    let anew = world.acquire(&world.a, "k1", "a").await;
    assert_eq!((ids(&anew.entries), anew.attempts), (vec!["k1-3".to_string()], None));
}

#[tokio::test]
async fn a_bad_type_version_or_data_is_refused_and_huge_times_are_not() {
    let world = World::new().await;
    for (version, data, says) in [("one", "{}", "version"), ("1", "[]", "the data is not a JSON object")] {
        let mut call = redis::cmd("FCALL");
        call.arg("keyrail_publish").arg(1).arg("order:k1");
        for argument in ["order", "k1", "client", "", "0", "e1", "Placed", version, "", data] {
            call.arg(argument);
        }
        let (status, why): (i64, String) = call.query_async(&mut world.raw.clone()).await.unwrap();
        assert!(status == 3 && why.contains(says), "{status} {why}");
    }
    let mut publication = event("order", "k1", "e1");
    publication.dedupe_window_ms = u64::MAX;
    let first = world.a.publish(vec![publication.clone()]).await.unwrap().remove(0).unwrap();
    let second = world.a.publish(vec![publication]).await.unwrap().remove(0).unwrap();
    assert_eq!((first.duplicate, second.duplicate, second.id), (false, true, first.id));
    let held = world.a.acquire(partition("k1"), &owner("a"), u64::MAX, usize::MAX).await.unwrap();
    assert_eq!(world.a.heartbeat().renew(std::slice::from_ref(&held.lease), u64::MAX).await.unwrap(), [true]);
    world.a.fail(&held.lease, &held.entries[0].at, 1, &"é".repeat(5_000), u64::MAX).await.unwrap();
    let record = world.a.take(&held.lease, usize::MAX, true).await.unwrap().attempts.unwrap();
    assert_eq!(record.last_error.len(), 4_096);
}

#[tokio::test]
async fn c022_a_server_that_is_busy_for_a_while_is_away_and_comes_back() {
    let world = World::with(&["--busy-reply-threshold", "10"]).await;
    world.publish("k1", 1..=2).await;
    let held = world.acquire(&world.a, "k1", "a").await;
    let client = redis::Client::open(world.server.url()).unwrap();
    let mut other = client.get_multiplexed_async_connection().await.unwrap();
    let endless = tokio::spawn(async move {
        let _: Result<(), _> = redis::cmd("EVAL").arg("while true do end").arg(0).query_async(&mut other).await;
    });
    let busy = eventually("the server is busy", async || world.a.take(&held.lease, 10, true).await.err()).await;
    let is_away =
        |error: &FencedError| matches!(error, FencedError::Broker(Error::Unavailable(why)) if why.contains("BUSY"));
    assert!(is_away(&busy), "{busy:?}");
    let acquired = world.b.acquire(partition("k2"), &owner("b"), TTL_MS, 10).await;
    assert!(matches!(&acquired, Err(AcquireError::Broker(Error::Unavailable(_)))), "{acquired:?}");
    assert!(matches!(world.a.publish(vec![event("order", "k1", "x")]).await, Err(Error::Unavailable(_))));
    assert!(matches!(world.a.members().await, Err(Error::Unavailable(_))));
    world.cli("SCRIPT KILL").await;
    endless.await.unwrap();
    let taken = eventually("the server answers", async || world.a.take(&held.lease, 10, true).await.ok()).await;
    assert_eq!(ids(&taken.entries), ["k1-1", "k1-2"]);
}
