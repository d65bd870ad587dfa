//! What operators do, directly and through a host's socket, on the fake broker.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use bytes::Bytes;
use keyrail_broker::{DeadLetter, Head, HeadAction};
use keyrail_ordering::{
    AttemptsRecord, Capabilities, Catalog, CategoryName, Content, Correlation, Entry, EntryId, EntryRef, Event,
    GroupName, HaltCause, HaltRecord, Key, KeyRules, Lane, Member, OwnerId, PartitionId, PartitionSpec, Role,
    SequentialBy, StreamId,
};

use super::super::fake::FakeBroker;
use super::super::line::tests::metadata;
use super::super::{NextTry, Service};
use super::{ContentView, WhoAndWhy};
use crate::access::{Access, AccessError};
use crate::api::{Client, Health, Server};
use crate::config::{ApiConfig, ClientConfig, Config, HttpConfig, PublishConfig};

/// Two groups read `order`; the process manager `shipping` reads `order` and `payment`; `mail` has no keys.
fn catalog() -> Catalog {
    let capabilities = Capabilities { stream_partitioning: true };
    let mut audit = metadata("client");
    audit.name = "ledger".parse().unwrap();
    let mut shipping = metadata("client");
    shipping.name = "shipping".parse().unwrap();
    shipping.role = Role::ProcessManager;
    let mut payment = shipping.handles[0].clone();
    payment.category = "payment".parse().unwrap();
    shipping.handles.push(payment);
    let correlation = |category: &str| Correlation {
        category: category.parse().unwrap(),
        message: "OrderPlaced".parse().unwrap(),
        field: "client".into(),
    };
    shipping.sequential_by = SequentialBy::Correlation(vec![correlation("order"), correlation("payment")]);
    let mut mail = metadata("client");
    mail.name = "mailer".parse().unwrap();
    mail.handles[0].category = "mail".parse().unwrap();
    mail.sequential_by = SequentialBy::Unordered;
    let handlers = [metadata("client"), audit, shipping, mail];
    handlers.iter().fold(Catalog::default(), |catalog, handler| catalog.register(handler, "00", capabilities).unwrap())
}

/// A broker and both ways to it; tests run once on each, on a fresh broker.
struct Stage {
    broker: Arc<FakeBroker>,
    access: Access,
    _server: Server,
    _folder: tempfile::TempDir,
}

async fn stages() -> Vec<Stage> {
    let mut stages = vec![];
    for way in ["direct", "socket", "tcp"] {
        let broker = FakeBroker::new(catalog());
        let service = Service::new(broker.clone(), PublishConfig::default());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.sock");
        let (api, publish) = (ApiConfig::default(), PublishConfig::default());
        let http = HttpConfig { listen: "127.0.0.1:0".into(), ..HttpConfig::default() };
        let host = Config { http, ..Config::default() };
        let server = Server::start(service.clone(), Some(&path), &host, Health::default()).await.unwrap();
        let access = match way {
            "direct" => Access::Direct(service),
            "socket" => Access::Host(Client::new(&path, &api, &publish).unwrap()),
            _ => {
                let url = server.url().unwrap();
                Access::Host(Client::at_url(&url, &ClientConfig::default(), &api, &publish).unwrap())
            }
        };
        stages.push(Stage { broker, access, _server: server, _folder: folder });
    }
    stages
}

fn key(text: &str) -> Key {
    Key::parse(text, &KeyRules::default()).unwrap()
}

fn category(name: &str) -> CategoryName {
    name.parse().unwrap()
}

fn of_key(group: &str, key_text: &str) -> PartitionId {
    PartitionId::of_key(group.parse().unwrap(), category("order"), key(key_text))
}

fn of_correlation(value: &str) -> PartitionId {
    let group: GroupName = "shipping".parse().unwrap();
    PartitionSpec::of_correlation(group, &[category("order"), category("payment")], key(value)).id
}

fn at(category_name: &str, key_text: &str, lane: Lane, sequence: u64) -> EntryRef {
    let stream = StreamId { category: category(category_name), key: Some(key(key_text)), lane };
    EntryRef { stream, id: EntryId::new(3, sequence) }
}

