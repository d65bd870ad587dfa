//! Names of categories, groups and message types. Parsed once, at the edge; trusted everywhere else.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const NAME_MAX_BYTES: usize = 64;

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} name {name:?} is not of the form {form}")]
pub struct NameError {
    what: &'static str,
    name: String,
    form: &'static str,
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $form:literal, $first:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(Arc<str>);

        impl $type {
            /// The only way to make one.
            pub fn parse(name: &str) -> Result<Self, NameError> {
                let first: fn(u8) -> bool = $first;
                let bytes = name.as_bytes();
                let rest = |b: &u8| first(*b) || b.is_ascii_digit() || matches!(b, b'_' | b'.' | b'-');
                let valid = bytes.len() <= NAME_MAX_BYTES
                    && bytes.first().is_some_and(|b| first(*b))
                    && bytes.iter().skip(1).all(rest);
                if valid {
                    Ok(Self(name.into()))
                } else {
                    Err(NameError { what: $what, name: shortened(name), form: $form })
                }
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $type {
            type Error = NameError;
            fn try_from(name: String) -> Result<Self, NameError> {
                Self::parse(&name)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.0.as_ref().into()
            }
        }

        impl std::str::FromStr for $type {
            type Err = NameError;
            fn from_str(name: &str) -> Result<Self, NameError> {
                Self::parse(name)
            }
        }
    };
}

name!(
    /// A kind of stream, for example `order`.
    CategoryName, "category", "[a-z][a-z0-9_.-]{0,63}", |b| b.is_ascii_lowercase()
);
name!(
    /// A handler's consumer group: the handler's name.
    GroupName, "handler", "[a-z][a-z0-9_.-]{0,63}", |b| b.is_ascii_lowercase()
);
name!(
    /// A type of event or command, for example `OrderPlaced`.
    MessageName, "message type", "[A-Za-z][A-Za-z0-9_.-]{0,63}", |b| b.is_ascii_alphabetic()
);

fn shortened(name: &str) -> String {
    name.chars().take(NAME_MAX_BYTES + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_form_are_accepted() {
        for name in ["order", "a", "order-line.v2", "a_1"] {
            assert_eq!(CategoryName::parse(name).unwrap().as_str(), name);
        }
        assert!(MessageName::parse("OrderPlaced").is_ok());
    }

    #[test]
    fn other_names_are_refused_with_the_form() {
        let long = "a".repeat(65);
        for name in ["", "Order", "1a", "a:b", "a b", "__pm__", "ä", long.as_str()] {
            let error = CategoryName::parse(name).unwrap_err().to_string();
            assert!(error.contains("[a-z][a-z0-9_.-]{0,63}"), "{error}");
        }
        assert!(MessageName::parse("1Placed").is_err());
    }
}
