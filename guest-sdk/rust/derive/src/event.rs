//! `#[derive(Event)]`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, GenericParam, LitInt, LitStr, Result};

use crate::names;
use crate::serde_attributes::{Container, Member};

const KINDS: [(&str, &str); 8] = [
    ("text", "Text"),
    ("integer", "Integer"),
    ("number", "Number"),
    ("boolean", "Boolean"),
    ("timestamp", "Timestamp"),
    ("list", "List"),
    ("object", "Object"),
    ("binary", "Binary"),
];

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let fields = named_fields(input)?;
    let declared = Declared::read(input)?;
    let container = Container::read(&input.attrs)?;
    let fields = fields.filter_map(|field| field_of(field, &container).transpose()).collect::<Result<Vec<_>>>()?;

    let Declared { category, name, version } = declared;
    let event = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        const _: () = {
            #[allow(unused_imports)]
            use ::keyrail_guest::__private::Otherwise as _;

            impl #impl_generics ::keyrail_guest::Event for #event #type_generics #where_clause {
                const CATEGORY: &'static str = #category;
                const NAME: &'static str = #name;
                const VERSION: u32 = #version;
                const FIELDS: &'static [::keyrail_guest::Field] = &[#(#fields),*];
            }
        };
    })
}

fn named_fields(input: &DeriveInput) -> Result<impl Iterator<Item = &syn::Field>> {
    if let Some(parameter) = input.generics.params.iter().find(|one| !matches!(one, GenericParam::Lifetime(_))) {
        return Err(Error::new(parameter.span(), "an event has one list of fields, so it cannot be generic"));
    }
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(fields.named.iter()),
            _ => {
                Err(Error::new(input.ident.span(), "an event is a JSON object: give the struct named fields, or `{}`"))
            }
        },
        _ => Err(Error::new(input.ident.span(), "an event is a struct with named fields, one struct for each type")),
    }
}

/// `#[event(…)]` of the struct.
struct Declared {
    category: LitStr,
    name: LitStr,
    version: LitInt,
}

impl Declared {
    fn read(input: &DeriveInput) -> Result<Self> {
        let (mut category, mut name, mut version) = (None, None, None);
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("event")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("category") {
                    category = Some(meta.value()?.parse::<LitStr>()?);
                } else if meta.path.is_ident("name") {
                    name = Some(meta.value()?.parse::<LitStr>()?);
                } else if meta.path.is_ident("version") {
                    version = Some(meta.value()?.parse::<LitInt>()?);
                } else {
                    return Err(meta.error("an event has `category`, `name` and `version`"));
                }
                Ok(())
            })?;
        }
        let span = input.ident.span();
        let category =
            category.ok_or_else(|| Error::new(span, "say which category: `#[event(category = \"order\")]`"))?;
        let name = name.unwrap_or_else(|| LitStr::new(&input.ident.unraw().to_string(), span));
        let version = version.unwrap_or_else(|| LitInt::new("1", span));
        names::check_group(&category)?;
        names::check_message(&name)?;
        version.base10_parse::<u32>()?;
        Ok(Self { category, name, version })
    }
}

/// One `Field { … }`; nothing for a field that serde skips.
fn field_of(field: &syn::Field, container: &Container) -> Result<Option<TokenStream>> {
    let member = Member::read(&field.attrs)?;
    if member.skip {
        return Ok(None);
    }
    let rust_name = field.ident.as_ref().map(|name| name.unraw().to_string()).unwrap_or_default();
    let name = match (&member.rename, container.rename_all) {
        (Some(name), _) => name.value(),
        (None, Some(case)) => case.apply(&rust_name),
        (None, None) => rust_name,
    };
    let of = &field.ty;
    let span = of.span();
    let kind = declared_kind(field)?.map_or_else(
        || quote_spanned!(span=> ::keyrail_guest::__private::KindOf::<#of>::KIND),
        |kind| quote_spanned!(span=> ::keyrail_guest::FieldType::#kind),
    );
    let required = if member.optional || container.default {
        quote!(false)
    } else {
        quote_spanned!(span=> ::keyrail_guest::__private::KindOf::<#of>::REQUIRED)
    };
    Ok(Some(quote!(::keyrail_guest::Field { name: #name, kind: #kind, required: #required })))
}

/// `#[event(timestamp)]` and its like.
fn declared_kind(field: &syn::Field) -> Result<Option<Ident>> {
    let mut kind = None;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("event")) {
        attribute.parse_nested_meta(|meta| {
            let Some((_, variant)) = KINDS.iter().find(|(word, _)| meta.path.is_ident(word)) else {
                let words: Vec<_> = KINDS.iter().map(|(word, _)| *word).collect();
                return Err(meta.error(format!("a field is one of {}", words.join(", "))));
            };
            kind = Some(format_ident!("{variant}"));
            Ok(())
        })?;
    }
    Ok(kind)
}