fn head(at: EntryRef) -> Head {
    let event = Event {
        id: "e1".into(),
        category: at.stream.category.clone(),
        name: "OrderPlaced".parse().unwrap(),
        version: 2,
        key: at.stream.key.clone(),
        headers: vec![("trace".into(), "a\"b".into())],
        data: Bytes::from_static(b"{\"client\":\"k1\",\"n\":12345678901234567890}"),
    };
    let entry = Arc::new(Entry { at, recorded_at_ms: 1_700_000_000_007, content: Content::Event(event) });
    Head { entry, attempts: None, halted: None, owner: None, waiting: 2, paused: false }
}

fn halted(at: EntryRef) -> Head {
    let record = HaltRecord {
        head: at.clone(),
        cause: HaltCause::Poison,
        attempts: 5,
        error: "it broke\n  at line 7".into(),
        handler_version: "1.0".into(),
    };
    Head { halted: Some(record), ..head(at) }
}

fn by() -> WhoAndWhy {
    WhoAndWhy { who: "ann@desk".into(), reason: "a test".into() }
}

/// What kind of failure, and its text.
fn failure<T: std::fmt::Debug>(result: Result<T, AccessError>) -> (&'static str, String) {
    let error = result.unwrap_err();
    let kind = match &error {
        AccessError::Usage(_) => "usage",
        AccessError::Failed(_) => "failed",
        AccessError::Unavailable(_) => "unavailable",
        AccessError::Refused(_) | AccessError::NotAccepted(_) => "refused",
    };
    (kind, error.to_string())
}

#[tokio::test]
async fn a_head_is_shown_with_all_that_is_known() {
    for Stage { broker, access, .. } in &stages().await {
        assert!(access.heads("order", "k1", None).await.unwrap().is_empty());
        broker.lay_heads(&of_key("billing", "k1"), [halted(at("order", "k1", Lane::Backfill, 41))]);
        let record = AttemptsRecord {
            head: at("payment", "k1", Lane::Primary, 5),
            attempts: 2,
            crashes: 1,
            wait_ms: 900,
            last_error: "later".into(),
        };
        let waits = Head { attempts: Some(record), ..head(at("payment", "k1", Lane::Primary, 5)) };
        broker.lay_heads(&of_correlation("k1"), [waits]);

        let heads = access.heads("order", "k1", None).await.unwrap();
        let [billing, shipping] = &heads[..] else { panic!("{heads:?}") };
        assert_eq!((billing.group.as_str(), billing.entry.as_str(), billing.waiting), ("billing", "backfill/3-41", 2));
        assert_eq!(billing.recorded_at.as_deref(), Some("2023-11-14T22:13:20.007Z"));
        assert_eq!((billing.attempts, billing.next_try), (5, NextTry::Never));
        assert_eq!(billing.last_error.as_deref(), Some("it broke\n  at line 7"));
        let stands = billing.halted.as_ref().unwrap();
        assert_eq!((stands.cause.as_str(), stands.handler_version.as_str()), ("poison", "1.0"));
        let ContentView::Event(event) = &billing.content else { panic!("{billing:?}") };
        assert_eq!((event.id.as_str(), event.name.as_str(), event.version), ("e1", "OrderPlaced", 2));
        assert_eq!(event.data.get(), "{\"client\":\"k1\",\"n\":12345678901234567890}");
        assert_eq!((event.headers.0[0].0.as_str(), event.headers.0[0].1.get()), ("trace", "\"a\\\"b\""));

        assert_eq!((shipping.entry.as_str(), shipping.category.as_str()), ("payment/3-5", "payment"));
        assert_eq!((shipping.attempts, shipping.crashes, shipping.next_try), (2, 1, NextTry::InMs(900)));
        // By any category that the manager reads, and its correlation value.
        let by_payment = access.heads("payment", "k1", Some("shipping")).await.unwrap();
        assert_eq!(by_payment[0].entry, "payment/3-5");
    }
}

