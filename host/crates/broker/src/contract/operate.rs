//! What operators do: each action names what it expects, takes the partition away, and is on record.

use keyrail_ordering::{EntryRef, HaltRecord, OwnerId};

use super::Subject;
use super::story::{
    CommitWords, LONG_TTL_MS, READ_MAX, Story, assert_order, bell, billing, category, commit, event_of, halt_record,
    key, listen, next_bell, partition, primary, source,
};
use crate::{AcquireError, By, DeadLetter, HeadAction, OperateError, REDRIVEN_FOR};

pub(super) fn by(who: &str) -> By {
    By { who: who.into(), reason: "it was asked for".into() }
}

impl Story {
    pub(super) async fn act(&self, action: HeadAction, head: &EntryRef) -> Result<(), OperateError> {
        let key = head.stream.key.as_ref().unwrap().to_string();
        self.broker.act_on_head(&billing(&key), head, action, &by("ann")).await
    }

    /// Publishes, fails the head twice and halts on it.
    pub(super) async fn halted_on_first<const N: usize>(&self, key: &str, ids: [&str; N]) -> HaltRecord {
        self.publish(key, ids).await;
        let held = self.acquire("A", key).await;
        let head = &held.entries[0].at;
        self.broker.fail(&held.lease, head, 1, "no", 0).await.unwrap();
        let record = HaltRecord { attempts: 2, ..halt_record(head) };
        self.broker.halt(&held.lease, &record).await.unwrap();
        record
    }

    async fn letters(&self, key: Option<&str>) -> Vec<DeadLetter> {
        let key = key.map(super::story::key);
        let (mut all, mut cursor) = (vec![], Some(0));
        while let Some(at) = cursor {
            let (page, next) = self.broker.dead_letters(&category("order"), key.as_ref(), at, 2).await.unwrap();
            assert!(page.len() <= 2);
            all.extend(page);
            cursor = next;
        }
        all
    }
}

fn events(letters: &[DeadLetter]) -> Vec<&str> {
    letters.iter().map(|letter| letter.event_id.as_str()).collect()
}

pub async fn the_head_is_told_with_everything_that_is_known(subject: Subject) {
    let story = Story::begin(subject).await;
    let broker = &story.broker;
    assert!(broker.head(&billing("a")).await.unwrap().is_none(), "nothing was published");
    story.publish("a", ["e1", "e2", "e3"]).await;
    let new = broker.head(&billing("a")).await.unwrap().unwrap();
    assert_eq!((super::story::id_of(&new.entry).as_str(), new.waiting, new.paused), ("e1", 3, false));
    assert!(new.attempts.is_none() && new.halted.is_none() && new.owner.is_none());

    let held = story.acquire("A", "a").await;
    story.commit(&held.lease, &held.entries[0]).await;
    broker.fail(&held.lease, &held.entries[1].at, 1, "too sour", LONG_TTL_MS).await.unwrap();
    let failed = broker.head(&billing("a")).await.unwrap().unwrap();
    assert_eq!((failed.entry.at.clone(), failed.waiting), (held.entries[1].at.clone(), 2));
    assert_eq!(failed.owner, Some(OwnerId::new("A")));
    let attempts = failed.attempts.unwrap();
    assert_eq!((attempts.attempts, attempts.last_error.as_str()), (1, "too sour"));

    let record = halt_record(&held.entries[1].at);
    broker.halt(&held.lease, &record).await.unwrap();
    let halted = broker.head(&billing("a")).await.unwrap().unwrap();
    assert_eq!((halted.halted.as_ref(), halted.owner), (Some(&record), None));
    assert!(halted.attempts.is_none(), "the halt record has them");
    assert_eq!(halted.entry.at, record.head);
}

pub async fn c041_a_halt_outlives_its_owner_and_a_retry_gives_a_full_budget(subject: Subject) {
    let story = Story::begin(subject).await;
    let record = story.halted_on_first("a", ["e1", "e2"]).await;
    match story.try_acquire("B", "a").await {
        Err(AcquireError::Halted(found)) => assert_eq!(*found, record),
        other => panic!("{other:?}"),
    }
    let mut bells = listen(&*story.broker, vec![source("billing")]).await;
    story.act(HeadAction::Retry, &record.head).await.unwrap();
    assert_eq!(next_bell(&mut bells).await, bell("billing", "a"));
    assert_eq!(story.offered(&source("billing"), 10).await, ["a"]);
    let next = story.acquire("B", "a").await;
    assert_order(&next.entries, &["e1", "e2"]);
    assert_eq!(next.attempts, None, "old tries must not count");
    assert_eq!(story.backlog().await.halted, 0);
}

