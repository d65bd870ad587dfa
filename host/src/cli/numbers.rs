//! Numbers as people read them.

/// `52796` as `52,796`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 event`, `2,000 events`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Milliseconds as seconds, and what that makes a second.
pub(crate) fn seconds_and_rate(number: u64, took_ms: u64) -> String {
    let seconds = took_ms as f64 / 1_000.0;
    if number < 100 || took_ms == 0 {
        return format!("{seconds:.1} s");
    }
    format!("{seconds:.1} s ({} a second)", grouped((number as f64 / seconds) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let shown = [0, 999, 1_000, 52_796, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "52,796", "1,234,567"]);
        assert_eq!((count(1, "event"), count(2, "event")), ("1 event".into(), "2 events".into()));
        assert_eq!(seconds_and_rate(2_000, 500), "0.5 s (4,000 a second)");
    }
}
