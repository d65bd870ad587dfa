//! What waits for a follower: bounded in number and in bytes. What does not fit is counted, and told when there is room.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::sync::mpsc;

use super::{Tailed, TailedEntry};

/// Events that wait, whatever their size.
const QUEUE_MAX: usize = 1_024;
/// What an event costs beside its data.
const OVERHEAD_BYTES: usize = 512;

/// The end of the one who reads the broker. Never waits.
pub(super) struct Queue {
    sender: mpsc::Sender<(Tailed, usize)>,
    waiting_bytes: Arc<AtomicUsize>,
    max_bytes: usize,
    missed: u64,
}

/// The follower's end.
pub(super) struct Receiving {
    receiver: mpsc::Receiver<(Tailed, usize)>,
    waiting_bytes: Arc<AtomicUsize>,
}

pub(super) fn bounded(max_bytes: usize) -> (Queue, Receiving) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let waiting_bytes = Arc::new(AtomicUsize::new(0));
    let queue = Queue { sender, waiting_bytes: waiting_bytes.clone(), max_bytes, missed: 0 };
    (queue, Receiving { receiver, waiting_bytes })
}

impl Queue {
    pub(super) fn entry(&mut self, entry: TailedEntry) {
        let data = entry.data.as_ref().map_or(0, |data| data.get().len());
        let headers = entry.headers.as_ref().map_or(0, |all| all.0.iter().map(|(n, v)| n.len() + v.get().len()).sum());
        let bytes = OVERHEAD_BYTES + data + headers;
        if !self.tell_missed() || !self.has_room(bytes) || !self.send(Tailed::Entry(Box::new(entry)), bytes) {
            self.missed += 1;
        }
    }

    pub(super) fn missed(&mut self, count: u64) {
        self.missed += count;
        self.tell_missed();
    }

    /// Whether nothing that was missed is left to be told.
    pub(super) fn tell_missed(&mut self) -> bool {
        if self.missed > 0
            && self.has_room(OVERHEAD_BYTES)
            && self.send(Tailed::Missed { count: self.missed }, OVERHEAD_BYTES)
        {
            self.missed = 0;
        }
        self.missed == 0
    }

    /// What is larger than the queue goes through an empty one.
    fn has_room(&self, bytes: usize) -> bool {
        let waiting = self.waiting_bytes.load(Ordering::Relaxed);
        waiting == 0 || waiting + bytes <= self.max_bytes
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    fn send(&mut self, what: Tailed, bytes: usize) -> bool {
        // Counted first: the other end may take it at once.
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        let sent = self.sender.try_send((what, bytes)).is_ok();
        if !sent {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        sent
    }
}

impl Receiving {
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Tailed>> {
        self.receiver.poll_recv(context).map(|received| {
            let (what, bytes) = received?;
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            Some(what)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::value::to_raw_value;

    fn entry(n: usize, data_bytes: usize) -> TailedEntry {
        TailedEntry {
            at: None,
            category: "order".parse().unwrap(),
            key: None,
            entry: format!("1-{n}"),
            name: "Placed".into(),
            id: n.to_string(),
            version: 1,
            headers: None,
            data: Some(to_raw_value(&"x".repeat(data_bytes)).unwrap()),
            unreadable: None,
        }
    }

    async fn next(receiving: &mut Receiving) -> String {
        match std::future::poll_fn(|context| receiving.poll(context)).await.unwrap() {
            Tailed::Entry(entry) => entry.id,
            Tailed::Missed { count } => format!("{count} missed"),
        }
    }

    #[tokio::test]
    async fn what_does_not_fit_is_counted_and_told_where_it_was_left_out() {
        let (mut queue, mut receiving) = bounded(3 * (OVERHEAD_BYTES + 102));
        for n in 0..5 {
            queue.entry(entry(n, 100));
        }
        assert_eq!(next(&mut receiving).await, "0");
        queue.entry(entry(5, 0));
        let mut seen = vec![];
        for _ in 0..3 {
            seen.push(next(&mut receiving).await);
        }
        assert_eq!(seen, ["1", "2", "2 missed"]);
        // There was room for what told of it, and none for the event; now there is.
        queue.entry(entry(6, 0));
        assert_eq!(next(&mut receiving).await, "1 missed");
        assert_eq!(next(&mut receiving).await, "6");
    }

    #[tokio::test]
    async fn an_event_larger_than_the_queue_goes_through_alone() {
        let (mut queue, mut receiving) = bounded(10);
        queue.entry(entry(0, 5_000));
        queue.entry(entry(1, 1));
        assert_eq!(next(&mut receiving).await, "0");
        queue.entry(entry(2, 1));
        assert_eq!(next(&mut receiving).await, "1 missed");
    }

    #[tokio::test]
    async fn the_number_is_bounded_too() {
        let (mut queue, mut receiving) = bounded(usize::MAX);
        for n in 0..QUEUE_MAX + 7 {
            queue.entry(entry(n, 0));
        }
        for n in 0..QUEUE_MAX {
            assert_eq!(next(&mut receiving).await, n.to_string());
        }
        assert!(queue.tell_missed());
        assert_eq!(next(&mut receiving).await, "7 missed");
    }
}
