//! What `#[derive(Event)]` and `#[handler]` declare.
#![allow(missing_docs, clippy::unwrap_used, clippy::trivially_copy_pass_by_ref, dead_code)]

use std::borrow::Cow;
use std::collections::BTreeMap;

use keyrail_guest::{
    Context, Correlation, Event, Field, FieldKind, FieldType, Handler, Result, Role, SequentialBy, handler,
};
use serde::{Deserialize, Serialize};

fn field(name: &'static str, kind: FieldType, required: bool) -> Field {
    Field { name, kind, required }
}

#[derive(Serialize, Deserialize)]
struct Nested {
    a: u8,
}

#[derive(Serialize, Deserialize)]
struct Wrapped(String);

impl FieldKind for Wrapped {
    const KIND: FieldType = FieldType::Text;
}

type Alias = u64;

#[derive(Event, Serialize, Deserialize)]
#[event(category = "kinds")]
struct Kinds {
    text: String,
    cow: Cow<'static, str>,
    alias: Alias,
    float: f32,
    flag: bool,
    list: Vec<Nested>,
    pair: (u8, String),
    map: serde_json::Map<String, serde_json::Value>,
    tree: BTreeMap<String, u8>,
    nested: Nested,
    wrapped: Wrapped,
    boxed: Box<i32>,
    maybe: Option<String>,
    maybe_nested: Option<Nested>,
    #[event(timestamp)]
    at: String,
    #[event(binary)]
    image: Option<String>,
    r#type: String,
}

#[test]
fn rust_types_become_field_types() {
    use FieldType::{Binary, Boolean, Integer, List, Number, Object, Text, Timestamp};
    let expected = [
        field("text", Text, true),
        field("cow", Text, true),
        field("alias", Integer, true),
        field("float", Number, true),
        field("flag", Boolean, true),
        field("list", List, true),
        field("pair", List, true),
        field("map", Object, true),
        field("tree", Object, true),
        field("nested", Object, true),
        field("wrapped", Text, true),
        field("boxed", Integer, true),
        field("maybe", Text, false),
        field("maybe_nested", Object, false),
        field("at", Timestamp, true),
        field("image", Binary, false),
        field("type", Text, true),
    ];
    assert_eq!(Kinds::FIELDS, expected);
    assert_eq!((Kinds::CATEGORY, Kinds::NAME, Kinds::VERSION), ("kinds", "Kinds", 1));
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

#[derive(Event, Serialize, Deserialize)]
#[event(category = "order", name = "OrderPlaced", version = 2)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Renamed {
    order_id: String,
    #[serde(rename = "kind", alias = "sort")]
    type_of: String,
    #[serde(skip)]
    cache: u64,
    #[serde(default)]
    a_b_c: u64,
    #[serde(default = "String::new", skip_serializing_if = "String::is_empty")]
    note: String,
    #[serde(skip_serializing_if = "is_zero")]
    count: u64,
}

#[test]
fn the_names_are_those_of_the_json() {
    let expected = [
        field("orderId", FieldType::Text, true),
        field("kind", FieldType::Text, true),
        field("aBC", FieldType::Integer, false),
        field("note", FieldType::Text, false),
        field("count", FieldType::Integer, false),
    ];
    assert_eq!(Renamed::FIELDS, expected);
    assert_eq!((Renamed::NAME, Renamed::VERSION), ("OrderPlaced", 2));

    let event = Renamed { order_id: "o".into(), type_of: "x".into(), cache: 1, a_b_c: 2, note: "n".into(), count: 3 };
    let json = serde_json::to_value(&event).unwrap();
    let mut members: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
    let mut declared: Vec<_> = Renamed::FIELDS.iter().map(|field| field.name).collect();
    members.sort_unstable();
    declared.sort_unstable();
    assert_eq!(members, declared);
}

#[derive(Event, Serialize)]
#[event(category = "order")]
struct Borrowed<'a> {
    order_id: &'a str,
}

#[derive(Event, Serialize, Deserialize)]
#[event(category = "tick")]
struct Tick {}

#[test]
fn borrowing_and_empty_structs_are_events() {
    assert_eq!(Borrowed::FIELDS, [field("order_id", FieldType::Text, true)]);
    assert_eq!(Tick::FIELDS, []);
}

#[derive(Event, Serialize, Deserialize)]
#[event(category = "order")]
struct OrderPlaced {
    order_id: String,
}

#[derive(Event, Serialize, Deserialize)]
#[event(category = "payment")]
struct PaymentTaken {
    order: String,
}

struct Commands;

#[handler(name = "commands", version = "7", role = "command-handler", sequential_by = "order_id", options("may-x" = "1"))]
impl Commands {
    fn place(&self, _command: OrderPlaced, _ctx: &mut Context) -> Result<()> {
        Ok(())
    }
}

struct Manager;

#[handler(name = "manager", correlate(OrderPlaced = "order_id", PaymentTaken = "order"))]
impl Manager {
    fn placed(&self, _event: OrderPlaced, _ctx: &mut Context) -> Result<()> {
        Ok(())
    }

    fn taken(&self, _event: PaymentTaken, _ctx: &mut Context) -> Result<()> {
        Ok(())
    }
}

struct Single;

#[handler(name = "single", correlate_by = "order_id")]
impl Single {
    fn placed(&self, _event: OrderPlaced, _ctx: &mut Context) -> Result<()> {
        Ok(())
    }
}

struct Any;

#[handler(name = "any")]
impl Any {
    fn tick(&self, _event: Tick, _ctx: &mut Context) -> Result<()> {
        Ok(())
    }
}

#[test]
fn every_role_can_be_declared() {
    let commands = Commands::metadata();
    assert_eq!((commands.name, commands.version, commands.role), ("commands", "7", Role::CommandHandler));
    assert_eq!(commands.sequential_by, SequentialBy::Field("order_id"));
    assert_eq!(commands.options, [("may-x", "1")]);

    let manager = Manager::metadata();
    assert_eq!((manager.version, manager.role), (env!("CARGO_PKG_VERSION"), Role::ProcessManager));
    let placed = Correlation { category: "order", message: "OrderPlaced", field: "order_id" };
    let taken = Correlation { category: "payment", message: "PaymentTaken", field: "order" };
    assert_eq!(manager.sequential_by, SequentialBy::Correlation(vec![placed, taken]));
    assert_eq!(manager.handles.iter().map(|one| one.name).collect::<Vec<_>>(), ["OrderPlaced", "PaymentTaken"]);

    assert_eq!(Single::metadata().sequential_by, SequentialBy::Correlation(vec![placed]));
    assert_eq!((Any::metadata().role, Any::metadata().sequential_by), (Role::EventHandler, SequentialBy::Unordered));
}
