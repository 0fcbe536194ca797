//! Our tags as user options of psmux.
//!
//! psmux keeps user options apart for each pane and for each session, and nowhere else: what is set for a window lands
//! at its session. So a session's tags are the session's options, and a window's tags are options of the pane that the
//! window was made with, under a key of their own. `#{@x}` reads the pane's option, or the session's where the pane has
//! none; so each scope also has a seal, the id of the very object that was tagged with the token, and tags without
//! their seal are none.

use crate::argv::{List, is};
use crate::ids::{is_id, pane_target, parts};
use loopmux_mux::{Owned, TagScope, Tags};

/// How many values a scope has in a row: four tags and the seal.
pub(crate) const VALUES: usize = 5;

fn letter(at: TagScope) -> char {
    match at {
        TagScope::Session => 's',
        TagScope::Window => 'w',
        TagScope::Pane => 'p',
    }
}

fn key(at: TagScope, what: &str) -> String {
    format!("@loopmux_{}_{what}", letter(at))
}

/// The part of a row's format that reads one scope: values separated by tabs.
pub(crate) fn format(at: TagScope) -> String {
    ["token", "project", "run", "state", "seal"].map(|what| format!("#{{{}}}", key(at, what))).join("\t")
}

fn seal(own_id: &str, token: &str) -> String {
    format!("{own_id}:{token}")
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

/// Commands that tag an object: `target` is its session, or the pane that carries the tags, `own_id` is the object's
/// own id.
pub(crate) fn set(at: TagScope, target: &str, own_id: &str, tags: &Tags) -> List {
    options(at, Some(target), None, &seal(own_id, &tags.token), tags)
}

/// The same as options of the session, where panes have none.
pub(crate) fn set_at_session(at: TagScope, session: &str, own_id: &str, tags: &Tags) -> List {
    options_at(at, false, Some(session), None, &seal(own_id, &tags.token), tags)
}

/// The same for what is active, whose id the server fills in.
pub(crate) fn set_active(at: TagScope, tags: &Tags) -> List {
    options(at, None, Some("-F"), &seal(&format!("#{{{}}}", id(at)), &tags.token), tags)
}

fn options(at: TagScope, target: Option<&str>, expand: Option<&str>, seal: &str, tags: &Tags) -> List {
    options_at(at, at != TagScope::Session, target, expand, seal, tags)
}

fn options_at(
    at: TagScope,
    of_pane: bool,
    target: Option<&str>,
    expand: Option<&str>,
    seal: &str,
    tags: &Tags,
) -> List {
    let values = [
        ("token", &*tags.token, None),
        ("project", &tags.project, None),
        ("run", &tags.run, None),
        ("state", &tags.state, None),
        // Last, since it is what makes the others count.
        ("seal", seal, expand),
    ];
    values.into_iter().fold(List::new(), |list, (what, value, expand)| {
        let flag = of_pane.then_some("-p");
        let target = target.map(|target| ["-t", target]).into_iter().flatten();
        let words = ["set-option"].into_iter().chain(flag).chain(expand).chain(target).map(str::to_owned);
        list.then(words.chain([key(at, what), value.to_owned()]))
    })
}

/// The variable with the id of the object that carries tags of that scope.
fn id(at: TagScope) -> &'static str {
    match at {
        TagScope::Session => "session_id",
        TagScope::Window => "window_id",
        TagScope::Pane => "pane_id",
    }
}

/// The own ids of an owned object's session, window and pane.
pub(crate) struct Place<'a> {
    pub(crate) session: &'a str,
    pub(crate) window: &'a str,
    pub(crate) pane: &'a str,
}

/// Takes a proof of ownership apart, whose parts stand in a condition.
///
/// # Errors
/// What is not safe there, in words.
pub(crate) fn place(owned: &Owned) -> Result<Place<'_>, String> {
    owned.tags().check().map_err(|e| e.to_string())?;
    let session = owned.session().as_str();
    let (window, pane) = (parts('@', owned.window().as_str()), parts('%', owned.pane().as_str()));
    match (is_id('$', session), window, pane) {
        (true, Some((a, window)), Some((b, pane))) if a == session && b == session => {
            Ok(Place { session, window, pane })
        }
        _ => Err(format!("{session}, {} and {} are no ids of psmux", owned.window(), owned.pane())),
    }
}

impl Place<'_> {
    /// How a command names what carries the tags.
    pub(crate) fn target(&self, at: TagScope) -> String {
        match at {
            TagScope::Session => format!("{}:", self.session),
            TagScope::Window | TagScope::Pane => pane_target(self.session, self.pane),
        }
    }

    fn own_id(&self, at: TagScope) -> &str {
        match at {
            TagScope::Session => self.session,
            TagScope::Window => self.window,
            TagScope::Pane => self.pane,
        }
    }

    /// Conditions that hold for the very object that was seen to carry the tags, while it carries them, on the server
    /// that had it. All parts are hex digits or ids: a `}` would cut a condition short.
    pub(crate) fn conditions(&self, owned: &Owned) -> Vec<String> {
        let (at, token) = (owned.at(), &owned.tags().token);
        let mut all = vec![is("pid", owned.server_pid()), is("session_id", self.session)];
        if at != TagScope::Session {
            all.push(is("window_id", self.window));
            all.push(is("pane_id", self.pane));
        }
        all.push(is(&key(at, "token"), token));
        all.push(is(&key(at, "seal"), seal(self.own_id(at), token)));
        all
    }
}
