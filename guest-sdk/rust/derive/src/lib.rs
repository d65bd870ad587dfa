//! The macros of `keyrail-guest`, which re-exports them; use that crate.
//!
//! They only write down what the author's types and signatures say. What a Rust type is in JSON is decided in
//! `keyrail_guest::FieldKind`, after name resolution.

use proc_macro::TokenStream;

mod event;
mod handler;
mod names;
mod serde_attributes;

/// Makes a serde struct a message type: see `keyrail_guest::Event`.
#[proc_macro_derive(Event, attributes(event, serde))]
pub fn derive_event(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    event::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes an `impl` block a handler: each method handles the type of its first argument.
///
/// ```text
/// #[handler(name = "billing", sequential_by = "order_id")]
/// impl Billing {
///     fn order_placed(&self, event: OrderPlaced, ctx: &mut Context) -> Result<()> { … }
/// }
/// ```
///
/// - `name` is the consumer group; needed. `version` is the crate's unless given.
/// - `sequential_by = "field"`: events with an equal value run one at a time, in publish order. Checked at compile time
///   against every handled type.
/// - `role = "event-handler"` (the default), `"command-handler"` or `"process-manager"`.
/// - `correlate(OrderPlaced = "order_id", PaymentTaken = "order")`, or `correlate_by = "order_id"` for all types: makes it a
///   process manager.
/// - `options("name" = "value")`.
///
/// Helpers belong into an `impl` block of their own.
#[proc_macro_attribute]
pub fn handler(arguments: TokenStream, block: TokenStream) -> TokenStream {
    let arguments = syn::parse_macro_input!(arguments as handler::Arguments);
    let block = syn::parse_macro_input!(block as syn::ItemImpl);
    handler::expand(&arguments, block).unwrap_or_else(syn::Error::into_compile_error).into()
}
