//! `export!`: makes a handler the component's export.

/// Makes a handler the component's export; nothing on targets other than wasm32. Once per crate.
///
/// `export!(Billing);` for a struct without fields, `export!(Billing, Billing::new());` otherwise: the value is made at
/// the instance's first event. It lives as long as the instance, which serves one key and is dropped without notice.
#[macro_export]
macro_rules! export {
    ($handler:ident) => {
        $crate::export!($handler, $handler);
    };
    ($handler:ty, $value:expr) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::__private::component::{self, bindings};

            struct Component;

            ::std::thread_local! {
                static HANDLER: $handler = $value;
            }

            impl bindings::exports::keyrail::handler::guest::Guest for Component {
                fn describe() -> bindings::exports::keyrail::handler::guest::Metadata {
                    component::describe::<$handler>()
                }

                fn handle(
                    event: bindings::exports::keyrail::handler::guest::Event,
                ) -> bindings::exports::keyrail::handler::guest::Disposition {
                    HANDLER.with(|handler| component::handle(handler, event))
                }
            }

    bindings::export_component!(Component with_types_in bindings);
        };
    };
}
