//! Just enough of RFC 3339 for these events: UTC, whole seconds.

/// Seconds since 1970 of `2013-01-01T10:17:00Z`.
pub(crate) fn unix_seconds(text: &str) -> Option<i64> {
    let bytes: &[u8; 20] = text.as_bytes().try_into().ok()?;
    for (at, separator) in [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'Z')] {
        if bytes[at] != separator {
            return None;
        }
    }
    let number = |from: usize, to: usize| {
        bytes[from..to]
            .iter()
            .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0')))
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
    fits.then(|| days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Days since 1970-01-01 in the Gregorian calendar. Howard Hinnant, "chrono-compatible low-level date algorithms";
/// years before 0 cannot be written here.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::unix_seconds;

    #[test]
    fn times_parse() {
        let times = [
            ("1970-01-01T00:00:00Z", 0),
            ("2013-01-01T10:17:00Z", 1_357_035_420),
            ("2013-03-01T00:00:00Z", 1_362_096_000),
            ("2012-02-29T23:59:59Z", 1_330_559_999),
        ];
        for (text, seconds) in times {
            assert_eq!(unix_seconds(text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "",
            "2013-01-01",
            "2013-01-01T10:17:00",
            "2013-01-01 10:17:00Z",
            "2013-13-01T10:17:00Z",
            "2013-01-01T1a:17:00Z",
        ] {
            assert_eq!(unix_seconds(text), None, "{text}");
        }
    }
}
