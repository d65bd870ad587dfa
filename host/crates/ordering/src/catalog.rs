//! What is registered: categories with their key fields, handlers, message types. The rules of registering are in `catalog/rules.rs`.
//!
//! A catalog is a value. Registering answers with the next one, or with everything that is wrong at once; brokers only
//! compare and set its version.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CategoryName, Deployment, EventError, GroupName, Key, KeyRules, MessageName, Refusal};

mod rules;

/// What a field of a message holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    /// A string.
    Text,
    /// A number without a fraction, of 64 bits.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    /// A string of RFC 3339.
    Timestamp,
    /// A list.
    List,
    /// An object.
    Object,
    /// A string of base64.
    Binary,
}

impl FieldType {
    fn matches(self, value: &Value) -> bool {
        match self {
            Self::Text | Self::Timestamp | Self::Binary => value.is_string(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Boolean => "a boolean",
            Self::Timestamp => "a timestamp",
            Self::List => "a list",
            Self::Object => "an object",
            Self::Binary => "base64 text",
        })
    }
}

/// One field of a message type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Field {
    /// A direct member of the event's JSON object.
    pub name: String,
    /// What it holds.
    pub kind: FieldType,
    /// Whether every message carries it.
    pub required: bool,
}

/// A type of event or command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageType {
    /// Its category.
    pub category: CategoryName,
    /// Its name.
    pub name: MessageName,
    /// Its version.
    pub version: u32,
    /// Its fields.
    pub fields: Vec<Field>,
}

/// Which field of a message a process manager correlates by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Correlation {
    /// The category.
    pub category: CategoryName,
    /// The message type.
    pub message: MessageName,
    /// The field.
    pub field: String,
}

/// What orders a handler's events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SequentialBy {
    /// Nothing of its own.
    Unordered,
    /// The value of this field.
    Field(String),
    /// A process manager's correlation value.
    Correlation(Vec<Correlation>),
}

/// What kind of handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Reacts to events.
    EventHandler,
    /// Carries out commands; one per command type.
    CommandHandler,
    /// Coordinates over several categories.
    ProcessManager,
}

/// What a handler says of itself, with its names parsed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Metadata {
    /// The handler's name: its consumer group.
    pub name: GroupName,
    /// Its version, free text.
    pub version: String,
    /// Its role.
    pub role: Role,
    /// What it handles.
    pub handles: Vec<MessageType>,
    /// What orders its events.
    pub sequential_by: SequentialBy,
    /// Options as declared.
    pub options: Vec<(String, String)>,
}

impl Metadata {
    /// The categories it reads, each once, in order.
    pub fn categories(&self) -> Vec<&CategoryName> {
        let mut categories: Vec<_> = self.handles.iter().map(|message| &message.category).collect();
        categories.sort();
        categories.dedup();
        categories
    }

    /// The field that it wants `message` to be partitioned by.
    fn key_field(&self, message: &MessageType) -> Option<&str> {
        match &self.sequential_by {
            SequentialBy::Unordered => None,
            SequentialBy::Field(field) => Some(field),
            SequentialBy::Correlation(list) => list
                .iter()
                .find(|correlation| correlation.category == message.category && correlation.message == message.name)
                .map(|correlation| correlation.field.as_str()),
        }
    }
}

/// A registered category.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CategoryEntry {
    /// The field that partitions it; none for a category that is not partitioned.
    pub key_field: Option<String>,
    /// Its message types: name, then version, then fields.
    pub messages: BTreeMap<MessageName, BTreeMap<u32, Vec<Field>>>,
    /// The groups that consume it.
    pub groups: Vec<GroupName>,
}

/// A registered handler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandlerEntry {
    /// What it declared.
    pub metadata: Metadata,
    /// Hash of the component's bytes, in hex.
    pub content_hash: String,
}

/// What a broker can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Capabilities {
    /// Whether it can partition streams by key and fence their owners.
    pub stream_partitioning: bool,
}

/// Everything that is registered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Catalog {
    /// What a key must not be.
    pub key_rules: KeyRules,
    /// The categories.
    pub categories: BTreeMap<CategoryName, CategoryEntry>,
    /// The handlers.
    pub handlers: BTreeMap<GroupName, HandlerEntry>,
    /// What is deployed of them. A handler that hosts were given as a file has no deployment.
    pub deployments: BTreeMap<GroupName, Deployment>,
}

/// An event that the catalog accepts, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The category.
    pub category: CategoryName,
    /// The message type.
    pub name: MessageName,
    /// Its version.
    pub version: u32,
    /// The key, where the category is partitioned.
    pub key: Option<Key>,
    /// The field that the key came from: the broker compares it with the category's.
    pub key_field: Option<String>,
}