#[tokio::test]
async fn names_that_cannot_be_meant_are_told_with_those_that_can() {
    for Stage { access, .. } in &stages().await {
        let heads =
            async |category: &str, key: &str, group: Option<&str>| failure(access.heads(category, key, group).await);
        let told = [
            (heads("nope", "k1", None).await, "failed", "unknown category \"nope\"; there are: mail, order, payment"),
            (heads("order", "k1", Some("nope")).await, "failed", "no handler named \"nope\""),
            (
                heads("payment", "k1", Some("billing")).await,
                "usage",
                "billing does not read payment; these do: shipping",
            ),
            (heads("mail", "k1", None).await, "usage", "mail is not partitioned"),
            (heads("order", "a:b", None).await, "usage", "contains ':'"),
            (failure(access.pause("mail", Some("k"), &by()).await), "usage", "leave KEY out"),
            (failure(access.dead_letter("order", None, "1-0").await), "usage", "give the key before the id"),
            (failure(access.dead_letter("order", Some("k1"), "x").await), "usage", "EPOCH-SEQUENCE"),
            (failure(access.dead_letter("order", Some("k1"), "1-0").await), "failed", "no dead letter 1-0 in order/k1"),
            (failure(access.dead_letters(None, Some("k1"), None).await), "usage", "a key needs its category"),
        ];
        for ((kind, text), expected, says) in told {
            assert!(kind == expected && text.contains(says), "{kind} {text}, not {expected} {says}");
        }
        // What a URL would swallow.
        assert!(access.heads("order", "..", None).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn an_action_names_the_head_and_changes_nothing_if_that_has_moved() {
    for Stage { broker, access, .. } in &stages().await {
        let first = at("order", "k1", Lane::Primary, 41);
        let second = at("order", "k1", Lane::Primary, 42);
        broker.lay_heads(&of_key("billing", "k1"), [halted(first), head(second)]);
        let place = ("order", "k1", "billing");
        let act = async |action, expect: &str| access.act_on_head(place, action, expect, &by()).await;

        let (kind, text) = failure(act(HeadAction::Skip, "3-42").await);
        assert_eq!(kind, "failed");
        assert!(text.starts_with("3-42 is not the head of order/k1 (billing) any more: 3-41 is"), "{text}");
        let (kind, text) = failure(act(HeadAction::Skip, "payment/3-41").await);
        assert!(kind == "usage" && text.contains("backfill/EPOCH-SEQUENCE"), "{text}");
        assert_eq!(broker.done(), Vec::<String>::new());

        act(HeadAction::Retry, "3-41").await.unwrap();
        assert!(access.heads("order", "k1", None).await.unwrap()[0].halted.is_none());
        act(HeadAction::SetAside, "3-41").await.unwrap();
        act(HeadAction::Skip, "3-42").await.unwrap();
        let (_, text) = failure(act(HeadAction::Skip, "3-42").await);
        assert!(text.contains("everything there is settled"), "{text}");
        let done = broker.done();
        assert_eq!(done[0], "retry order/k1 (billing) order/k1 3-41 by ann@desk: a test");
        assert_eq!(done.len(), 3);
        let letters = access.dead_letters(Some("order"), Some("k1"), None).await.unwrap().rows;
        assert_eq!((letters[0].origin.as_str(), letters[0].who.as_str()), ("3-41", "ann@desk"));
    }
}

#[tokio::test]
async fn an_action_on_a_process_manager_names_the_stream() {
    for Stage { broker, access, .. } in &stages().await {
        broker.lay_heads(&of_correlation("k1"), [halted(at("payment", "k1", Lane::Backfill, 7))]);
        // The same id in the manager's other stream is another event.
        let place = ("order", "k1", "shipping");
        let (_, text) = failure(access.act_on_head(place, HeadAction::Skip, "order/3-7", &by()).await);
        assert!(text.contains("payment/backfill/3-7 is"), "{text}");
        access.act_on_head(place, HeadAction::Skip, "payment/backfill/3-7", &by()).await.unwrap();
        assert_eq!(broker.done().len(), 1);
    }
}

#[tokio::test]
async fn nothing_is_done_without_who_and_why() {
    for Stage { broker, access, .. } in &stages().await {
        let long = "x".repeat(1_001);
        for (who, reason, says) in [
            ("ann", " ", "the reason is empty"),
            ("", "why", "the name of who is empty"),
            ("ann", long.as_str(), "has 1001 bytes; at most 1000"),
            ("ann", "a\nb", "control characters"),
        ] {
            let by = WhoAndWhy { who: who.into(), reason: reason.into() };
            let (kind, text) = failure(access.pause("order", None, &by).await);
            assert!(kind == "usage" && text.contains(says), "{text}");
        }
        assert_eq!(broker.done(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn what_stands_still_is_listed_over_all_pages() {
    for Stage { broker, access, .. } in &stages().await {
        for key in ["k1", "k2", "k3", "k4", "k5"] {
            broker.lay_heads(&of_key("billing", key), [halted(at("order", key, Lane::Primary, 1))]);
        }
        broker.lay_heads(&of_key("ledger", "k1"), [head(at("order", "k1", Lane::Primary, 1))]);
        broker.lay_heads(&of_correlation("k9"), [halted(at("payment", "k9", Lane::Primary, 2))]);
        let count = async |category: Option<&str>, group: Option<&str>| {
            let (mut heads, mut cursor) = (vec![], None);
            loop {
                let page = access.halted(category, group, cursor.as_deref()).await.unwrap();
                heads.extend(page.rows.into_iter().map(|row| format!("{} {}", row.key, row.halted.head)));
                cursor = page.next;
                if cursor.is_none() {
                    return heads;
                }
            }
        };
        assert_eq!(count(None, None).await.len(), 6);
        assert_eq!(count(Some("payment"), None).await, ["k9 payment/3-2"]);
        assert_eq!(count(Some("order"), Some("billing")).await.len(), 5);
        assert_eq!(count(None, Some("ledger")).await.len(), 0);
        assert_eq!(failure(access.halted(Some("nope"), None, None).await).0, "failed");
    }
}

#[tokio::test]
async fn pauses_dead_letters_members_and_the_record() {
    for Stage { broker, access, .. } in &stages().await {
        assert!(access.pause("order", Some("k 1"), &by()).await.unwrap());
        assert!(!access.pause("order", Some("k 1"), &by()).await.unwrap());
        assert!(access.pause("mail", None, &by()).await.unwrap());
        let paused = access.paused().await.unwrap();
        let place = |index: usize| (paused[index].category.to_string(), paused[index].key.as_ref().map(Key::to_string));
        assert_eq!((place(0), place(1)), (("mail".into(), None), ("order".into(), Some("k 1".into()))));
        assert_eq!((paused[0].at.as_str(), paused[0].who.as_str()), ("2023-11-14T22:13:20.000Z", "ann@desk"));
        assert!(!access.resume("order", None, &by()).await.unwrap(), "that was the key, not the category");
        assert!(access.resume("order", Some("k 1"), &by()).await.unwrap());

        for (sequence, key_text) in [(0, "k1"), (0, "k2"), (1, "k2")] {
            broker.lay_letter(DeadLetter {
                id: EntryId::new(1, sequence),
                category: category("order"),
                key: Some(key(key_text)),
                group: "shipping".parse().unwrap(),
                origin: at("order", key_text, Lane::Backfill, 4),
                event_id: String::new(),
                name: String::new(),
                version: 0,
                headers: vec![],
                data: Bytes::from_static(b"\xff"),
                attempts: 1,
                error: "no event".into(),
                by: keyrail_broker::By { who: "host".into(), reason: "poison".into() },
                at_ms: 1,
            });
        }
        let letter = access.dead_letter("order", Some("k2"), "1-1").await.unwrap();
        assert_eq!((letter.origin.as_str(), letter.event.data.get()), ("order/backfill/3-4", "{\"base64\":\"/w==\"}"));
        let again = access.redrive(("order", Some("k2"), "1-1"), &by()).await.unwrap();
        assert_eq!(again, "order/backfill/9-9");
        assert_eq!(failure(access.redrive(("order", Some("k2"), "1-1"), &by()).await).0, "failed");
        access.purge(("order", Some("k1"), "1-0"), &by()).await.unwrap();
        assert_eq!(access.dead_letters(None, None, None).await.unwrap().rows.len(), 0, "mail has none");
        let next = access.dead_letters(None, None, None).await.unwrap().next;
        let left = access.dead_letters(None, None, next.as_deref()).await.unwrap().rows;
        assert_eq!(left.iter().map(|letter| letter.key.clone().unwrap().to_string()).collect::<Vec<_>>(), ["k2"]);

        let page = access.audit(None, 2).await.unwrap();
        let actions = |rows: &[super::AuditView]| rows.iter().map(|row| row.action.clone()).collect::<Vec<_>>();
        assert_eq!(actions(&page.rows), ["purge", "redrive"]);
        assert_eq!(actions(&access.audit(page.next.as_deref(), 2).await.unwrap().rows), ["resume", "pause"]);

        let member = |owner: &str| Member {
            owner: OwnerId::new(owner),
            groups: vec!["billing".parse().unwrap()],
            capacity: 256,
            owned: 3,
            running: 1,
            settled: 9,
            release: "0.1.0".into(),
            leaving: false,
            held: vec![],
            hot: vec![],
        };
        broker.lay_member(member("b"));
        broker.lay_member(member("a"));
        assert_eq!(access.members().await.unwrap(), [member("a"), member("b")]);
    }
}
