//! The forms of names, checked where they are written: the host would refuse them at load.

use syn::{Error, LitStr, Result};

const NAME_MAX_BYTES: usize = 64;

/// `[a-z][a-z0-9_.-]{0,63}`: categories and handlers.
pub(crate) fn check_group(name: &LitStr) -> Result<()> {
    check(name, |first| first.is_ascii_lowercase(), |other| other.is_ascii_lowercase(), "[a-z][a-z0-9_.-]{0,63}")
}

/// `[A-Za-z][A-Za-z0-9_.-]{0,63}`: message types.
pub(crate) fn check_message(name: &LitStr) -> Result<()> {
    check(
        name,
        |first| first.is_ascii_alphabetic(),
        |other| other.is_ascii_alphabetic(),
        "[A-Za-z][A-Za-z0-9_.-]{0,63}",
    )
}

fn check(name: &LitStr, first: impl Fn(char) -> bool, letter: impl Fn(char) -> bool, form: &str) -> Result<()> {
    let value = name.value();
    let fits = value.len() <= NAME_MAX_BYTES
        && value.starts_with(first)
        && value.chars().all(|c| letter(c) || c.is_ascii_digit() || matches!(c, '_' | '.' | '-'));
    if fits { Ok(()) } else { Err(Error::new(name.span(), format!("{value:?} is not of the form {form}"))) }
}
