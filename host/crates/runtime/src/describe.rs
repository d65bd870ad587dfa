//! From what a guest says of itself to what the catalog takes: names are parsed, every bad one is reported.

use keyrail_ordering::{
    CategoryName, Correlation, Field, FieldType, GroupName, MessageName, MessageType, Metadata, NameError, Refusal,
    Role, SequentialBy,
};

use crate::bindings::keyrail::handler::types as wit;

/// The metadata with its names parsed, or every name that is none.
pub(crate) fn parse(said: wit::Metadata) -> Result<Metadata, Vec<Refusal>> {
    let mut bad = Vec::new();
    let name = keep(GroupName::parse(&said.name), &mut bad);
    let handles = said.handles.into_iter().filter_map(|message| parse_message(message, &mut bad)).collect();
    let sequential_by = match said.sequential_by {
        wit::SequentialBy::Unordered => SequentialBy::Unordered,
        wit::SequentialBy::Field(field) => SequentialBy::Field(field),
        wit::SequentialBy::Correlation(list) => {
            SequentialBy::Correlation(list.iter().filter_map(|entry| parse_correlation(entry, &mut bad)).collect())
        }
    };
    let role = match said.role {
        wit::Role::EventHandler => Role::EventHandler,
        wit::Role::CommandHandler => Role::CommandHandler,
        wit::Role::ProcessManager => Role::ProcessManager,
    };
    match name {
        Some(name) if bad.is_empty() => {
            Ok(Metadata { name, version: said.version, role, handles, sequential_by, options: said.options })
        }
        _ => Err(bad),
    }
}

fn keep<T>(parsed: Result<T, NameError>, bad: &mut Vec<Refusal>) -> Option<T> {
    parsed.map_err(|error| bad.push(error.into())).ok()
}

fn parse_message(message: wit::MessageType, bad: &mut Vec<Refusal>) -> Option<MessageType> {
    let category = keep(CategoryName::parse(&message.category), bad);
    let name = keep(MessageName::parse(&message.name), bad);
    let fields = message.fields.into_iter().map(field).collect();
    Some(MessageType { category: category?, name: name?, version: message.version, fields })
}

fn parse_correlation(entry: &wit::Correlation, bad: &mut Vec<Refusal>) -> Option<Correlation> {
    let category = keep(CategoryName::parse(&entry.category), bad);
    let message = keep(MessageName::parse(&entry.message), bad);
    Some(Correlation { category: category?, message: message?, field: entry.field.clone() })
}

fn field(field: wit::Field) -> Field {
    let kind = match field.kind {
        wit::FieldType::Text => FieldType::Text,
        wit::FieldType::Integer => FieldType::Integer,
        wit::FieldType::Number => FieldType::Number,
        wit::FieldType::Boolean => FieldType::Boolean,
        wit::FieldType::Timestamp => FieldType::Timestamp,
        wit::FieldType::List => FieldType::List,
        wit::FieldType::Object => FieldType::Object,
        wit::FieldType::Binary => FieldType::Binary,
    };
    Field { name: field.name, kind, required: field.required }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str, categories: &[&str]) -> wit::Metadata {
        let message = |category: &&str| wit::MessageType {
            category: (*category).into(),
            name: "Placed".into(),
            version: 1,
            fields: vec![wit::Field { name: "id".into(), kind: wit::FieldType::Text, required: true }],
        };
        wit::Metadata {
            name: name.into(),
            version: "1".into(),
            role: wit::Role::EventHandler,
            handles: categories.iter().map(message).collect(),
            sequential_by: wit::SequentialBy::Field("id".into()),
            options: vec![],
        }
    }

    #[test]
    fn good_names_are_parsed() {
        let metadata = parse(said("orders", &["order", "payment"])).unwrap();
        assert_eq!(metadata.name.as_str(), "orders");
        assert_eq!(metadata.handles.len(), 2);
    }

    #[test]
    fn every_bad_name_is_reported_at_once() {
        let refusals = parse(said("Orders", &["order", "a:b", ""])).unwrap_err();
        assert_eq!(refusals.len(), 3, "{refusals:?}");
    }
}