pub async fn a_retry_of_a_head_that_waits_makes_it_due_at_once(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1"]).await;
    let held = story.acquire("A", "a").await;
    let head = held.entries[0].at.clone();
    story.broker.fail(&held.lease, &head, 1, "no", LONG_TTL_MS).await.unwrap();
    story.act(HeadAction::Retry, &head).await.unwrap();
    story.assert_fenced(&held.lease, &held.entries[0]).await;
    assert_eq!(story.offered(&source("billing"), 10).await, ["a"]);
    let next = story.acquire("B", "a").await;
    assert_eq!(next.attempts, None, "neither the try nor a crash of the owner that was sent away");
}

pub async fn a_skip_settles_the_head_and_fences_its_owner(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2"]).await;
    let held = story.acquire("A", "a").await;
    story.act(HeadAction::Skip, &held.entries[0].at).await.unwrap();
    story.assert_fenced(&held.lease, &held.entries[0]).await;
    let next = story.acquire("B", "a").await;
    assert_order(&next.entries, &["e2"]);
    assert_eq!(next.attempts, None);
    story.act(HeadAction::Skip, &next.entries[0].at).await.unwrap();
    assert!(story.broker.head(&billing("a")).await.unwrap().is_none());
    assert_eq!(story.backlog().await.ready, 0, "nothing is left");
}

pub async fn a_head_that_nobody_was_given_yet_is_skipped(subject: Subject) {
    let story = Story::begin(subject).await;
    story.register("mail", "order", Some("client")).await;
    let [first, second] = story.publish("a", ["e1", "e2"]).await;
    story.act(HeadAction::Skip, &EntryRef { stream: primary("a"), id: first }).await.unwrap();
    story.act(HeadAction::SetAside, &EntryRef { stream: primary("a"), id: second }).await.unwrap();
    assert!(story.acquire("A", "a").await.entries.is_empty());
    assert_eq!(events(&story.letters(Some("a")).await), ["e2"]);
    let other = story.acquire_for("M", partition("mail", "order", "a")).await;
    assert_order(&other.entries, &["e1", "e2"]);
}

