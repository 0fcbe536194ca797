//! Our tags as user options of tmux.
//!
//! `#{@x}` reads an option of the pane, its window, its session or the server, whichever has one, so that one key
//! at three scopes would read as three. Hence a key for each scope. A person can still set such a key for the whole
//! server: every object without one then seems to carry it, and some lookups even prefer it to the object's own. So
//! each scope also has a seal, the id of the very object that was tagged with the token, and tags without their
//! seal are none.

use crate::argv::{Script, Verb, is};
use loopmux_mux::{Owned, TagScope, Tags};

/// How many values a scope has in a row: four tags and the seal.
pub(crate) const VALUES: usize = 5;

/// The letter of a scope in its keys, the flag of `set-option` for it, and the variable with the object's id.
fn scope(at: TagScope) -> (char, Option<&'static str>, &'static str) {
    match at {
        TagScope::Session => ('s', None, "session_id"),
        TagScope::Window => ('w', Some("-w"), "window_id"),
        TagScope::Pane => ('p', Some("-p"), "pane_id"),
    }
}

fn key(at: TagScope, what: &str) -> String {
    format!("@loopmux_{}_{what}", scope(at).0)
}

/// The part of a row's format that reads one scope: values separated by tabs.
pub(crate) fn format(at: TagScope) -> String {
    let all = ["token", "project", "run", "state", "seal"];
    all.map(|what| format!("#{{{}}}", key(at, what))).join("\t")
}

fn seal(id: impl std::fmt::Display, token: &str) -> String {
    format!("{id}:{token}")
}

/// Reads one scope's values out of a row. `None`: no tags of ours.
pub(crate) fn read(values: &[&str], own_id: &str) -> Option<Tags> {
    let [token, project, run, state, seal] = values else { return None };
    if *seal != self::seal(own_id, token) {
        return None;
    }
    let [token, project, run, state] = [token, project, run, state].map(|v| (*v).to_owned());
    let tags = Tags { token, project, run, state };
    tags.check().is_ok().then_some(tags)
}

/// Commands that tag the object which `target` names.
pub(crate) fn set(at: TagScope, target: &str, tags: &Tags) -> Script {
    let (_, flag, id) = scope(at);
    let values =
        [("token", &tags.token), ("project", &tags.project), ("run", &tags.run), ("state", &tags.state)];
    let option = |expand: Option<&str>, what: &str, value: &str| {
        let words = flag.into_iter().chain(expand).chain(["-t", target]).map(str::to_owned);
        words.chain([key(at, what), value.to_owned()]).collect::<Vec<_>>()
    };
    let script = values
        .into_iter()
        .fold(Script::new(), |script, (what, value)| script.then(Verb::SetOption, option(None, what, value)));
    script.then(Verb::SetOption, option(Some("-F"), "seal", &seal(format_args!("#{{{id}}}"), &tags.token)))
}

/// Commands that take the tags off again.
pub(crate) fn unset(at: TagScope, target: &str) -> Script {
    let (_, flag, _) = scope(at);
    ["token", "project", "run", "state", "seal"].iter().fold(Script::new(), |script, what| {
        let words = flag.into_iter().chain(["-u", "-t", target]).map(str::to_owned);
        script.then(Verb::SetOption, words.chain([key(at, what)]))
    })
}

/// A condition that holds for the very object that was seen to carry the tags, while it carries them, on the
/// server that had it. All parts are hex digits or ids, checked when they were read: a `}` would cut a condition
/// short and make it true.
pub(crate) fn condition(owned: &Owned) -> Vec<String> {
    let (_, _, id) = scope(owned.at());
    vec![
        is("pid", owned.server_pid()),
        is(id, object(owned)),
        is(&key(owned.at(), "token"), &owned.tags().token),
        is(&key(owned.at(), "seal"), seal(object(owned), &owned.tags().token)),
    ]
}

/// The id of the object that carries the tags.
pub(crate) fn object(owned: &Owned) -> &str {
    match owned.at() {
        TagScope::Session => owned.session().as_str(),
        TagScope::Window => owned.window().as_str(),
        TagScope::Pane => owned.pane().as_str(),
    }
}

/// How a command names that object: an id, with what makes it the right kind of target.
pub(crate) fn target(owned: &Owned) -> String {
    match owned.at() {
        TagScope::Session => format!("{}:", owned.session()),
        TagScope::Window | TagScope::Pane => object(owned).to_owned(),
    }
}

/// Whether an id is what tmux makes: the sign of its kind and digits.
pub(crate) fn is_id(sign: char, text: &str) -> bool {
    text.strip_prefix(sign)
        .is_some_and(|n| !n.is_empty() && n.len() <= 20 && n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopmux_mux::{Answered, PaneId, PaneRow, SessionId, WindowId};

    fn tags() -> Tags {
        let (token, key) = ("0123456789abcdef0123456789abcdef".to_owned(), "0123456789abcdef".to_owned());
        Tags { token, project: key.clone(), run: "ctl".to_owned(), state: key }
    }

    fn owned(at: TagScope) -> Owned {
        let row = PaneRow {
            server_pid: 42,
            session: SessionId::from_backend("$1"),
            window: WindowId::from_backend("@2"),
            pane: PaneId::from_backend("%3"),
            pane_pid: None,
            dead: false,
            attached: 0,
            session_tags: Some(tags()),
            window_tags: Some(tags()),
            pane_tags: Some(tags()),
            session_name: "one".to_owned(),
            window_name: "w".to_owned(),
        };
        let seen =
            Answered { server_pid: 42, version: "3.3a".to_owned(), panes: vec![row], unlisted: vec![] };
        seen.owned(&tags(), at).remove(0)
    }

    #[test]
    fn a_condition_compares_server_object_token_and_seal() {
        let token = tags().token;
        for (at, key, id, own) in [
            (TagScope::Session, 's', "session_id", "$1"),
            (TagScope::Window, 'w', "window_id", "@2"),
            (TagScope::Pane, 'p', "pane_id", "%3"),
        ] {
            let expected = [
                "#{==:#{pid},42}".to_owned(),
                format!("#{{==:#{{{id}}},{own}}}"),
                format!("#{{==:#{{@loopmux_{key}_token}},{token}}}"),
                format!("#{{==:#{{@loopmux_{key}_seal}},{own}:{token}}}"),
            ];
            assert_eq!(condition(&owned(at)), expected);
        }
    }

    #[test]
    fn values_without_their_seal_are_no_tags() {
        let tags = tags();
        let seal = format!("$1:{}", tags.token);
        let good = [&*tags.token, &tags.project, &tags.run, &tags.state, &seal];
        assert_eq!(read(&good, "$1").as_ref(), Some(&tags));
        assert_eq!(read(&good, "$2"), None);
        assert_eq!(read(&["", "", "", "", ""], "$1"), None);
        assert_eq!(read(&[&tags.token, &tags.project, &tags.run, &tags.state, ""], "$1"), None);
        let other = "f".repeat(32);
        assert_eq!(read(&[&other, &tags.project, &tags.run, &tags.state, &seal], "$1"), None);
        assert_eq!(read(&[&tags.token, "zz", &tags.run, &tags.state, &seal], "$1"), None);
    }
}
