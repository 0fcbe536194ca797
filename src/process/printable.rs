//! Command lines as a terminal may show them.

/// Characters of a command line that are kept.
pub(super) const LIMIT: usize = 200;

/// No character that a terminal acts upon, and not too many of the others.
pub(super) fn printable(text: &str) -> String {
    let acts = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut out: String = text.chars().take(LIMIT).map(|c| if acts(c) { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(LIMIT).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_upon_is_replaced_and_the_rest_is_bounded() {
        assert_eq!(printable("a\x1b[2Jb\u{202e}c\n"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}");
        assert_eq!(printable(&"é".repeat(LIMIT)), "é".repeat(LIMIT));
        assert_eq!(printable(&"é".repeat(LIMIT + 1)), format!("{}…", "é".repeat(LIMIT)));
    }
}
