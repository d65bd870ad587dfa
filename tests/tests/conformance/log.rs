//! What guests logged, by event.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{LazyLock, Mutex};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// A line: its level, then `context: message`.
pub type Line = (String, String);

static LINES: LazyLock<Mutex<BTreeMap<String, Vec<Line>>>> = LazyLock::new(|| {
    // One subscriber for the process, since the engine's tasks run on any thread.
    tracing_subscriber::registry().with(Guests).init();
    Mutex::default()
});

/// Listens from now on; again is nothing.
pub fn listen() {
    LazyLock::force(&LINES);
}

/// The lines of one event, in order.
pub fn of_event(id: &str) -> Vec<Line> {
    LINES.lock().unwrap().get(id).cloned().unwrap_or_default()
}

struct Guests;

impl<S: Subscriber> Layer<S> for Guests {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() != "keyrail::guest" {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut of = |name: &str| fields.0.remove(name).unwrap_or_default();
        let line = (event.metadata().level().to_string(), format!("{}: {}", of("context"), of("message")));
        let id = of("event");
        LINES.lock().unwrap().entry(id).or_default().push(line);
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
