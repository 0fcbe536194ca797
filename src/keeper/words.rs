//! What the keeper says in its window, in words for a person.

use crate::process::signal_name;
use crate::verdict::End;

/// Leaves every mode that a killed program may have left on, and keeps the text and the cursor's place. A full reset
/// would erase the text and keep the alternate screen (tmux 3.3a).
///
/// What moves the cursor stands between entering and leaving the alternate screen. Leaving it alone restores a
/// cursor that may have been saved long ago; entered first, it has saved the cursor of now, or, where the program
/// was killed in it, the one from which the program entered.
pub(super) const RESET: &str = concat!(
    "\x18\x1b\\",                           // whatever sequence was begun
    "\x1b[?2026l",                          // synchronized update
    "\x1b[?1049h\x1b[?6l\x1b[r\x1b[?1049l", // origin, region, alternate screen
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l", // mouse
    "\x1b[?1004l\x1b[?2004l",               // focus events, bracketed paste
    "\x1b[?1l\x1b>",                        // cursor keys, keypad
    "\x1b[>4m\x1b[<u",                      // extended keys
    "\x1b[4l\x1b[?7h",                      // insert, wrap
    "\x1b(B\x0f\x1b[0m\x1b[0 q\x1b[?25h",   // charset, colours, cursor
);

/// How a program ended.
pub(super) fn ended(end: &End) -> String {
    match end {
        End::Code(code) => format!("exited {code}"),
        End::Signal(signal) => match signal_name(*signal) {
            Some(name) => format!("ended by signal {signal}, {name}"),
            None => format!("ended by signal {signal}"),
        },
        End::SpawnError(why) => format!("not started: {}", clean(why)),
    }
}

/// Without what a terminal would act upon.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_said_in_words_and_harmless() {
        assert_eq!(ended(&End::Code(3)), "exited 3");
        assert_eq!(ended(&End::Signal(9)), "ended by signal 9, KILL");
        assert_eq!(ended(&End::Signal(64)), "ended by signal 64");
        assert_eq!(ended(&End::SpawnError("a\x1b[2J".to_owned())), "not started: a\u{fffd}[2J");
    }
}
