//! What a handler logs during a trial, kept in place of the process's log.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Dispatch, Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// The target of what guests log.
const TARGET: &str = "keyrail::guest";

/// One line that a handler logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// `INFO` and so on.
    pub level: String,
    /// What the handler named as its context; `stdout` or `stderr` for what it printed.
    pub context: String,
    /// The line.
    pub message: String,
}

type Lines = Arc<Mutex<Vec<LogLine>>>;

/// Collects the lines of one call at a time.
pub(super) struct Capture {
    lines: Lines,
    subscriber: Dispatch,
}

impl Capture {
    pub(super) fn new() -> Self {
        let lines = Lines::default();
        let subscriber = Dispatch::new(tracing_subscriber::registry().with(Guests(lines.clone())));
        Self { lines, subscriber }
    }

    /// To be in force while the call is polled: a guest logs on the thread that polls it.
    pub(super) fn subscriber(&self) -> Dispatch {
        self.subscriber.clone()
    }

    /// What was logged since the last time.
    pub(super) fn take(&self) -> Vec<LogLine> {
        std::mem::take(&mut *lock(&self.lines))
    }
}

fn lock(lines: &Lines) -> MutexGuard<'_, Vec<LogLine>> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Guests(Lines);

impl<S: Subscriber> Layer<S> for Guests {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != TARGET {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut of = |name: &str| fields.0.remove(name).unwrap_or_default();
        let line =
            LogLine { level: event.metadata().level().to_string(), context: of("context"), message: of("message") };
        lock(&self.0).push(line);
    }
}

#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().into(), format!("{value:?}"));
    }
}
