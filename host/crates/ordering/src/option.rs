//! Options that a handler declares about itself.

/// An option whose value is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("option {name} is {value:?}; it must be a number from {min} to {max}")]
pub struct OptionError {
    name: String,
    value: String,
    min: u64,
    max: u64,
}

pub(crate) fn number(name: &str, value: &str, min: u64, max: u64) -> Result<u64, OptionError> {
    match value.parse() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        _ => Err(OptionError { name: name.into(), value: value.into(), min, max }),
    }
}
