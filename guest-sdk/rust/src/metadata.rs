//! What a handler says of itself. `#[handler]` writes it; by hand it reads
//! `Metadata::event_handler("billing", "1.0.0").handles::<OrderPlaced>().sequential_by("order_id")`.

use crate::event::{Event, Field};

/// What kind of handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reacts to events.
    EventHandler,
    /// Carries out commands; a command type has one.
    CommandHandler,
    /// Coordinates over several categories by a correlation value.
    ProcessManager,
}

/// A type of message as the handler understands it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageType {
    /// Its category.
    pub category: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: u32,
    /// Its fields.
    pub fields: &'static [Field],
}

impl MessageType {
    /// The message type of `E`.
    pub const fn of<E: Event>() -> Self {
        Self { category: E::CATEGORY, name: E::NAME, version: E::VERSION, fields: E::FIELDS }
    }
}

/// Which field of a message holds the value that a process manager correlates by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Correlation {
    /// The category.
    pub category: &'static str,
    /// The message type.
    pub message: &'static str,
    /// The field.
    pub field: &'static str,
}

/// What orders the handler's events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SequentialBy {
    /// Nothing of its own.
    Unordered,
    /// Events with an equal value of this field run one at a time, in publish order.
    Field(&'static str),
    /// For a process manager: events with equal correlation values run one at a time.
    Correlation(Vec<Correlation>),
}

/// What a component answers when it is asked to describe itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// The consumer group. Another name starts from the beginning.
    pub name: &'static str,
    /// Free text; shown to operators.
    pub version: &'static str,
    /// What kind of handler.
    pub role: Role,
    /// What it handles.
    pub handles: Vec<MessageType>,
    /// What orders its events.
    pub sequential_by: SequentialBy,
    /// Later options. A host refuses unknown names that start with `must-` and ignores others.
    pub options: Vec<(&'static str, &'static str)>,
}

impl Metadata {
    /// A handler that reacts to events.
    pub fn event_handler(name: &'static str, version: &'static str) -> Self {
        Self::new(name, version, Role::EventHandler)
    }

    /// A handler that carries out commands.
    pub fn command_handler(name: &'static str, version: &'static str) -> Self {
        Self::new(name, version, Role::CommandHandler)
    }

    /// A handler that coordinates over categories. Say with [`Self::correlates`] by what.
    pub fn process_manager(name: &'static str, version: &'static str) -> Self {
        Self::new(name, version, Role::ProcessManager)
    }

    fn new(name: &'static str, version: &'static str, role: Role) -> Self {
        Self { name, version, role, handles: Vec::new(), sequential_by: SequentialBy::Unordered, options: Vec::new() }
    }

    /// Adds a type that it handles.
    pub fn handles<E: Event>(mut self) -> Self {
        self.handles.push(MessageType::of::<E>());
        self
    }

    /// Sets the field that orders its events; every handled type must have it.
    pub fn sequential_by(mut self, field: &'static str) -> Self {
        self.sequential_by = SequentialBy::Field(field);
        self
    }

    /// Adds the field of `E` that holds the correlation value.
    pub fn correlates<E: Event>(mut self, field: &'static str) -> Self {
        let correlation = Correlation { category: E::CATEGORY, message: E::NAME, field };
        match &mut self.sequential_by {
            SequentialBy::Correlation(list) => list.push(correlation),
            other => *other = SequentialBy::Correlation(vec![correlation]),
        }
        self
    }

    /// Adds an option.
    pub fn option(mut self, name: &'static str, value: &'static str) -> Self {
        self.options.push((name, value));
        self
    }
}
