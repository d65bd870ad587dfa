//! The validated partition key. A key that got past `Key::parse` composes unambiguously into stream names: it has no
//! colon, no braces, and is no reserved word.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use unicode_normalization::is_nfc;

const KEY_MAX_BYTES: usize = 256;
const DLQ_WORD: &str = "dlq";

/// What a key must not be, beyond what no key may ever be. Part of the catalog, so that every host and publisher agrees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyRules {
    /// The word that names the backfill lane in a stream's name.
    pub backfill_word: String,
}

impl Default for KeyRules {
    fn default() -> Self {
        Self { backfill_word: "backfill".into() }
    }
}

/// A partition key: 1 to 256 bytes of NFC text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Key(Arc<str>);

/// Why a key was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The field is not there.
    #[error("the key is missing")]
    Missing,
    /// JSON null.
    #[error("the key is null")]
    Null,
    /// No bytes.
    #[error("the key is empty")]
    Empty,
    /// Over the limit.
    #[error("the key has {bytes} bytes; at most {KEY_MAX_BYTES} are allowed")]
    TooLong {
        /// Its size.
        bytes: usize,
    },
    /// `:`, `{`, `}` or a control character.
    #[error("the key {key:?} contains {character:?}, which names of streams reserve")]
    Reserved {
        /// The key.
        key: String,
        /// The first such character.
        character: char,
    },
    /// White space at an end.
    #[error("the key {0:?} begins or ends with white space")]
    Untrimmed(String),
    /// A lane word, or of the form `__…__`.
    #[error("the key {0:?} is a reserved word")]
    ReservedWord(String),
    /// Two spellings of one text would be two keys.
    #[error("the key {0:?} is not in Unicode normalization form C")]
    NotNfc(String),
    /// A float, boolean, list or object.
    #[error("the key is {0}; only text and integers can be keys")]
    WrongType(&'static str),
}

impl Key {
    /// The only way to make one from text.
    pub fn parse(text: &str, rules: &KeyRules) -> Result<Self, KeyError> {
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        if text.len() > KEY_MAX_BYTES {
            return Err(KeyError::TooLong { bytes: text.len() });
        }
        let reserved = |c: &char| c.is_control() || matches!(c, ':' | '{' | '}');
        if let Some(character) = text.chars().find(reserved) {
            return Err(KeyError::Reserved { key: text.into(), character });
        }
        if text.trim().len() != text.len() {
            return Err(KeyError::Untrimmed(text.into()));
        }
        let sentinel = text.len() >= 4 && text.starts_with("__") && text.ends_with("__");
        if sentinel || text == DLQ_WORD || text == rules.backfill_word {
            return Err(KeyError::ReservedWord(text.into()));
        }
        if !is_nfc(text) {
            return Err(KeyError::NotNfc(text.into()));
        }
        Ok(Self(text.into()))
    }

    /// The key that an event's field holds. Integers are written in decimal.
    pub fn from_json(value: Option<&Value>, rules: &KeyRules) -> Result<Self, KeyError> {
        match value {
            None => Err(KeyError::Missing),
            Some(Value::Null) => Err(KeyError::Null),
            Some(Value::String(text)) => Self::parse(text, rules),
            Some(Value::Number(number)) if number.is_i64() || number.is_u64() => {
                Self::parse(&number.to_string(), rules)
            }
            Some(Value::Number(_)) => Err(KeyError::WrongType("a number with a fraction or out of range")),
            Some(Value::Bool(_)) => Err(KeyError::WrongType("a boolean")),
            Some(Value::Array(_)) => Err(KeyError::WrongType("a list")),
            Some(Value::Object(_)) => Err(KeyError::WrongType("an object")),
        }
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn parse(text: &str) -> Result<Key, KeyError> {
        Key::parse(text, &KeyRules::default())
    }

    #[test]
    fn ordinary_identifiers_are_keys() {
        for text in ["client-123", "a b", "*", "é", "€", "_x_", "___", "DLQ", "N14228", "0"] {
            assert_eq!(parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn unsafe_keys_are_refused_by_kind() {
        assert_eq!(parse(""), Err(KeyError::Empty));
        assert!(matches!(parse("a:b"), Err(KeyError::Reserved { character: ':', .. })));
        assert!(matches!(parse("{a}"), Err(KeyError::Reserved { character: '{', .. })));
        assert!(matches!(parse("a\nb"), Err(KeyError::Reserved { character: '\n', .. })));
        assert!(matches!(parse("a\u{0}"), Err(KeyError::Reserved { .. })));
        assert!(matches!(parse(" a"), Err(KeyError::Untrimmed(_))));
        assert!(matches!(parse("a\u{a0}"), Err(KeyError::Untrimmed(_))));
        for word in ["dlq", "backfill", "__x__", "____", "__partitions__"] {
            assert_eq!(parse(word), Err(KeyError::ReservedWord(word.into())));
        }
        assert!(matches!(parse("e\u{301}"), Err(KeyError::NotNfc(_))));
        assert_eq!(parse(&"x".repeat(300)), Err(KeyError::TooLong { bytes: 300 }));
        assert!(parse(&"x".repeat(256)).is_ok());
    }

    #[test]
    fn only_text_and_integers_are_keys() {
        let from = |value: Value| Key::from_json(Some(&value), &KeyRules::default());
        assert_eq!(from(json!(7)).unwrap().as_str(), "7");
        assert_eq!(from(json!(-7)).unwrap().as_str(), "-7");
        assert_eq!(from(json!(u64::MAX)).unwrap().as_str(), "18446744073709551615");
        for value in [json!(1.5), json!(1.0), json!(true), json!([]), json!({})] {
            assert!(matches!(from(value), Err(KeyError::WrongType(_))));
        }
        assert_eq!(from(Value::Null), Err(KeyError::Null));
        assert_eq!(Key::from_json(None, &KeyRules::default()), Err(KeyError::Missing));
    }

    proptest! {
        #[test]
        fn a_key_composes_unambiguously(text in "\\PC{0,40}") {
            if let Ok(key) = parse(&text) {
                let stream = format!("order:{key}");
                prop_assert_eq!(stream.split(':').count(), 2);
                prop_assert_eq!(key.as_str(), text.as_str());
            }
        }
    }
}
