//! Text for a person: styles, tables, times.

use crate::verdict::Colour;
use anstyle::{AnsiColor, Style};
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Text as a terminal may have it: whatever a terminal would act upon is written as an escape.
pub fn shown(text: &str) -> String {
    let acts = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if acts(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// A word as it could be typed.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", shown(word).replace('\'', r"'\''"))
    }
}

/// The style of a colour role.
pub fn style(colour: Colour) -> Style {
    match colour {
        Colour::Green => AnsiColor::Green.on_default(),
        Colour::Dim => Style::new().dimmed(),
        Colour::Yellow => AnsiColor::Yellow.on_default(),
        Colour::Red => AnsiColor::Red.on_default(),
    }
}

/// The style of a heading.
pub const HEADING: Style = Style::new().bold();

/// Text in a style.
pub fn styled(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

/// Cuts text to so many columns; what was cut off is an ellipsis.
pub fn fitted(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        out.push(c);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// One cell of a table.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell in a style.
    pub fn styled(text: &str, style: Style) -> Self {
        Self { text: shown(text), style }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text.as_ref(), Style::new())
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its heading.
    pub heading: &'static str,
    /// The fewest columns that it is cut to where the table does not fit; `None` for a column that is never cut.
    pub shrinks_to: Option<usize>,
}

/// Sets a table: two blanks between columns, none at the end of a line, cut to `columns` where those are given.
pub fn table(heads: &[Column], rows: &[Vec<Cell>], columns: Option<usize>) -> String {
    let mut widths: Vec<usize> = heads.iter().map(|h| h.heading.width()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.text.width());
        }
    }
    if let Some(columns) = columns {
        shrink(heads, &mut widths, columns);
    }
    let mut out = String::new();
    let headings: Vec<Cell> = heads.iter().map(|h| Cell::styled(h.heading, HEADING)).collect();
    for row in std::iter::once(&headings).chain(rows) {
        set_row(&mut out, row, &widths);
    }
    out
}

/// Takes columns away, always from the widest that may still shrink.
fn shrink(heads: &[Column], widths: &mut [usize], columns: usize) {
    let gaps = 2 * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > columns {
        let widest = (0..widths.len())
            .filter(|i| heads[*i].shrinks_to.is_some_and(|least| widths[*i] > least))
            .max_by_key(|i| widths[*i]);
        match widest {
            Some(i) => widths[i] -= 1,
            None => return,
        }
    }
}

fn set_row(out: &mut String, row: &[Cell], widths: &[usize]) {
    let last = row.iter().rposition(|c| !c.text.is_empty()).unwrap_or(0);
    for (i, (cell, width)) in row.iter().zip(widths).enumerate().take(last + 1) {
        let text = fitted(&cell.text, *width);
        let gap = if i == last { 0 } else { width - text.width().min(*width) + 2 };
        // Writing to a String does not fail.
        let _ = write!(out, "{}{text}{:#}{:gap$}", cell.style, cell.style, "");
    }
    out.push('\n');
}

/// How long ago, in at most two units.
pub fn age(ms: u64) -> String {
    let s = ms / 1000;
    match s {
        0..60 => format!("{s}s"),
        60..3_600 => format!("{}m", s / 60),
        3_600..86_400 => format!("{}h{:02}m", s / 3_600, s / 60 % 60),
        _ => format!("{}d{}h", s / 86_400, s / 3_600 % 24),
    }
}

/// A time of the contract: RFC 3339 in UTC; `None` for a number that is no time.
pub fn rfc3339(ms: u64) -> Option<String> {
    Some(jiff::Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()?.to_string())
}

/// The milliseconds of a time as [`rfc3339`] wrote it.
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    u64::try_from(text.parse::<jiff::Timestamp>().ok()?.as_millisecond()).ok()
}

/// A time for a person, in the local time zone: the time of day, with its date where that is not today.
pub fn clock(ms: u64) -> String {
    let Some(at) = i64::try_from(ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok()) else {
        return format!("{ms} ms");
    };
    let zone = jiff::tz::TimeZone::system();
    let (at, now) = (at.to_zoned(zone.clone()), jiff::Timestamp::now().to_zoned(zone));
    let form = if at.date() == now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    at.strftime(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADS: [Column; 3] = [
        Column { heading: "ref", shrinks_to: None },
        Column { heading: "name", shrinks_to: Some(4) },
        Column { heading: "status", shrinks_to: None },
    ];

    fn plain(table: &str) -> String {
        anstream::adapter::strip_str(table).to_string()
    }

    #[test]
    fn a_table_has_aligned_columns_and_no_blanks_at_the_end() {
        let rows = vec![
            vec![Cell::from("7f3a"), "fix-login".into(), "lost".into()],
            vec!["00ff".into(), "caf\u{e9} \u{1f980}".into(), "".into()],
        ];
        assert_eq!(
            plain(&table(&HEADS, &rows, None)),
            "ref   name       status\n7f3a  fix-login  lost\n00ff  caf\u{e9} \u{1f980}\n"
        );
    }

    #[test]
    fn a_table_is_cut_to_the_columns_where_it_may_be() {
        let rows = vec![vec![Cell::from("7f3a"), "x".repeat(300).into(), "succeeded".into()]];
        for columns in [80, 40, 21] {
            let text = plain(&table(&HEADS, &rows, Some(columns)));
            for line in text.lines() {
                assert!(line.width() <= columns, "{columns}: {line}");
            }
            assert!(text.contains("…  succeeded"), "{text}");
        }
        assert!(plain(&table(&HEADS, &rows, Some(3))).contains("xxx…  succeeded"), "never below its least");
    }

    #[test]
    fn wide_characters_are_cut_by_their_columns() {
        assert_eq!(fitted("\u{8a9e}\u{8a9e}\u{8a9e}", 5), "\u{8a9e}\u{8a9e}…");
        assert_eq!(fitted("\u{8a9e}\u{8a9e}\u{8a9e}", 4), "\u{8a9e}…");
        assert_eq!(fitted("abc", 3), "abc");
        assert_eq!(fitted("abc", 0), "");
    }

    #[test]
    fn nothing_that_a_terminal_acts_upon_is_shown() {
        assert_eq!(shown("a\u{1b}[31m\nb\u{202e}c caf\u{e9}"), "a\\u{1b}[31m\\nb\\u{202e}c caf\u{e9}");
    }

    #[test]
    fn times() {
        assert_eq!(rfc3339(0).as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(rfc3339(1_500).as_deref(), Some("1970-01-01T00:00:01.5Z"));
        assert_eq!(rfc3339(u64::MAX), None);
        for (ms, text) in
            [(0, "0s"), (59_999, "59s"), (60_000, "1m"), (3_660_000, "1h01m"), (90_000_000, "1d1h")]
        {
            assert_eq!(age(ms), text);
        }
    }
}