impl Catalog {
    /// The catalog with this handler in it, in place of an earlier version of the same name; or every reason against.
    pub fn register(
        &self,
        metadata: &Metadata,
        content_hash: &str,
        capabilities: Capabilities,
    ) -> Result<Self, Vec<Refusal>> {
        let others: Vec<&Metadata> =
            self.handlers.values().map(|handler| &handler.metadata).filter(|m| m.name != metadata.name).collect();
        let mut refusals = rules::declaration_refusals(metadata);
        refusals.extend(self.conflicts(metadata, &others));
        let partitioned = metadata.sequential_by != SequentialBy::Unordered;
        if partitioned && !capabilities.stream_partitioning {
            refusals.push(Refusal::NotPartitioning);
        }
        if !refusals.is_empty() {
            return Err(refusals);
        }
        let mut next = self.clone();
        let entry = HandlerEntry { metadata: metadata.clone(), content_hash: content_hash.into() };
        next.handlers.insert(metadata.name.clone(), entry);
        next.derive_categories();
        Ok(next)
    }

    /// Checks an event and finds its key. Without a version the newest declared one is meant.
    pub fn accept(
        &self,
        category: &str,
        message: &str,
        version: Option<u32>,
        data: &[u8],
    ) -> Result<Accepted, EventError> {
        let (category, entry) =
            self.categories.iter().find(|(name, _)| name.as_str() == category).ok_or_else(|| {
                EventError::UnknownCategory {
                    category: category.into(),
                    known: self.categories.keys().map(ToString::to_string).collect(),
                }
            })?;
        let (name, versions) = entry.messages.iter().find(|(name, _)| name.as_str() == message).ok_or_else(|| {
            EventError::UnknownMessage {
                category: category.clone(),
                message: message.into(),
                known: entry.messages.keys().map(ToString::to_string).collect(),
            }
        })?;
        let newest = versions.last_key_value().map_or(0, |(version, _)| *version);
        let version = version.unwrap_or(newest);
        let fields = versions.get(&version).ok_or_else(|| EventError::UnknownVersion {
            category: category.clone(),
            message: name.clone(),
            version,
            known: versions.keys().map(ToString::to_string).collect(),
        })?;
        let not_an_object =
            |why: String| EventError::NotAnObject { category: category.clone(), message: name.clone(), why };
        let data: Value = serde_json::from_slice(data).map_err(|error| not_an_object(error.to_string()))?;
        let data = data.as_object().ok_or_else(|| not_an_object("it is another JSON value".into()))?;
        let key =
            match &entry.key_field {
                None => None,
                Some(field) => Some(Key::from_json(data.get(field), &self.key_rules).map_err(|error| {
                    EventError::Key { category: category.clone(), message: name.clone(), field: field.clone(), error }
                })?),
            };
        for field in fields {
            match data.get(&field.name) {
                None | Some(Value::Null) if field.required => {
                    return Err(EventError::FieldMissing {
                        category: category.clone(),
                        message: name.clone(),
                        field: field.name.clone(),
                    });
                }
                Some(value) if !value.is_null() && !field.kind.matches(value) => {
                    return Err(EventError::FieldType {
                        category: category.clone(),
                        message: name.clone(),
                        field: field.name.clone(),
                        expected: field.kind,
                    });
                }
                _ => {}
            }
        }
        Ok(Accepted {
            category: category.clone(),
            name: name.clone(),
            version,
            key,
            key_field: entry.key_field.clone(),
        })
    }

    /// Categories follow from the handlers; a key field once in force stays, since entries may lie under it.
    fn derive_categories(&mut self) {
        let mut categories: BTreeMap<CategoryName, CategoryEntry> = BTreeMap::new();
        for (name, entry) in &self.categories {
            let kept = CategoryEntry { key_field: entry.key_field.clone(), ..CategoryEntry::default() };
            categories.insert(name.clone(), kept);
        }
        for handler in self.handlers.values() {
            for message in &handler.metadata.handles {
                let entry = categories.entry(message.category.clone()).or_default();
                if let Some(field) = handler.metadata.key_field(message) {
                    entry.key_field = Some(field.into());
                }
                let versions = entry.messages.entry(message.name.clone()).or_default();
                versions.insert(message.version, message.fields.clone());
                if !entry.groups.contains(&handler.metadata.name) {
                    entry.groups.push(handler.metadata.name.clone());
                }
            }
        }
        self.categories = categories;
    }
}
