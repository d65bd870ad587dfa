//! The host of native tests: one call's view of its key's state, and what it wrote, emitted and logged.
//!
//! It refuses what a host refuses, except what only the catalog knows. Limits are the operator's and not checked.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::Outgoing;
use crate::host::Refusal;
use crate::log::Level;
use crate::testing::{Emitted, LogLine};

const STATE_NAME_MAX_BYTES: usize = 128;

thread_local! {
    /// Where lines go while a call runs.
    static LINES: RefCell<Option<Vec<LogLine>>> = const { RefCell::new(None) };
}

/// State by name.
pub(crate) type State = BTreeMap<String, Vec<u8>>;

/// One call.
pub(crate) struct Host {
    event_id: String,
    /// The key's state with this call's writes.
    pub(crate) state: State,
    pub(crate) emits: Vec<Emitted>,
    /// The first refusal of an emit: it fails the event, whatever the handler answers.
    pub(crate) refused: Option<String>,
}

impl Host {
    pub(crate) fn new(event_id: &str, state: State) -> Self {
        Self { event_id: event_id.to_owned(), state, emits: Vec::new(), refused: None }
    }

    pub(crate) fn get(&self, name: &str) -> Option<Vec<u8>> {
        self.state.get(name).cloned()
    }

    pub(crate) fn put(&mut self, name: &str, value: &[u8]) -> Result<(), Refusal> {
        check_state_name(name)?;
        self.state.insert(name.to_owned(), value.to_vec());
        Ok(())
    }

    pub(crate) fn remove(&mut self, name: &str) -> Result<(), Refusal> {
        check_state_name(name)?;
        self.state.remove(name);
        Ok(())
    }

    pub(crate) fn emit(&mut self, message: &Outgoing<'_>) -> Result<String, Refusal> {
        if let Err(error) = serde_json::from_slice::<serde_json::Map<_, _>>(message.data) {
            let why = format!("the data is not a JSON object: {error}");
            self.refused.get_or_insert_with(|| why.clone());
            return Err(Refusal::Invalid(why));
        }
        let id = format!("{}.{}", self.event_id, self.emits.len() + 1);
        self.emits.push(Emitted {
            id: id.clone(),
            category: message.category.to_owned(),
            name: message.name.to_owned(),
            version: message.version,
            headers: message.headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            data: message.data.to_vec(),
        });
        Ok(id)
    }
}

fn check_state_name(name: &str) -> Result<(), Refusal> {
    let fits = (1..=STATE_NAME_MAX_BYTES).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-'));
    if fits { Ok(()) } else { Err(Refusal::Invalid("names are 1 to 128 bytes of [A-Za-z0-9_.:-]".to_owned())) }
}

/// Keeps the line for the running call; outside of one it goes to standard error.
pub(crate) fn log(level: Level, context: &str, message: &str) {
    LINES.with_borrow_mut(|lines| match lines {
        Some(lines) => {
            lines.push(LogLine { level, context: context.to_owned(), message: message.to_owned() });
        }
        None => eprintln!("{level:?} {context}: {message}"),
    });
}

/// Runs `call` and answers with the lines that it logged.
pub(crate) fn capture<T>(call: impl FnOnce() -> T) -> (T, Vec<LogLine>) {
    LINES.set(Some(Vec::new()));
    let answer = call();
    (answer, LINES.take().unwrap_or_default())
}
