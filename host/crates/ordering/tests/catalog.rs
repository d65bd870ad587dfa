//! The rules of registering and of publishing.
#![allow(clippy::unwrap_used, missing_docs)]

use keyrail_ordering::{
    Capabilities, Catalog, CategoryName, Correlation, EventError, Field, FieldType, GroupName, KeyError, MessageName,
    MessageType, Metadata, Refusal, Role, SequentialBy,
};

const PARTITIONING: Capabilities = Capabilities { stream_partitioning: true };

fn field(name: &str, kind: FieldType, required: bool) -> Field {
    Field { name: name.into(), kind, required }
}

fn message(category: &str, name: &str, fields: &[Field]) -> MessageType {
    MessageType {
        category: CategoryName::parse(category).unwrap(),
        name: MessageName::parse(name).unwrap(),
        version: 1,
        fields: fields.to_vec(),
    }
}

fn placed() -> MessageType {
    message(
        "order",
        "Placed",
        &[
            field("order_id", FieldType::Text, true),
            field("client_id", FieldType::Integer, true),
            field("note", FieldType::Text, false),
            field("total", FieldType::Number, true),
        ],
    )
}

fn handler(name: &str, sequential_by: Option<&str>, handles: Vec<MessageType>) -> Metadata {
    Metadata {
        name: GroupName::parse(name).unwrap(),
        version: "1".into(),
        role: Role::EventHandler,
        handles,
        sequential_by: sequential_by.map_or(SequentialBy::Unordered, |field| SequentialBy::Field(field.into())),
        options: vec![],
    }
}

fn with(handlers: &[Metadata]) -> Catalog {
    handlers.iter().fold(Catalog::default(), |catalog, h| catalog.register(h, "hash", PARTITIONING).unwrap())
}

fn refusals(catalog: &Catalog, metadata: &Metadata) -> Vec<Refusal> {
    catalog.register(metadata, "hash", PARTITIONING).unwrap_err()
}

#[test]
fn a_handler_brings_its_category_with_its_key() {
    let catalog = with(&[handler("billing", Some("order_id"), vec![placed()])]);
    let (name, category) = catalog.categories.first_key_value().unwrap();
    assert_eq!((name.as_str(), category.key_field.as_deref()), ("order", Some("order_id")));
    assert_eq!(category.groups, [GroupName::parse("billing").unwrap()]);
}

#[test]
fn registering_the_same_again_changes_nothing() {
    let billing = handler("billing", Some("order_id"), vec![placed()]);
    let catalog = with(std::slice::from_ref(&billing));
    assert_eq!(catalog.register(&billing, "hash", PARTITIONING).unwrap(), catalog);
}

#[test]
fn a_handler_without_sequential_by_may_join_a_partitioned_category() {
    let catalog = with(&[handler("billing", Some("order_id"), vec![placed()]), handler("log", None, vec![placed()])]);
    let category = catalog.categories.values().next().unwrap();
    assert_eq!(category.key_field.as_deref(), Some("order_id"));
    assert_eq!(category.groups.len(), 2);
}

#[test]
fn a_key_field_must_be_there_and_required_and_text_or_integer() {
    let catalog = Catalog::default();
    let by = |field| refusals(&catalog, &handler("h", Some(field), vec![placed()]));
    assert!(matches!(by("missing")[..], [Refusal::KeyFieldMissing { .. }]));
    assert!(matches!(by("note")[..], [Refusal::KeyFieldOptional { .. }]));
    assert!(matches!(by("total")[..], [Refusal::KeyFieldType { .. }]));
    assert!(catalog.register(&handler("h", Some("client_id"), vec![placed()]), "", PARTITIONING).is_ok());
}

#[test]
fn one_key_per_category() {
    let catalog = with(&[handler("billing", Some("order_id"), vec![placed()])]);
    let found = refusals(&catalog, &handler("crm", Some("client_id"), vec![placed()]));
    assert!(matches!(found[..], [Refusal::KeyConflict { .. }]), "{found:?}");
    assert!(found[0].to_string().contains("declared by billing"), "{}", found[0]);
    // Its own earlier version binds too: entries may lie under the old key.
    let found = refusals(&catalog, &handler("billing", Some("client_id"), vec![placed()]));
    assert!(matches!(found[..], [Refusal::KeyConflict { .. }]), "{found:?}");
}

