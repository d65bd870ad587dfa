//! `#[handler]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Error, FnArg, Ident, ImplItem, ItemImpl, LitStr, Path, Result, Token, Type, parenthesized};

use crate::names;

const FORM: &str = "a handler's method is `fn order_placed(&self, event: OrderPlaced, ctx: &mut Context) -> Result<()>`; \
                    move helpers to an `impl` block of their own";

/// What stands in `#[handler(…)]`.
pub(crate) struct Arguments {
    name: LitStr,
    version: Option<LitStr>,
    role: Role,
    order: Order,
    options: Vec<(LitStr, LitStr)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    EventHandler,
    CommandHandler,
    ProcessManager,
}

enum Order {
    Unordered,
    Field(LitStr),
    /// One field for all types.
    CorrelateBy(LitStr),
    Correlate(Vec<(Path, LitStr)>),
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let start = input.span();
        let (mut name, mut version, mut role, mut order, mut options) = (None, None, None, None, Vec::new());
        let set_order = |word: &Ident, order: &mut Option<Order>, new: Order| match order.replace(new) {
            None => Ok(()),
            Some(_) => Err(Error::new(word.span(), "one of `sequential_by`, `correlate_by` and `correlate`")),
        };
        while !input.is_empty() {
            let word: Ident = input.parse()?;
            match word.to_string().as_str() {
                "name" => name = Some(value(input)?),
                "version" => version = Some(value(input)?),
                "role" => role = Some(Role::read(&value(input)?)?),
                "sequential_by" => set_order(&word, &mut order, Order::Field(value(input)?))?,
                "correlate_by" => set_order(&word, &mut order, Order::CorrelateBy(value(input)?))?,
                "correlate" => set_order(&word, &mut order, Order::Correlate(pairs::<Path>(input)?))?,
                "options" => options = pairs::<LitStr>(input)?,
                _ => {
                    return Err(Error::new(
                        word.span(),
                        "a handler has `name`, `version`, `role`, `sequential_by`, `correlate_by`, `correlate` and `options`",
                    ));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        let name = name.ok_or_else(|| Error::new(start, "say the handler's name: `#[handler(name = \"billing\")]`"))?;
        names::check_group(&name)?;
        let order = order.unwrap_or(Order::Unordered);
        let correlates = matches!(order, Order::CorrelateBy(_) | Order::Correlate(_));
        let role = role.unwrap_or(if correlates { Role::ProcessManager } else { Role::EventHandler });
        if correlates != (role == Role::ProcessManager) {
            return Err(Error::new(
                name.span(),
                "a process manager correlates, and only it: `correlate_by = \"order_id\"`, or `correlate(OrderPlaced = \"order_id\")`",
            ));
        }
        Ok(Self { name, version, role, order, options })
    }
}

impl Role {
    fn read(name: &LitStr) -> Result<Self> {
        match name.value().as_str() {
            "event-handler" => Ok(Self::EventHandler),
            "command-handler" => Ok(Self::CommandHandler),
            "process-manager" => Ok(Self::ProcessManager),
            _ => Err(Error::new(name.span(), "a role is `event-handler`, `command-handler` or `process-manager`")),
        }
    }
}

fn value(input: ParseStream<'_>) -> Result<LitStr> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// `(left = "right", …)`.
fn pairs<L: Parse>(input: ParseStream<'_>) -> Result<Vec<(L, LitStr)>> {
    let content;
    parenthesized!(content in input);
    let pairs = Punctuated::<_, Token![,]>::parse_terminated_with(&content, |pair| Ok((pair.parse()?, value(pair)?)))?;
    Ok(pairs.into_iter().collect())
}

/// A method and the type that it handles.
struct Method {
    name: Ident,
    event: Type,
}

pub(crate) fn expand(arguments: &Arguments, block: ItemImpl) -> Result<TokenStream> {
    if let Some((_, of, _)) = &block.trait_ {
        return Err(Error::new(of.span(), "`#[handler]` stands at a plain `impl` block, not at a trait's"));
    }
    let methods = block.items.iter().map(method_of).collect::<Result<Vec<_>>>()?;
    if methods.is_empty() {
        return Err(Error::new(block.self_ty.span(), format!("it handles nothing: {FORM}")));
    }
    check_distinct(&methods)?;

    let handler = &block.self_ty;
    let (impl_generics, _, where_clause) = block.generics.split_for_impl();
    let metadata = metadata(arguments, &methods)?;
    let checks = key_checks(arguments, &methods)?;
    let calls = methods.iter().map(|Method { name, event }| {
        quote_spanned! {event.span()=>
            if ctx.event().is::<#event>() {
                let event = ctx.parse::<#event>()?;
                return self.#name(event, ctx);
            }
        }
    });
    Ok(quote! {
        // The form of the methods is ours, not the author's choice.
        #[allow(clippy::needless_pass_by_value, clippy::unnecessary_wraps, clippy::unused_self)]
        #block

        impl #impl_generics ::keyrail_guest::Handler for #handler #where_clause {
            fn metadata() -> ::keyrail_guest::Metadata {
                #metadata
            }

            fn handle(&self, ctx: &mut ::keyrail_guest::Context) -> ::keyrail_guest::Result<()> {
                #(#calls)*
                ::core::result::Result::Err(ctx.unhandled())
            }
        }

        #checks
    })
}

fn method_of(item: &ImplItem) -> Result<Method> {
    let ImplItem::Fn(method) = item else { return Err(Error::new(item.span(), FORM)) };
    let signature = &method.sig;
    let mut inputs = signature.inputs.iter();
    let (Some(FnArg::Receiver(receiver)), Some(FnArg::Typed(event)), Some(FnArg::Typed(ctx)), None) =
        (inputs.next(), inputs.next(), inputs.next(), inputs.next())
    else {
        return Err(Error::new(signature.span(), FORM));
    };
    let shared = receiver.reference.is_some() && receiver.mutability.is_none() && receiver.colon_token.is_none();
    let context = matches!(&*ctx.ty, Type::Reference(reference) if reference.mutability.is_some());
    if !shared || !context || signature.asyncness.is_some() {
        return Err(Error::new(signature.span(), FORM));
    }
    Ok(Method { name: signature.ident.clone(), event: (*event.ty).clone() })
}

fn check_distinct(methods: &[Method]) -> Result<()> {
    for (at, method) in methods.iter().enumerate() {
        if let Some(first) = methods[..at].iter().find(|earlier| same(&earlier.event, &method.event)) {
            let what = method.event.to_token_stream();
            return Err(Error::new(method.event.span(), format!("`{}` handles {what} already", first.name)));
        }
    }
    Ok(())
}

/// Whether two types are written alike.
fn same(left: &impl ToTokens, right: &impl ToTokens) -> bool {
    left.to_token_stream().to_string() == right.to_token_stream().to_string()
}

fn metadata(arguments: &Arguments, methods: &[Method]) -> Result<TokenStream> {
    let name = &arguments.name;
    let version = arguments.version.as_ref().map_or_else(|| quote!(::core::env!("CARGO_PKG_VERSION")), |v| quote!(#v));
    let new = match arguments.role {
        Role::EventHandler => quote!(event_handler),
        Role::CommandHandler => quote!(command_handler),
        Role::ProcessManager => quote!(process_manager),
    };
    let handles = methods.iter().map(|Method { event, .. }| quote_spanned!(event.span()=> .handles::<#event>()));
    let order = match &arguments.order {
        Order::Unordered => TokenStream::new(),
        Order::Field(field) => quote!(.sequential_by(#field)),
        _ => {
            let all = correlations(arguments, methods)?;
            all.iter().map(|(event, field)| quote!(.correlates::<#event>(#field))).collect()
        }
    };
    let options = arguments.options.iter().map(|(name, value)| quote!(.option(#name, #value)));
    Ok(quote!(::keyrail_guest::Metadata::#new(#name, #version) #(#handles)* #order #(#options)*))
}

/// Type and correlation field of each method.
fn correlations<'a>(arguments: &'a Arguments, methods: &'a [Method]) -> Result<Vec<(&'a Type, &'a LitStr)>> {
    let list = match &arguments.order {
        Order::CorrelateBy(field) => return Ok(methods.iter().map(|method| (&method.event, field)).collect()),
        Order::Correlate(list) => list,
        _ => return Ok(Vec::new()),
    };
    let names = |path: &Path, of: &Type| same(path, of);
    if let Some((path, _)) = list.iter().find(|(path, _)| !methods.iter().any(|method| names(path, &method.event))) {
        return Err(Error::new(path.span(), format!("no method handles {}", path.to_token_stream())));
    }
    methods
        .iter()
        .map(|Method { event, .. }| {
            let found = list.iter().find(|(path, _)| names(path, event)).map(|(_, field)| (event, field));
            let what = event.to_token_stream();
            found.ok_or_else(|| Error::new(event.span(), format!("`correlate` does not say the field of {what}")))
        })
        .collect()
}

/// Compile errors for what the host would refuse at load: a key field that a type lacks or may lack.
fn key_checks(arguments: &Arguments, methods: &[Method]) -> Result<TokenStream> {
    let (keys, what) = match &arguments.order {
        Order::Field(field) => (methods.iter().map(|method| (&method.event, field)).collect(), "is sequential"),
        _ => (correlations(arguments, methods)?, "correlates"),
    };
    let checks = keys.into_iter().map(|(event, field)| {
        let problem = format!(
            "{} has no required text or integer field `{}`, by which the handler {what}",
            event.to_token_stream(),
            field.value(),
        );
        quote_spanned! {event.span()=>
            const _: () = if !::keyrail_guest::__private::can_be_key(<#event as ::keyrail_guest::Event>::FIELDS, #field) {
                ::core::panic!(#problem);
            };
        }
    });
    Ok(checks.collect())
}