pub async fn only_the_head_is_acted_on(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2"]).await;
    let held = story.acquire("A", "a").await;
    let [first, second] = [&held.entries[0].at, &held.entries[1].at];
    for action in [HeadAction::Retry, HeadAction::Skip, HeadAction::SetAside] {
        match story.act(action, second).await {
            Err(OperateError::NotHead { named, head }) => assert_eq!((&named, head.as_ref()), (second, Some(first))),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(story.renew(std::slice::from_ref(&held.lease)).await, [true], "nothing was changed");
    assert_eq!(story.letters(None).await, []);
    story.commit(&held.lease, &held.entries[0]).await;
    story.commit(&held.lease, &held.entries[1]).await;
    let none = story.act(HeadAction::Skip, second).await;
    assert!(matches!(none, Err(OperateError::NotHead { head: None, .. })), "{none:?}");
}

pub async fn a_head_that_is_set_aside_is_kept_with_what_is_known(subject: Subject) {
    let story = Story::begin(subject).await;
    let record = story.halted_on_first("a", ["e1", "e2"]).await;
    story.act(HeadAction::SetAside, &record.head).await.unwrap();
    let letters = story.letters(Some("a")).await;
    let [letter] = letters.as_slice() else { panic!("{letters:?}") };
    assert_eq!((&letter.origin, letter.event_id.as_str()), (&record.head, "e1"));
    assert_eq!((letter.name.as_str(), letter.version), ("OrderPlaced", 1));
    assert_eq!(letter.data, super::story::event("order", "a", "e1").data);
    assert_eq!((letter.category.as_str(), letter.key.clone()), ("order", Some(key("a"))));
    assert_eq!((letter.group.as_str(), letter.attempts), ("billing", 2));
    assert_eq!((letter.error.as_str(), &letter.by), (record.error.as_str(), &by("ann")));
    assert!(letter.at_ms > 0);
    assert_order(&story.acquire("B", "a").await.entries, &["e2"]);
}

pub async fn an_unreadable_head_is_set_aside_too(subject: Subject) {
    let mut story = Story::begin(subject).await;
    let Some(spoil) = story.spoil.take() else { return };
    let [first, _] = story.publish("a", ["e1", "e2"]).await;
    let head = EntryRef { stream: primary("a"), id: first };
    spoil(head.clone()).await;
    story.act(HeadAction::SetAside, &head).await.unwrap();
    let letters = story.letters(None).await;
    assert_eq!((letters.len(), letters[0].event_id.as_str()), (1, ""));
    let (order, a) = (category("order"), key("a"));
    let refused = story.broker.redrive(&order, Some(&a), letters[0].id, &by("ann")).await;
    assert!(matches!(refused, Err(OperateError::Broker(crate::Error::Refused(_)))), "{refused:?}");
    story.broker.purge(&order, Some(&a), letters[0].id, &by("ann")).await.unwrap();
    assert_eq!(story.letters(None).await, []);
    assert_order(&story.acquire("A", "a").await.entries, &["e2"]);
}

pub async fn a_redriven_event_comes_last_and_for_its_group_alone(subject: Subject) {
    let story = Story::begin(subject).await;
    let record = story.halted_on_first("a", ["e1", "e2"]).await;
    story.act(HeadAction::SetAside, &record.head).await.unwrap();
    let letter = story.letters(None).await.remove(0);
    let (order, a) = (category("order"), key("a"));
    let id = story.broker.redrive(&order, Some(&a), letter.id, &by("ann")).await.unwrap();
    assert_eq!(story.letters(None).await, []);
    let next = story.acquire("B", "a").await;
    assert_order(&next.entries, &["e2", "e1"]);
    assert_eq!(next.entries[1].at.id, id);
    assert_eq!(event_of(&next.entries[1]).headers, [(REDRIVEN_FOR.to_string(), "billing".to_string())]);
    let again = story.broker.redrive(&order, Some(&a), letter.id, &by("ann")).await;
    assert!(matches!(again, Err(OperateError::NoDeadLetter { .. })), "{again:?}");
}

pub async fn a_purged_letter_is_gone_and_its_id_never_comes_again(subject: Subject) {
    let story = Story::begin(subject).await;
    let (order, a) = (category("order"), key("a"));
    let mut seen = vec![];
    for id in ["e1", "e2", "e3"] {
        let [head] = story.publish("a", [id]).await;
        story.act(HeadAction::SetAside, &EntryRef { stream: primary("a"), id: head }).await.unwrap();
        let letter = story.letters(Some("a")).await.remove(0);
        assert_eq!(letter.event_id, id);
        assert_eq!(story.broker.letters_kept(std::slice::from_ref(&order)).await.unwrap(), 1);
        assert!(!seen.contains(&letter.id), "{} twice", letter.id);
        let one = story.broker.dead_letter(&order, Some(&a), letter.id).await.unwrap();
        assert_eq!(one.as_ref(), Some(&letter));
        assert_eq!(story.broker.dead_letter(&order, Some(&key("b")), letter.id).await.unwrap(), None, "another key's");
        story.broker.purge(&order, Some(&a), letter.id, &by("ann")).await.unwrap();
        assert_eq!(story.broker.dead_letter(&order, Some(&a), letter.id).await.unwrap(), None);
        let again = story.broker.purge(&order, Some(&a), letter.id, &by("ann")).await;
        assert!(matches!(again, Err(OperateError::NoDeadLetter { .. })), "{again:?}");
        seen.push(letter.id);
    }
    assert_eq!(story.letters(None).await, []);
    assert_eq!(story.broker.letters_kept(&[order]).await.unwrap(), 0);
    assert_eq!(story.broker.letters_kept(&[]).await.unwrap(), 0);
}

pub async fn dead_letters_are_paged_oldest_first_within_a_key(subject: Subject) {
    let story = Story::begin(subject).await;
    for (key, ids) in [("a", ["a1", "a2", "a3"]), ("b", ["b1", "b2", "b3"]), ("c", ["c1", "c2", "c3"])] {
        for id in story.publish(key, ids).await {
            story.act(HeadAction::SetAside, &EntryRef { stream: primary(key), id }).await.unwrap();
        }
    }
    let letters = story.letters(None).await;
    assert_eq!(story.broker.letters_kept(&[category("order"), category("parcel")]).await.unwrap(), 9);
    let mut all = events(&letters);
    for key in ["a", "b", "c"] {
        let of_key: Vec<_> = all.iter().filter(|id| id.starts_with(key)).copied().collect();
        assert_eq!(of_key, [format!("{key}1"), format!("{key}2"), format!("{key}3")]);
    }
    all.sort_unstable();
    assert_eq!(all, ["a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3"]);
    assert_eq!(events(&story.letters(Some("b")).await), ["b1", "b2", "b3"]);
}

pub async fn what_stands_still_is_listed(subject: Subject) {
    let story = Story::begin(subject).await;
    let mut records = vec![];
    for key in ["a", "b", "c"] {
        let record = story.halted_on_first(key, [&format!("{key}1")]).await;
        records.push((billing(key).id.clone(), record));
    }
    let (mut found, mut cursor) = (vec![], Some(0));
    while let Some(at) = cursor {
        let (page, next) = story.broker.halted(&source("billing"), at, 2).await.unwrap();
        found.extend(page);
        cursor = next;
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(found, records);
    assert_eq!(story.broker.halted(&source("mail"), 0, 2).await.unwrap().0, []);
}

pub async fn every_action_is_on_record_newest_first(subject: Subject) {
    let story = Story::begin(subject).await;
    let (order, a) = (category("order"), key("a"));
    let record = story.halted_on_first("a", ["e1", "e2", "e3"]).await;
    story.act(HeadAction::Retry, &record.head).await.unwrap();
    story.act(HeadAction::SetAside, &record.head).await.unwrap();
    let head = story.broker.head(&billing("a")).await.unwrap().unwrap().entry.at.clone();
    story.act(HeadAction::SetAside, &head).await.unwrap();
    let letters = story.letters(None).await;
    story.broker.redrive(&order, Some(&a), letters[0].id, &by("bob")).await.unwrap();
    story.broker.purge(&order, Some(&a), letters[1].id, &by("bob")).await.unwrap();
    story.broker.pause(&order, None, &by("ann")).await.unwrap();
    story.broker.pause(&order, None, &by("ann")).await.unwrap();
    story.broker.resume(&order, None, &by("ann")).await.unwrap();
    let refused = story.act(HeadAction::Skip, &record.head).await;
    assert!(refused.is_err());
    let head = story.broker.head(&billing("a")).await.unwrap().unwrap().entry.at.clone();
    story.act(HeadAction::Skip, &head).await.unwrap();
    let (mut rows, mut cursor) = (vec![], Some(0));
    while let Some(at) = cursor {
        let (page, next) = story.broker.audit(at, 2).await.unwrap();
        rows.extend(page);
        cursor = next;
    }
    let actions: Vec<_> = rows.iter().map(|row| row.action.as_str()).collect();
    assert_eq!(actions, ["skip", "resume", "pause", "purge", "redrive", "set-aside", "set-aside", "retry"]);
    assert_eq!((&rows[3].by, &rows[7].by), (&by("bob"), &by("ann")));
    assert!(rows.iter().all(|row| row.at_ms > 0 && row.target.contains("order")), "{rows:?}");
    assert!(rows[0].entry.contains(&head.id.to_string()) && rows[1].entry.is_empty(), "{rows:?}");
}

pub async fn an_action_beside_a_running_owner_is_one_or_the_other(subject: Subject) {
    let story = Story::begin(subject).await;
    story.publish("a", ["e1", "e2"]).await;
    let held = story.acquire("A", "a").await;
    let (lease, first) = (&held.lease, &held.entries[0]);
    let committed = story.broker.commit(lease, commit(first).put("n", "1").and_take(READ_MAX));
    let skipped = story.act(HeadAction::Skip, &first.at);
    let (committed, skipped) = futures::join!(committed, skipped);
    assert_ne!(committed.is_ok(), skipped.is_ok(), "{committed:?} {skipped:?}");
    let head = story.broker.head(&billing("a")).await.unwrap().unwrap();
    assert_eq!(head.entry.at, held.entries[1].at, "e1 was settled once");
}