#[test]
fn a_process_manager_binds_its_categories_by_its_correlation() {
    let paid = message("payment", "Paid", &[field("order", FieldType::Text, true)]);
    let correlation = |category: &str, message: &str, field: &str| Correlation {
        category: CategoryName::parse(category).unwrap(),
        message: MessageName::parse(message).unwrap(),
        field: field.into(),
    };
    let list = vec![correlation("order", "Placed", "order_id"), correlation("payment", "Paid", "order")];
    let manager = Metadata {
        role: Role::ProcessManager,
        sequential_by: SequentialBy::Correlation(list),
        ..handler("fulfilment", None, vec![placed(), paid.clone()])
    };
    let catalog = with(std::slice::from_ref(&manager));
    let found = refusals(&catalog, &handler("crm", Some("client_id"), vec![placed()]));
    assert!(matches!(found[..], [Refusal::KeyConflict { .. }]), "{found:?}");
    let partial = Metadata {
        sequential_by: SequentialBy::Correlation(vec![correlation("order", "Placed", "order_id")]),
        ..manager.clone()
    };
    assert!(matches!(refusals(&Catalog::default(), &partial)[..], [Refusal::NotCorrelated { .. }]));
    let wrong_role = Metadata { role: Role::EventHandler, ..manager };
    assert!(matches!(refusals(&Catalog::default(), &wrong_role)[..], [Refusal::Role(_)]));
}

#[test]
fn the_same_type_with_other_fields_is_refused_and_the_difference_named() {
    let catalog = with(&[handler("billing", Some("order_id"), vec![placed()])]);
    let other = message("order", "Placed", &[field("order_id", FieldType::Text, true)]);
    let found = refusals(&catalog, &handler("log", None, vec![other]));
    assert!(matches!(found[..], [Refusal::FieldsDiffer { .. }]), "{found:?}");
    assert!(found[0].to_string().contains("client_id (an integer)"), "{}", found[0]);
}

#[test]
fn a_command_has_one_handler() {
    let ship = Metadata { role: Role::CommandHandler, ..handler("shipping", Some("order_id"), vec![placed()]) };
    let second = Metadata { name: GroupName::parse("second").unwrap(), ..ship.clone() };
    assert!(matches!(refusals(&with(&[ship]), &second)[..], [Refusal::CommandTaken { .. }]));
}

#[test]
fn every_problem_is_listed_at_once() {
    let bad = Metadata {
        options: vec![("must-fly".into(), "1".into()), ("may".into(), "2".into())],
        ..handler("h", Some("missing"), vec![placed(), placed(), message("order", "Paid", &[])])
    };
    let found = Catalog::default().register(&bad, "", Capabilities { stream_partitioning: false }).unwrap_err();
    assert!(matches!(
        found[..],
        [
            Refusal::UnknownOption(_),
            Refusal::KeyFieldMissing { .. },
            Refusal::DeclaredTwice { .. },
            Refusal::KeyFieldMissing { .. },
            Refusal::NotPartitioning
        ]
    ));
    assert_eq!(refusals(&Catalog::default(), &handler("h", None, vec![])), [Refusal::HandlesNothing]);
}

#[test]
fn an_event_is_accepted_with_its_key() {
    let catalog = with(&[handler("billing", Some("client_id"), vec![placed()])]);
    let data = br#"{"order_id":"o1","client_id":7,"total":1.5,"note":null,"more":[]}"#;
    let accepted = catalog.accept("order", "Placed", None, data).unwrap();
    assert_eq!(accepted.key.unwrap().as_str(), "7");
    assert_eq!((accepted.version, accepted.key_field.as_deref()), (1, Some("client_id")));
}

#[test]
fn a_bad_event_is_refused_by_kind() {
    let catalog = with(&[handler("billing", Some("order_id"), vec![placed()])]);
    let accept =
        |category, name, version, data: &str| catalog.accept(category, name, version, data.as_bytes()).unwrap_err();
    let good = r#"{"order_id":"o1","client_id":7,"total":1}"#;
    assert!(matches!(accept("x", "Placed", None, good), EventError::UnknownCategory { .. }));
    assert!(matches!(accept("order", "X", None, good), EventError::UnknownMessage { .. }));
    assert!(matches!(accept("order", "Placed", Some(2), good), EventError::UnknownVersion { .. }));
    assert!(matches!(accept("order", "Placed", None, "{"), EventError::NotAnObject { .. }));
    assert!(matches!(accept("order", "Placed", None, "[]"), EventError::NotAnObject { .. }));
    let key = |data| match accept("order", "Placed", None, data) {
        EventError::Key { error, .. } => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(key(r#"{"client_id":7,"total":1}"#), KeyError::Missing);
    assert_eq!(key(r#"{"order_id":null}"#), KeyError::Null);
    assert!(matches!(key(r#"{"order_id":"a:b"}"#), KeyError::Reserved { .. }));
    assert!(matches!(key(r#"{"order_id":1.5}"#), KeyError::WrongType(_)));
    let missing = r#"{"order_id":"o1","client_id":7}"#;
    assert!(
        matches!(accept("order", "Placed", None, missing), EventError::FieldMissing { field, .. } if field == "total")
    );
    let wrong = r#"{"order_id":"o1","client_id":"7","total":1}"#;
    assert!(
        matches!(accept("order", "Placed", None, wrong), EventError::FieldType { field, .. } if field == "client_id")
    );
}
