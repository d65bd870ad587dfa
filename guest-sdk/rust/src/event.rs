//! What a message type is: its name, its fields, and how a Rust type maps to a field's type.
//!
//! Everything here is constant: `describe` only reads it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

/// A type of event or command. Derive it; the JSON names that serde uses are the names of the fields.
///
/// - `#[event(category = "order")]` is needed; `name = "…"` and `version = 2` if they are not the struct's name and 1.
/// - A field of type `Option`, or with a serde default, is optional.
/// - `#[event(timestamp)]` or another [`FieldType`] on a field says what the Rust type does not.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event",
    label = "a handler's method takes an event, and `emit` sends one",
    note = "derive it: `#[derive(Event, serde::Serialize, serde::Deserialize)] #[event(category = \"…\")]`"
)]
pub trait Event {
    /// The kind of stream: `[a-z][a-z0-9_.-]{0,63}`.
    const CATEGORY: &'static str;
    /// `[A-Za-z][A-Za-z0-9_.-]{0,63}`.
    const NAME: &'static str;
    /// Starts at 1.
    const VERSION: u32;
    /// The members of the JSON object.
    const FIELDS: &'static [Field];
}

/// What a field of a message holds, in JSON. A key is text or an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// One member of an event's JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its name in JSON.
    pub name: &'static str,
    /// What it holds.
    pub kind: FieldType,
    /// Whether every event of the type carries it.
    pub required: bool,
}

/// What a Rust type is in JSON. A type without this is taken for an object, as nested structs are: implement it for an
/// enum or a wrapper that serialises to something else, or say so at the field with `#[event(text)]`.
pub trait FieldKind {
    /// The type of a field that holds it.
    const KIND: FieldType;
}

macro_rules! kinds {
    ($($kind:ident: $($of:ty),+;)+) => { $($(impl FieldKind for $of { const KIND: FieldType = FieldType::$kind; })+)+ };
}

kinds! {
    Text: str, String, char;
    Integer: i8, i16, i32, i64, isize, u8, u16, u32, u64, usize;
    Number: f32, f64;
    Boolean: bool;
}

macro_rules! lists {
    ($([$($generics:tt)*] $of:ty;)+) => { $(impl<$($generics)*> FieldKind for $of { const KIND: FieldType = FieldType::List; })+ };
}

lists! {
    [T] [T];
    [T, const N: usize] [T; N];
    [T] Vec<T>;
    [T] VecDeque<T>;
    [T] BTreeSet<T>;
    [T, S] HashSet<T, S>;
    [A, B] (A, B);
    [A, B, C] (A, B, C);
    [A, B, C, D] (A, B, C, D);
}

macro_rules! same_as_inner {
    ($($of:ty),+) => { $(impl<T: FieldKind + ?Sized> FieldKind for $of { const KIND: FieldType = T::KIND; })+ };
}

same_as_inner!(&T, Box<T>, Rc<T>, Arc<T>);

impl<T: FieldKind> FieldKind for Option<T> {
    const KIND: FieldType = T::KIND;
}

impl<T: FieldKind + ToOwned + ?Sized> FieldKind for Cow<'_, T> {
    const KIND: FieldType = T::KIND;
}

impl<K, V> FieldKind for BTreeMap<K, V> {
    const KIND: FieldType = FieldType::Object;
}

impl<K, V, S> FieldKind for HashMap<K, V, S> {
    const KIND: FieldType = FieldType::Object;
}

/// Asks what `T` is. An inherent constant wins over a trait's, so `KindOf::<T>::KIND` is `T`'s own answer where
/// it has one, and [`Otherwise`]'s where not; likewise `REQUIRED`.
pub struct KindOf<T: ?Sized>(PhantomData<T>);

impl<T: FieldKind + ?Sized> KindOf<T> {
    /// What `T` says of itself.
    pub const KIND: FieldType = T::KIND;
}

impl<T> KindOf<Option<T>> {
    /// An option may be absent.
    pub const REQUIRED: bool = false;
}

/// The answers for a type that has none of its own.
pub trait Otherwise {
    /// A nested struct.
    const KIND: FieldType = FieldType::Object;
    /// Anything but an option.
    const REQUIRED: bool = true;
}

impl<T: ?Sized> Otherwise for KindOf<T> {}

/// Whether `name` is among `fields` and fit to be a key: the `#[handler]` macro asks at compile time.
pub const fn can_be_key(fields: &[Field], name: &str) -> bool {
    let mut at = 0;
    while at < fields.len() {
        let field = &fields[at];
        if same(field.name, name) {
            return field.required && matches!(field.kind, FieldType::Text | FieldType::Integer);
        }
        at += 1;
    }
    false
}

/// `==` of text, in constants.
const fn same(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}
