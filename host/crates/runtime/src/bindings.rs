//! What `wit/keyrail.wit` looks like from the host. Generated; nothing outside this crate sees it.

#![allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]

wasmtime::component::bindgen!({
    path: "../../../wit",
    world: "handler",
    imports: {
        "keyrail:handler/state.get": async | trappable,
        default: trappable,
    },
    exports: { default: async },
    // An event goes from where it is into the guest's memory.
    ownership: Borrowing { duplicate_if_necessary: true },
});
