//! The tokens of an HTTP API: who may do what.
//!
//! A file holds the SHA-256 of each token, never the token: whoever reads the file cannot use it. Tokens are long and random
//! ([`new_token`]), so a plain hash is enough. A token that is presented is compared with every entry in constant time.

use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::{ConditionallySelectable, ConstantTimeEq};

use crate::clock;
use crate::hash::sha256_hex;

/// What tokens of ours begin with, so that scanners for secrets can find one that leaked.
const PREFIX: &str = "keyrail_";
const RANDOM_BYTES: usize = 32;
const NAME_MAX_BYTES: usize = 64;

/// What a caller may do. Each is its own: `operate` does not include `read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Publish events.
    Publish,
    /// Look at everything: keys, payloads and state too.
    Read,
    /// Decide on halted events, dead letters and pauses.
    Operate,
    /// Register, deploy and undeploy handlers.
    Deploy,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Publish, Self::Read, Self::Operate, Self::Deploy];

    /// As it is written in the file of tokens.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Deploy => "deploy",
        }
    }
}

impl FromStr for Role {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|role| role.as_str() == text);
        known.ok_or_else(|| format!("{text:?} is no role; give publish, read, operate or deploy"))
    }
}

/// One entry of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenEntry {
    /// Who has it; what `keyrail audit` shows.
    pub name: String,
    /// What it is good for.
    pub roles: Vec<Role>,
    /// SHA-256 of the token, in hex.
    pub sha256: String,
    /// From when on it is refused, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokensFile {
    #[serde(default, rename = "token")]
    tokens: Vec<TokenEntry>,
}

/// Tokens that were read and checked.
#[derive(Debug, Default)]
pub struct Tokens(Vec<Known>);

#[derive(Debug)]
struct Known {
    digest: [u8; 32],
    holder: Arc<Holder>,
}

/// Who presented a token.
#[derive(Debug, PartialEq, Eq)]
pub struct Holder {
    /// The name.
    pub name: String,
    /// What it may do.
    pub roles: Vec<Role>,
    expires: Option<Timestamp>,
}

/// Why a file of tokens is not accepted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct TokensError(String);

impl Tokens {
    /// Reads the text of a file. Every entry must be right: a file with a mistake must not lock out half of its users.
    pub fn parse(text: &str) -> Result<Self, TokensError> {
        let file: TokensFile = toml::from_str(text).map_err(|error| TokensError(error.message().to_string()))?;
        let mut known: Vec<Known> = vec![];
        for TokenEntry { name, roles, sha256, expires } in file.tokens {
            let wrong = |what: &str| TokensError(format!("token {name:?}: {what}"));
            if name.is_empty() || name.len() > NAME_MAX_BYTES || name.chars().any(char::is_control) {
                return Err(wrong("the name must have 1 to 64 bytes and no control characters"));
            }
            if known.iter().any(|other| other.holder.name == name) {
                return Err(wrong("there are two of that name; give another, or take the old entry out"));
            }
            if roles.is_empty() {
                return Err(wrong("it has no roles; give some of publish, read, operate, deploy"));
            }
            let digest = from_hex(&sha256).ok_or_else(|| wrong("sha256 must be 64 hexadecimal digits"))?;
            known.push(Known { digest, holder: Arc::new(Holder { name, roles, expires }) });
        }
        if known.is_empty() {
            return Err(TokensError("there is no [[token]] in it; make one with keyrail token".into()));
        }
        Ok(Self(known))
    }

    /// Whose this token is. None for one that is unknown or has expired.
    pub fn holder(&self, token: &str) -> Option<&Arc<Holder>> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        // Goes through all of them, whatever it finds.
        let mut found = u64::MAX;
        for (index, known) in self.0.iter().enumerate() {
            found.conditional_assign(&(index as u64), known.digest.ct_eq(&digest));
        }
        let holder = &self.0.get(usize::try_from(found).ok()?)?.holder;
        let now = Timestamp::from_millisecond(clock::wall_ms().cast_signed()).ok()?;
        holder.expires.is_none_or(|expires| now < expires).then_some(holder)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never, for one that was parsed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A new token, and its entry for the file.
pub fn new_token(name: &str, roles: Vec<Role>, expires: Option<Timestamp>) -> (String, TokenEntry) {
    let token = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(clock::secret::<RANDOM_BYTES>()));
    let sha256 = sha256_hex(token.as_bytes());
    (token, TokenEntry { name: name.into(), roles, sha256, expires })
}

/// The entry as it stands in a file.
pub fn entry_text(entry: &TokenEntry) -> String {
    let file = TokensFile { tokens: vec![entry.clone()] };
    // Our own struct of texts always serializes.
    toml::to_string(&file).unwrap_or_default()
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn entry(name: &str) -> (String, String) {
        let (token, entry) = new_token(name, vec![Role::Publish, Role::Read], None);
        (token, entry_text(&entry))
    }

    #[test]
    fn a_token_is_known_by_its_hash_alone() {
        let (shop, first) = entry("shop");
        let (night, second) = entry("night");
        let text = format!("{first}{second}");
        assert!(!text.contains(&shop) && shop.len() > 40);
        let tokens = Tokens::parse(&text).unwrap();
        assert_eq!(tokens.holder(&shop).unwrap().name, "shop");
        assert_eq!(tokens.holder(&night).unwrap().roles, [Role::Publish, Role::Read]);
        for wrong in ["", "keyrail_", &shop[1..], &format!("{shop} "), &format!("{shop}\0")] {
            assert_eq!(tokens.holder(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_expired_token_is_none() {
        let at = |ms: i64| Some(Timestamp::from_millisecond(clock::wall_ms().cast_signed() + ms).unwrap());
        for (expires, good) in [(at(3_600_000), true), (at(-1_000), false)] {
            let (token, entry) = new_token("x", vec![Role::Read], expires);
            let tokens = Tokens::parse(&entry_text(&entry)).unwrap();
            assert_eq!(tokens.holder(&token).is_some(), good);
        }
    }

    #[test]
    fn a_file_with_a_mistake_is_refused_whole() {
        let (_, good) = entry("a");
        for (text, what) in [
            (String::new(), "there is no [[token]]"),
            (good.replace("publish", "root"), "root"),
            (good.replace("\"publish\", \"read\"", ""), "no roles"),
            (good.replace("sha256 = \"", "sha256 = \"g"), "64 hexadecimal"),
            (format!("{good}{good}"), "two of that name"),
            (good.replace("name = \"a\"", "name = \"\""), "1 to 64 bytes"),
            (good.replace("name", "nmae"), "nmae"),
            (format!("{good}x = "), ""),
        ] {
            let error = Tokens::parse(&text).unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
