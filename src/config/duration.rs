//! Lengths of time as people write them: `90m`, `1h30m`, `5s`, `250ms`.

use std::fmt::Write;
use std::time::Duration;

/// The units, largest first, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A text that is no length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no length of time: {why}; write it like 90m, 1h30m, 5s or 250ms")]
pub struct BadDuration {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

/// Reads whole numbers with units `d`, `h`, `m`, `s`, `ms`, largest unit first, each at most once.
///
/// # Errors
/// Says what is wrong with the text.
pub fn parse_duration(text: &str) -> Result<Duration, BadDuration> {
    let bad = |why: String| BadDuration { text: text.to_owned(), why };
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(bad("it is empty".to_owned()));
    }
    let mut allowed = &UNITS[..];
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, after) = rest.split_at(digits);
        let letters = after.len() - after.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let (unit, after) = after.split_at(letters);
        if number.is_empty() {
            return Err(bad(format!("expected a whole number at {rest:?}")));
        }
        if unit.is_empty() {
            return Err(bad(format!("{number} has no unit")));
        }
        let Some(place) = allowed.iter().position(|(name, _)| *name == unit) else {
            let known = UNITS.iter().any(|(name, _)| *name == unit);
            return Err(bad(if known {
                format!("{unit:?} comes twice or behind a smaller unit")
            } else {
                format!("there is no unit {unit:?}")
            }));
        };
        let milliseconds = number.parse::<u64>().ok().and_then(|n| n.checked_mul(allowed[place].1));
        total = milliseconds
            .and_then(|ms| total.checked_add(ms))
            .ok_or_else(|| bad(format!("{number}{unit} is too long")))?;
        allowed = &allowed[place + 1..];
        rest = after;
    }
    Ok(Duration::from_millis(total))
}

/// Writes a length of time so that [`parse_duration`] reads the same one, rounded down to milliseconds.
pub fn format_duration(length: Duration) -> String {
    let mut rest = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    if rest == 0 {
        return "0s".to_owned();
    }
    let mut out = String::new();
    for (unit, size) in UNITS {
        if rest >= size {
            // Writing to a String does not fail.
            let _ = write!(out, "{}{unit}", rest / size);
            rest %= size;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, ms) in [
            ("250ms", 250),
            ("5s", 5_000),
            ("90m", 5_400_000),
            ("1h30m", 5_400_000),
            ("2d", 172_800_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("0s", 0),
            (" 7s ", 7_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, part) in [
            ("", "empty"),
            ("   ", "empty"),
            ("90", "has no unit"),
            ("1h30", "30 has no unit"),
            ("s", "expected a whole number"),
            ("-5s", "expected a whole number"),
            ("1.5h", "1 has no unit"),
            ("5 s", "has no unit"),
            ("5w", "no unit \"w\""),
            ("5S", "no unit \"S\""),
            ("1m1h", "behind a smaller unit"),
            ("1s1s", "comes twice"),
            ("99999999999999999999s", "too long"),
            ("18446744073709551615ms1ms", "comes twice"),
            ("213503982335d", "too long"),
        ] {
            let error = parse_duration(text).expect_err(text);
            assert!(error.why.contains(part), "{text}: {error}");
            assert_eq!(error.text, text);
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for ms in [0, 1, 999, 1_000, 59_999, 60_000, 5_400_000, 86_400_000, 93_784_005, u64::MAX] {
            let length = Duration::from_millis(ms);
            assert_eq!(parse_duration(&format_duration(length)), Ok(length), "{ms}");
        }
        assert_eq!(format_duration(Duration::from_secs(5_400)), "1h30m");
    }
}
