//! `--canary`: keys, or a share.

use std::collections::BTreeSet;

use anyhow::Result;
use keyrail_ordering::Selection;

use super::super::failure::Usage;

pub(super) fn selection(given: &[String]) -> Result<Option<Selection>> {
    let shares: Vec<_> = given.iter().filter_map(|text| text.strip_suffix('%')).collect();
    match (given, shares.as_slice()) {
        ([], _) => Ok(None),
        (_, []) => Ok(Some(Selection::Keys(given.iter().cloned().collect::<BTreeSet<_>>()))),
        ([_], [share]) => match share.trim().parse::<u8>() {
            Ok(percent @ 1..=99) => Ok(Some(Selection::Percent(percent))),
            _ => Err(Usage(format!("--canary {share}% is no share; give a whole number from 1 to 99")).into()),
        },
        _ => Err(Usage("--canary takes keys, or one share such as 5%, not both".into()).into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(given: &[&str]) -> Result<Option<Selection>> {
        selection(&given.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn a_canary_is_keys_or_one_share() {
        assert_eq!(of(&[]).unwrap(), None);
        assert_eq!(of(&["5%"]).unwrap(), Some(Selection::Percent(5)));
        assert_eq!(of(&["b", "a"]).unwrap().unwrap().to_string(), "a, b");
        for wrong in [&["0%"][..], &["100%"], &["x%"], &["5%", "a"], &["5%", "6%"]] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }
}
