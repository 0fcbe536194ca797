//! Writing commands for tmux: as arguments of its client, or as text inside another command.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

macro_rules! verbs {
    ($($variant:ident $word:literal $name:literal,)*) => {
        /// A command of tmux.
        ///
        /// Each is written as an abbreviation that only this command has. The option `command-alias` replaces
        /// a command by its literal first word, and a person's configuration may hold an alias under a full name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Verb {
            $(#[doc = $name] $variant,)*
        }

        impl Verb {
            /// Every verb that this crate uses.
            #[cfg(test)]
            pub(crate) const ALL: &[Verb] = &[$(Verb::$variant,)*];

            /// What is written to tmux.
            pub(crate) fn word(self) -> &'static str {
                match self { $(Verb::$variant => $word,)* }
            }

            /// What a person reads.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Verb::$variant => $name,)* }
            }
        }
    };
}

verbs! {
    Attach "attach-sessio" "attach-session",
    Capture "capture-pan" "capture-pane",
    CopyMode "copy-mod" "copy-mode",
    DeleteBuffer "delete-buffe" "delete-buffer",
    Display "display-messag" "display-message",
    HasSession "has-sessio" "has-session",
    If "if-shel" "if-shell",
    KillPane "kill-pan" "kill-pane",
    KillSession "kill-sessio" "kill-session",
    KillWindow "kill-windo" "kill-window",
    ListClients "list-client" "list-clients",
    ListPanes "list-pane" "list-panes",
    ListSessions "list-session" "list-sessions",
    LoadBuffer "load-buffe" "load-buffer",
    NewSession "new-sessio" "new-session",
    NewWindow "new-windo" "new-window",
    PasteBuffer "paste-buffe" "paste-buffer",
    Pipe "pipe-pan" "pipe-pane",
    SendKeys "send-key" "send-keys",
    SetOption "set-optio" "set-option",
    Switch "switch-clien" "switch-client",
}

/// Commands in order. If one fails, tmux drops the ones behind it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    commands: Vec<Vec<OsString>>,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn then<I, S>(mut self, verb: Verb, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<OsString>,
    {
        let mut command = vec![OsString::from(verb.word())];
        command.extend(args.into_iter().map(Into::into));
        self.commands.push(command);
        self
    }

    pub(crate) fn and(mut self, more: Script) -> Self {
        self.commands.extend(more.commands);
        self
    }

    /// The arguments of a client.
    pub(crate) fn argv(&self) -> Vec<OsString> {
        let mut argv = Vec::new();
        for command in &self.commands {
            if !argv.is_empty() {
                argv.push(OsString::from(";"));
            }
            argv.extend(command.iter().map(|word| argument(word)));
        }
        argv
    }

    /// The text that tmux parses when a command takes commands.
    pub(crate) fn text(&self) -> OsString {
        let mut text = Vec::new();
        for command in &self.commands {
            if !text.is_empty() {
                text.extend_from_slice(b" ; ");
            }
            for (n, word) in command.iter().enumerate() {
                if n > 0 {
                    text.push(b' ');
                }
                quote(word, &mut text);
            }
        }
        OsString::from_vec(text)
    }
}

/// One argument of a client. A `;` at the end of any argument ends the command, unless a `\` stands before it.
fn argument(word: &OsStr) -> OsString {
    match word.as_bytes().split_last() {
        Some((b';', rest)) => OsString::from_vec([rest, b"\\;"].concat()),
        _ => word.to_owned(),
    }
}

/// One word in tmux's own syntax. Everything outside a small set is written so that the parser has no opinion on
/// it: it expands `$` and `~` inside double quotes, drops what looks like a comment behind a newline, and takes a
/// byte 255 for the end.
fn quote(word: &OsStr, text: &mut Vec<u8>) {
    text.push(b'"');
    for &byte in word.as_bytes() {
        match byte {
            b'"' | b'\\' | b'$' | b'~' => text.extend_from_slice(&[b'\\', byte]),
            b'\t' => text.push(byte),
            0..=31 | 127.. => text.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            _ => text.push(byte),
        }
    }
    text.push(b'"');
}

/// A format that is true if all of `parts` are.
pub(crate) fn all_of(parts: &[String]) -> String {
    match parts {
        [] => "1".to_owned(),
        [one] => one.clone(),
        [one, rest @ ..] => format!("#{{&&:{one},{}}}", all_of(rest)),
    }
}

/// A format that is true if the variable has that value, which must be made of letters, digits, `$`, `@`, `%`, `:`.
pub(crate) fn is(variable: &str, value: impl std::fmt::Display) -> String {
    format!("#{{==:#{{{variable}}},{value}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailing_semicolon_gets_one_backslash() {
        for (word, written) in [("a;", "a\\;"), ("a\\;", "a\\\\;"), (";", "\\;"), ("a;b", "a;b"), ("", "")] {
            assert_eq!(argument(OsStr::new(word)), written);
        }
    }

    #[test]
    fn commands_are_joined_by_a_lone_semicolon() {
        let script = Script::new().then(Verb::HasSession, ["-t", "=a"]).then(Verb::Display, ["-p", "x;"]);
        assert_eq!(script.argv(), ["has-sessio", "-t", "=a", ";", "display-messag", "-p", "x\\;"]);
        assert_eq!(script.text(), r#""has-sessio" "-t" "=a" ; "display-messag" "-p" "x;""#);
    }

    #[test]
    fn every_word_is_a_proper_prefix_of_its_command_and_of_no_other() {
        for verb in Verb::ALL {
            assert!(verb.name().starts_with(verb.word()) && verb.name() != verb.word(), "{verb:?}");
            let hits = Verb::ALL.iter().filter(|other| other.name().starts_with(verb.word())).count();
            assert_eq!(hits, 1, "{verb:?}");
        }
    }

    #[test]
    fn conditions_nest_in_pairs() {
        let parts = [is("pid", 1), is("a", "b"), is("c", "d")];
        assert_eq!(all_of(&parts), "#{&&:#{==:#{pid},1},#{&&:#{==:#{a},b},#{==:#{c},d}}}");
    }
}
