//! Why a handler or an event is refused, each with what to change. The rules themselves are the catalog's.

use crate::{CategoryName, FieldType, GroupName, KeyError, MessageName, NameError, OptionError};

/// One reason why a handler is refused, with what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A name is not of its form.
    #[error(transparent)]
    Name(#[from] NameError),
    /// It handles nothing.
    #[error("it handles no message type; declare at least one in `handles`")]
    HandlesNothing,
    /// A message type twice.
    #[error("it declares {category}/{message} version {version} twice; declare it once")]
    DeclaredTwice {
        /// The category.
        category: CategoryName,
        /// The message type.
        message: MessageName,
        /// Its version.
        version: u32,
    },
    /// An unknown option that must be understood.
    #[error("it demands the option {0:?}, which this host does not know; run it on a newer host")]
    UnknownOption(String),
    /// An option whose value is none.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// Role and `sequential-by` do not fit.
    #[error("{0}")]
    Role(&'static str),
    /// The key field is not declared.
    #[error(
        "{category}/{message} has no field {field:?}, by which the handler is sequential; add the field to the type, \
         required and text or integer, or name another in `sequential-by`"
    )]
    KeyFieldMissing {
        /// The category.
        category: CategoryName,
        /// The message type.
        message: MessageName,
        /// The field.
        field: String,
    },
    /// The key field is optional.
    #[error("the key field {field:?} of {category}/{message} is optional; make it required")]
    KeyFieldOptional {
        /// The category.
        category: CategoryName,
        /// The message type.
        message: MessageName,
        /// The field.
        field: String,
    },
    /// The key field has another type.
    #[error("the key field {field:?} of {category}/{message} is {kind}; only text and integers can be keys")]
    KeyFieldType {
        /// The category.
        category: CategoryName,
        /// The message type.
        message: MessageName,
        /// The field.
        field: String,
        /// What it is.
        kind: FieldType,
    },
    /// A process manager does not say how a message correlates.
    #[error("{category}/{message} has no entry in the correlation; name the field that holds the correlation value")]
    NotCorrelated {
        /// The category.
        category: CategoryName,
        /// The message type.
        message: MessageName,
    },
    /// Another handler partitions the category by another field.
    #[error(
        "category {category} is partitioned by {existing:?} (declared by {holders}), not by {wanted:?}; a category has \
         one key: use {existing:?}, or publish these events to a category of their own"
    )]
    KeyConflict {
        /// The category.
        category: CategoryName,
        /// The field in force.
        existing: String,
        /// Who declared it.
        holders: String,
        /// What this handler wants.
        wanted: String,
    },
    /// A message type exists with other fields.
    #[error(
        "{category}/{message} version {version} is declared by {holder} with other fields: {difference}; declare \
             them alike, or raise the version"
    )]
    FieldsDiffer {
        /// The category.
        category: CategoryName,
        /// The message type.
        message: MessageName,
        /// Its version.
        version: u32,
        /// Who declared it.
        holder: GroupName,
        /// What differs.
        difference: String,
    },
    /// A command has a handler already.
    #[error("the command {category}/{message} is handled by {holder} already; a command has one handler")]
    CommandTaken {
        /// The category.
        category: CategoryName,
        /// The message type.
        message: MessageName,
        /// Who handles it.
        holder: GroupName,
    },
    /// The broker lacks a capability.
    #[error(
        "it is sequential by a key, and the broker does not offer STREAM_PARTITIONING; use the embedded broker or Redis 7"
    )]
    NotPartitioning,
}

/// Why an event was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The category's name is not one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// No handler is registered on the category.
    #[error("unknown category {category:?}{}", listing(.known))]
    UnknownCategory {
        /// As given.
        category: String,
        /// What there is.
        known: Vec<String>,
    },
    /// No handler declares the type.
    #[error("unknown message type {message:?} in category {category}{}", listing(.known))]
    UnknownMessage {
        /// The category.
        category: CategoryName,
        /// As given.
        message: String,
        /// What there is.
        known: Vec<String>,
    },
    /// No handler declares this version.
    #[error("unknown version {version} of {category}/{message}{}", listing(.known))]
    UnknownVersion {
        /// The category.
        category: CategoryName,
        /// The message type.
        message: MessageName,
        /// As given.
        version: u32,
        /// What there is.
        known: Vec<String>,
    },
    /// The data is not a JSON object.
    #[error("the data of {category}/{message} is not a JSON object: {why}")]
    NotAnObject {
        /// The category.
        category: CategoryName,
        /// The message type.
        message: MessageName,
        /// What it is.
        why: String,
    },
    /// A required field is not there.
    #[error("field {field:?} of {category}/{message} is missing")]
    FieldMissing {
        /// The category.
        category: CategoryName,
        /// The message type.
        message: MessageName,
        /// The field.
        field: String,
    },
    /// A field has another type.
    #[error("field {field:?} of {category}/{message} is not {expected}")]
    FieldType {
        /// The category.
        category: CategoryName,
        /// The message type.
        message: MessageName,
        /// The field.
        field: String,
        /// What was declared.
        expected: FieldType,
    },
    /// The key is not one.
    #[error("field {field:?} of {category}/{message}: {error}")]
    Key {
        /// The category.
        category: CategoryName,
        /// The message type.
        message: MessageName,
        /// The key field.
        field: String,
        /// Why.
        error: KeyError,
    },
}

fn listing(names: &[String]) -> String {
    if names.is_empty() { "; none is registered".into() } else { format!("; known: {}", names.join(", ")) }
}
