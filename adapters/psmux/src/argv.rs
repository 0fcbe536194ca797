//! Writing commands for psmux: as arguments of its client, or as one line for a server.
//!
//! One execution of the client can say several commands to one server, on one connection, and the server stops at the
//! first that fails (from 3.4.0). A condition that stands in the client's arguments is judged by the client, in a
//! question of its own; one that stands inside another command's text is judged by the server that then acts.

use std::ffi::OsString;

/// Commands in order, for one server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct List(Vec<Vec<String>>);

impl List {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a command.
    pub(crate) fn then<I: IntoIterator<Item = S>, S: Into<String>>(mut self, command: I) -> Self {
        self.0.push(command.into_iter().map(Into::into).collect());
        self
    }

    /// Adds the commands of another list.
    pub(crate) fn and(mut self, more: List) -> Self {
        self.0.extend(more.0);
        self
    }

    /// Each command as a list of its own.
    pub(crate) fn one_by_one(&self) -> impl Iterator<Item = List> {
        self.0.iter().map(|command| List(vec![command.clone()]))
    }

    /// The arguments for a client.
    pub(crate) fn argv(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        for command in &self.0 {
            if !words.is_empty() {
                words.push(OsString::from(";"));
            }
            words.extend(command.iter().map(OsString::from));
        }
        words
    }

    /// The line for a server.
    pub(crate) fn text(&self) -> String {
        let command = |words: &Vec<String>| words.iter().map(|w| quote(w)).collect::<Vec<_>>().join(" ");
        self.0.iter().map(command).collect::<Vec<_>>().join(" ; ")
    }
}

/// A word as a server reads it back: inside double quotes it knows `\"` and `\\` and nothing else.
fn quote(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_=:.@%$/".contains(&b);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

/// `then` if the server that is asked finds that all of `conditions` hold, `otherwise` if not.
pub(crate) fn choose(conditions: &[String], then: &List, otherwise: &List) -> List {
    let judged = List::new().then(["if-shell", "-F", &all_of(conditions), &then.text(), &otherwise.text()]);
    // The outer one is true for the client, which then sends the inner one whole.
    List::new().then(["if-shell", "-F", "1", &judged.text()])
}

/// A condition that a variable has this value.
pub(crate) fn is(variable: &str, value: impl std::fmt::Display) -> String {
    format!("#{{==:#{{{variable}}},{value}}}")
}

fn all_of(conditions: &[String]) -> String {
    let (last, rest) = conditions.split_last().expect("a condition");
    rest.iter().rev().fold(last.clone(), |all, one| format!("#{{&&:{one},{all}}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_arguments_or_a_line() {
        let list = List::new().then(["display-message", "-p", "a b"]).then(["kill-pane", "-t", ":.%1"]);
        let argv = ["display-message", "-p", "a b", ";", "kill-pane", "-t", ":.%1"];
        assert_eq!(list.argv(), argv.map(OsString::from));
        assert_eq!(list.text(), r#"display-message -p "a b" ; kill-pane -t :.%1"#);
    }

    #[test]
    fn a_word_is_quoted_for_the_server() {
        assert_eq!(quote(r#"C:\a "b" ; '"#), r#""C:\\a \"b\" ; '""#);
        assert_eq!(quote(""), "\"\"");
        assert_eq!(quote("#{pid}"), "\"#{pid}\"");
    }

    #[test]
    fn conditions_nest() {
        let all = all_of(&[is("pid", 7), is("pane_id", "%1"), is("x", "y")]);
        assert_eq!(all, "#{&&:#{==:#{pid},7},#{&&:#{==:#{pane_id},%1},#{==:#{x},y}}}");
    }
}
