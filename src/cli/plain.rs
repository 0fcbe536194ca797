//! What a terminal printed, as plain text: escape sequences are gone, and a line that was written over reads as it
//! last stood.

/// Cells of one line that are kept in hand; a longer line is broken there.
const LONGEST: usize = 1 << 16;
/// How far a sequence moves the cursor at most.
const FARTHEST: usize = 1 << 12;

/// Makes plain text of bytes that come in pieces, cut anywhere.
#[derive(Debug, Default)]
pub struct Plain {
    /// The beginning of a character whose end has not come yet.
    cut: Vec<u8>,
    state: State,
    line: Vec<char>,
    column: usize,
    /// So many cells of the line were given away already.
    shown: usize,
    /// One of those was changed since.
    changed: bool,
    out: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// Behind ESC.
    Escape,
    /// Behind ESC and an intermediate character: one final character follows.
    Charset,
    /// A control sequence: its first parameter so far, and whether a second has begun.
    Sequence(Option<usize>, bool),
    /// Text for the terminal, not for the screen; `true` for an OSC, which a BEL or a new line ends too.
    Hidden(bool),
    /// Behind ESC inside of such text.
    HiddenEscape,
}

impl Plain {
    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.cut.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.cut);
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    text.chars().for_each(|c| self.take(c));
                    return;
                }
                Err(e) => {
                    let (good, bad) = rest.split_at(e.valid_up_to());
                    String::from_utf8_lossy(good).chars().for_each(|c| self.take(c));
                    match e.error_len() {
                        Some(n) => {
                            self.take(char::REPLACEMENT_CHARACTER);
                            rest = &bad[n..];
                        }
                        None => {
                            self.cut = bad.to_vec();
                            return;
                        }
                    }
                }
            }
        }
    }

    /// The text so far: whole lines.
    pub fn lines(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// The text so far, with the line that is not finished. If that line changes later, it is given again.
    pub fn everything(&mut self) -> String {
        self.give();
        self.lines()
    }

    /// The rest, when nothing more comes. It ends with a new line, unless there is no text.
    pub fn finish(&mut self) -> String {
        if !self.cut.is_empty() {
            self.cut.clear();
            self.take(char::REPLACEMENT_CHARACTER);
        }
        if !self.line.is_empty() {
            self.end_line();
        }
        self.lines()
    }

    fn take(&mut self, c: char) {
        self.state = match (self.state, c) {
            (_, '\u{18}' | '\u{1a}') => State::Text,
            (State::Hidden(_), '\u{1b}') => State::HiddenEscape,
            (State::Hidden(true), '\u{7}') => State::Text,
            (State::Hidden(true), '\n') => self.control(c),
            (State::Hidden(osc), _) => State::Hidden(osc),
            (State::HiddenEscape, '\\') => State::Text,
            (_, '\u{1b}') => State::Escape,
            (State::Escape | State::HiddenEscape, _) => self.escape(c),
            (State::Text, _) if c.is_control() => self.control(c),
            (State::Text, _) => self.write(c),
            // A terminal acts on these in the middle of a sequence too.
            (state, c) if c.is_control() => {
                self.control(c);
                state
            }
            (State::Charset, ' '..='/') => State::Charset,
            (State::Charset, _) => State::Text,
            (State::Sequence(first, second), _) => self.sequence(first, second, c),
        };
    }

    fn escape(&mut self, c: char) -> State {
        match c {
            '[' => State::Sequence(None, false),
            ']' => State::Hidden(true),
            // DCS, SOS, PM, APC, and the title of screen.
            'P' | 'X' | '^' | '_' | 'k' => State::Hidden(false),
            ' '..='/' => State::Charset,
            'D' | 'E' => self.control('\n'),
            'M' => {
                self.leave_line();
                State::Text
            }
            c if c.is_control() => {
                self.control(c);
                State::Escape
            }
            _ => State::Text,
        }
    }

    fn sequence(&mut self, first: Option<usize>, second: bool, c: char) -> State {
        match c {
            '0'..='9' if !second => {
                let digit = c as usize - '0' as usize;
                State::Sequence(Some((first.unwrap_or(0) * 10 + digit).min(FARTHEST)), false)
            }
            ';' | ':' => State::Sequence(first, true),
            ' '..='?' => State::Sequence(first, second),
            '@'..='~' => {
                self.act(first, c);
                State::Text
            }
            // No such sequence exists: what comes is text.
            _ => self.write(c),
        }
    }

    fn act(&mut self, first: Option<usize>, c: char) {
        let n = first.unwrap_or(1).max(1);
        match c {
            'C' | 'a' => self.column += n,
            'D' => self.column = self.column.saturating_sub(n),
            'G' | '`' => self.column = n - 1,
            'K' => self.erase(first.unwrap_or(0)),
            'A' | 'B' | 'E' | 'F' | 'H' | 'd' | 'e' | 'f' => self.leave_line(),
            _ => {}
        }
    }

    fn control(&mut self, c: char) -> State {
        match c {
            '\n' | '\u{b}' | '\u{c}' | '\u{85}' => self.end_line(),
            '\r' => self.column = 0,
            '\u{8}' => self.column = self.column.saturating_sub(1),
            '\t' => {
                self.write('\t');
            }
            _ => {}
        }
        State::Text
    }

    fn write(&mut self, c: char) -> State {
        self.column = self.column.min(self.line.len() + FARTHEST);
        while self.line.len() < self.column {
            self.line.push(' ');
        }
        match self.line.get_mut(self.column) {
            Some(cell) if *cell == c => {}
            Some(cell) => {
                *cell = c;
                self.changed |= self.column < self.shown;
            }
            None => self.line.push(c),
        }
        self.column += 1;
        if self.line.len() >= LONGEST {
            self.end_line();
        }
        State::Text
    }

    fn erase(&mut self, how: usize) {
        let all = self.line.len();
        let (from, to) = match how {
            0 => (self.column, all),
            1 => (0, self.column + 1),
            _ => (0, all),
        };
        let (from, to) = (from.min(all), to.min(all));
        self.changed |= self.line[from..to.min(self.shown).max(from)].iter().any(|c| *c != ' ');
        if to == all {
            self.line.truncate(from);
        } else {
            self.line[from..to].fill(' ');
        }
    }

    /// The cursor goes to another line: what stands here is a line of its own.
    fn leave_line(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        self.give();
        self.out.push('\n');
        self.line.clear();
        self.column = 0;
        self.shown = 0;
        self.changed = false;
    }

    fn give(&mut self) {
        if std::mem::take(&mut self.changed) {
            self.out.push('\n');
            self.shown = 0;
        }
        let from = self.shown.min(self.line.len());
        self.out.extend(&self.line[from..]);
        self.shown = self.line.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        let mut plain = Plain::default();
        plain.feed(text.as_bytes());
        plain.finish()
    }

    #[test]
    fn text_stays_and_lines_end_as_lines() {
        assert_eq!(plain("a\r\nb\n\nc\td caf\u{e9} \u{1f980}\r\n"), "a\nb\n\nc\td caf\u{e9} \u{1f980}\n");
        assert_eq!(plain("no end"), "no end\n");
        assert_eq!(plain(""), "");
    }

    #[test]
    fn sequences_are_gone() {
        for (bytes, text) in [
            ("\x1b[1;31mred\x1b[0m\n", "red\n"),
            ("\x1b[38:2::1:2:3mred\x1b[m\n", "red\n"),
            ("\x1b]0;title\x07a\n", "a\n"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link\n"),
            ("\x1bP+q544e\x1b\\a\n", "a\n"),
            ("\x1bktitle\x1b\\a\n", "a\n"),
            ("\x1b_apc\nstill\x1b\\a\n", "a\n"),
            ("\x1b(B\x1b)0a\x1b#8\x1b7\x1b8\x1b=\x1b>\n", "a\n"),
            ("\x1b[?2004h\x1b[>4;1ma\x1b[?25l\n", "a\n"),
            ("\x1b[2 qa\n", "a\n"),
            ("a\x07b\x00c\x7fd\u{9b}e\n", "abcde\n"),
            ("\x1bcfresh\n", "fresh\n"),
        ] {
            assert_eq!(plain(bytes), text, "{bytes:?}");
        }
    }

    #[test]
    fn a_sequence_that_never_ends_does_not_swallow_the_log() {
        assert_eq!(plain("\x1b]0;title without an end\nnext\n"), "\nnext\n");
        assert_eq!(plain("\x1bPdcs\x18next\n"), "next\n");
        assert_eq!(plain("\x1bPdcs\x1b[1mnext\n"), "next\n");
        assert_eq!(plain("\x1b[12\u{e9}t\u{e9}\n"), "\u{e9}t\u{e9}\n");
        assert_eq!(plain("\x1b[3\n1mnext\n"), "\nnext\n");
    }

    #[test]
    fn a_line_that_is_written_over_reads_as_it_last_stood() {
        assert_eq!(plain("10%\r20%\r100%\n"), "100%\n");
        assert_eq!(plain("hello\rHE\n"), "HEllo\n");
        assert_eq!(plain("a long line\r\x1b[Kshort\n"), "short\n");
        assert_eq!(plain("abc\x08\x08X\n"), "aXc\n");
        assert_eq!(plain("abc\x1b[2K\rx\n"), "x\n");
        assert_eq!(plain("abcd\x1b[2D\x1b[1KX\n"), "  Xd\n");
        assert_eq!(plain("a\x1b[3Cb\x1b[2Gc\n"), "ac  b\n");
    }

    #[test]
    fn text_that_is_set_in_places_is_kept_apart() {
        assert_eq!(plain("\x1b[H\x1b[2Jtop\x1b[5;10Hmiddle\x1b[Aup"), "top\nmiddle\nup\n");
    }

    #[test]
    fn nothing_depends_on_where_pieces_are_cut() {
        let text = "caf\u{e9}\x1b[31mred\x1b]0;t\x1b\\\r\nx\ry \u{1f980}\x1b[Kz\nlast";
        let whole = plain(text);
        for cut in 0..text.len() {
            let mut plain = Plain::default();
            let (a, b) = text.as_bytes().split_at(cut);
            plain.feed(a);
            plain.feed(b);
            assert_eq!(plain.finish(), whole, "cut at {cut}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let mut plain = Plain::default();
        plain.feed(b"a\xffb\xc3");
        assert_eq!(plain.finish(), "a\u{fffd}b\u{fffd}\n");
    }

    #[test]
    fn an_unfinished_line_is_given_once_and_again_only_when_it_changed() {
        let mut plain = Plain::default();
        plain.feed(b"waiting");
        assert_eq!(plain.everything(), "waiting");
        assert_eq!(plain.everything(), "");
        plain.feed(b"...\r");
        assert_eq!(plain.everything(), "...");
        plain.feed(b"wait");
        assert_eq!(plain.everything(), "", "the same characters");
        plain.feed(b"\rdone\x1b[K");
        assert_eq!(plain.everything(), "\ndone");
        plain.feed(b"\r\n");
        assert_eq!(plain.finish(), "\n");
    }

    #[test]
    fn a_line_without_an_end_is_broken_and_a_far_cursor_costs_little() {
        let text = plain(&"x".repeat(LONGEST + 1));
        assert_eq!(text.len(), LONGEST + 3);
        assert!(plain("\x1b[999999999999999999Cx\n").len() <= FARTHEST + 2);
    }
}
