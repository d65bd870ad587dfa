//! What serde's own attributes say about the JSON object: names, and what may be absent.
//!
//! Only what changes the object's members is read; what would make them unknowable is refused.

use syn::meta::ParseNestedMeta;
use syn::{Attribute, LitStr, Result, Token};

/// Of a struct.
#[derive(Default)]
pub(crate) struct Container {
    pub(crate) rename_all: Option<Case>,
    /// `#[serde(default)]`: every field may be absent.
    pub(crate) default: bool,
}

/// Of a field.
#[derive(Default)]
pub(crate) struct Member {
    pub(crate) rename: Option<LitStr>,
    pub(crate) skip: bool,
    /// It may be absent.
    pub(crate) optional: bool,
}

impl Container {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut container = Self::default();
        each(attributes, |meta| {
            let word = word(&meta);
            match word.as_str() {
                "rename_all" => container.rename_all = Some(Case::read(&one_name(&meta, "rename_all")?)?),
                "default" => {
                    container.default = true;
                    ignore(&meta)?;
                }
                "transparent" | "tag" | "untagged" | "from" | "try_from" | "into" => {
                    return Err(meta.error(format!(
                        "serde's `{word}` changes the object, so its fields are not known; use a plain struct"
                    )));
                }
                _ => ignore(&meta)?,
            }
            Ok(())
        })?;
        Ok(container)
    }
}

impl Member {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut member = Self::default();
        each(attributes, |meta| {
            match word(&meta).as_str() {
                "rename" => member.rename = Some(one_name(&meta, "rename")?),
                "skip" => member.skip = true,
                "default" | "skip_serializing_if" | "skip_serializing" => {
                    member.optional = true;
                    ignore(&meta)?;
                }
                "flatten" => {
                    return Err(meta.error("serde's `flatten` hides fields from the message type; list them here"));
                }
                _ => ignore(&meta)?,
            }
            Ok(())
        })?;
        Ok(member)
    }
}

fn each(attributes: &[Attribute], mut read: impl FnMut(ParseNestedMeta<'_>) -> Result<()>) -> Result<()> {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        attribute.parse_nested_meta(&mut read)?;
    }
    Ok(())
}

fn word(meta: &ParseNestedMeta<'_>) -> String {
    meta.path.get_ident().map(ToString::to_string).unwrap_or_default()
}

/// `word = "name"`, or `word(serialize = "name", deserialize = "name")` with equal names.
fn one_name(meta: &ParseNestedMeta<'_>, word: &str) -> Result<LitStr> {
    if meta.input.peek(Token![=]) {
        return meta.value()?.parse();
    }
    let mut names: Vec<LitStr> = Vec::new();
    meta.parse_nested_meta(|side| {
        names.push(side.value()?.parse()?);
        Ok(())
    })?;
    match names.as_slice() {
        [one, other] if one.value() == other.value() => Ok(one.clone()),
        _ => Err(meta.error(format!("`{word}` must give one name for both directions: a field has one name in JSON"))),
    }
}

/// Steps over `= value` or `(…)`.
fn ignore(meta: &ParseNestedMeta<'_>) -> Result<()> {
    if meta.input.peek(Token![=]) {
        meta.value()?.parse::<syn::Expr>()?;
    } else if meta.input.peek(syn::token::Paren) {
        let content;
        syn::parenthesized!(content in meta.input);
        content.parse::<proc_macro2::TokenStream>()?;
    }
    Ok(())
}

/// serde's `rename_all`, for fields, which are written in snake case.
#[derive(Clone, Copy)]
pub(crate) enum Case {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

impl Case {
    fn read(name: &LitStr) -> Result<Self> {
        Ok(match name.value().as_str() {
            "lowercase" => Self::Lower,
            "UPPERCASE" => Self::Upper,
            "PascalCase" => Self::Pascal,
            "camelCase" => Self::Camel,
            "snake_case" => Self::Snake,
            "SCREAMING_SNAKE_CASE" => Self::ScreamingSnake,
            "kebab-case" => Self::Kebab,
            "SCREAMING-KEBAB-CASE" => Self::ScreamingKebab,
            other => return Err(syn::Error::new(name.span(), format!("{other:?} is not a case that serde knows"))),
        })
    }

    /// As serde's `RenameRule::apply_to_field`.
    pub(crate) fn apply(self, field: &str) -> String {
        match self {
            Self::Lower | Self::Snake => field.to_owned(),
            Self::Upper | Self::ScreamingSnake => field.to_ascii_uppercase(),
            Self::Pascal => pascal(field),
            Self::Camel => {
                let pascal = pascal(field);
                pascal.get(..1).map_or_else(String::new, |first| first.to_ascii_lowercase() + &pascal[1..])
            }
            Self::Kebab => field.replace('_', "-"),
            Self::ScreamingKebab => field.to_ascii_uppercase().replace('_', "-"),
        }
    }
}

fn pascal(field: &str) -> String {
    let mut upper = true;
    let mut pascal = String::new();
    for c in field.chars() {
        if c == '_' {
            upper = true;
        } else {
            pascal.push(if upper { c.to_ascii_uppercase() } else { c });
            upper = false;
        }
    }
    pascal
}

#[cfg(test)]
mod tests {
    use super::Case;

    #[test]
    fn cases_are_serdes() {
        let cases = [
            (Case::Lower, "tail_number"),
            (Case::Upper, "TAIL_NUMBER"),
            (Case::Pascal, "TailNumber"),
            (Case::Camel, "tailNumber"),
            (Case::Snake, "tail_number"),
            (Case::ScreamingSnake, "TAIL_NUMBER"),
            (Case::Kebab, "tail-number"),
            (Case::ScreamingKebab, "TAIL-NUMBER"),
        ];
        for (case, expected) in cases {
            assert_eq!(case.apply("tail_number"), expected);
        }
    }
}
