//! Why a handler is not registered: what is wrong with it by itself, and what does not fit with those that are there. Every
//! reason at once.

use super::{Catalog, Field, FieldType, MessageType, Metadata, Role, SequentialBy};
use crate::{BatchLimits, Refusal, RetryPolicy};

impl Catalog {
    /// What does not fit with the other handlers.
    pub(super) fn conflicts(&self, metadata: &Metadata, others: &[&Metadata]) -> Vec<Refusal> {
        let mut refusals = vec![];
        let mut reported = vec![];
        for message in &metadata.handles {
            let (category, name, version) = (&message.category, &message.name, message.version);
            let existing = self.categories.get(category).and_then(|entry| entry.key_field.as_deref());
            if let (Some(wanted), Some(existing)) = (metadata.key_field(message), existing)
                && wanted != existing
                && !reported.contains(&category)
            {
                let declares =
                    |m: &&&Metadata| m.handles.iter().any(|h| h.category == *category && m.key_field(h).is_some());
                let mut holders: Vec<_> = others.iter().filter(declares).map(|m| m.name.to_string()).collect();
                if holders.is_empty() {
                    holders.push(format!("an earlier version of {}", metadata.name));
                }
                reported.push(category);
                refusals.push(Refusal::KeyConflict {
                    category: category.clone(),
                    existing: existing.into(),
                    holders: holders.join(", "),
                    wanted: wanted.into(),
                });
            }
            for other in others {
                let same = |m: &&MessageType| m.category == *category && m.name == *name;
                for theirs in other.handles.iter().filter(same) {
                    if theirs.version == version && !same_fields(&theirs.fields, &message.fields) {
                        refusals.push(Refusal::FieldsDiffer {
                            category: category.clone(),
                            message: name.clone(),
                            version,
                            holder: other.name.clone(),
                            difference: difference(&theirs.fields, &message.fields),
                        });
                    }
                }
                let both = metadata.role == Role::CommandHandler && other.role == Role::CommandHandler;
                if both && other.handles.iter().any(|m| same(&m)) {
                    refusals.push(Refusal::CommandTaken {
                        category: category.clone(),
                        message: name.clone(),
                        holder: other.name.clone(),
                    });
                }
            }
        }
        refusals
    }
}

/// What is wrong with a declaration by itself.
pub(super) fn declaration_refusals(metadata: &Metadata) -> Vec<Refusal> {
    let mut refusals = vec![];
    if metadata.handles.is_empty() {
        refusals.push(Refusal::HandlesNothing);
    }
    for (name, _) in &metadata.options {
        if name.starts_with("must-") {
            refusals.push(Refusal::UnknownOption(name.clone()));
        }
    }
    refusals.extend(RetryPolicy::default().with_options(&metadata.options).err().map(Refusal::from));
    refusals.extend(BatchLimits::default().with_options(&metadata.options).err().map(Refusal::from));
    match (metadata.role, &metadata.sequential_by) {
        (Role::ProcessManager, SequentialBy::Field(_)) => refusals.push(Refusal::Role(
            "it is a process manager and sequential by a field; a process manager is sequential by its correlation",
        )),
        (Role::EventHandler | Role::CommandHandler, SequentialBy::Correlation(_)) => refusals.push(Refusal::Role(
            "it is sequential by a correlation; only a process manager is: set its role, or name a field",
        )),
        _ => {}
    }
    for (index, message) in metadata.handles.iter().enumerate() {
        let (category, name) = (&message.category, &message.name);
        let same = |m: &MessageType| m.category == *category && m.name == *name && m.version == message.version;
        if metadata.handles[..index].iter().any(same) {
            let (category, message, version) = (category.clone(), name.clone(), message.version);
            refusals.push(Refusal::DeclaredTwice { category, message, version });
            continue;
        }
        let Some(field) = metadata.key_field(message) else {
            if matches!(metadata.sequential_by, SequentialBy::Correlation(_)) {
                refusals.push(Refusal::NotCorrelated { category: category.clone(), message: name.clone() });
            }
            continue;
        };
        let (category, message_name, field_name) = (category.clone(), name.clone(), field.to_string());
        match message.fields.iter().find(|f| f.name == field) {
            None => {
                refusals.push(Refusal::KeyFieldMissing { category, message: message_name, field: field_name });
            }
            Some(f) if !f.required => {
                refusals.push(Refusal::KeyFieldOptional { category, message: message_name, field: field_name });
            }
            Some(f) if !matches!(f.kind, FieldType::Text | FieldType::Integer) => {
                let kind = f.kind;
                refusals.push(Refusal::KeyFieldType { category, message: message_name, field: field_name, kind });
            }
            Some(_) => {}
        }
    }
    refusals
}

fn same_fields(a: &[Field], b: &[Field]) -> bool {
    a.len() == b.len() && a.iter().all(|field| b.contains(field))
}

fn difference(theirs: &[Field], ours: &[Field]) -> String {
    let describe = |f: &Field| format!("{} ({}{})", f.name, f.kind, if f.required { "" } else { ", optional" });
    let only = |a: &[Field], b: &[Field]| {
        let list: Vec<_> = a.iter().filter(|f| !b.contains(f)).map(describe).collect();
        if list.is_empty() { "nothing more".into() } else { list.join(", ") }
    };
    format!("there {}, here {}", only(theirs, ours), only(ours, theirs))
}
