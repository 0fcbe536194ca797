//! What is said to make a window.

use super::reply::{Landed, MADE, Made, OTHER, TAGS, UNATTENDED};
use crate::argv::{Script, Verb, all_of, is};
use crate::kill::choose;
use crate::snapshot::end;
use crate::tags;
use loopmux_mux::{CreateSpec, Placement, TagScope, Tags};
use std::ffi::OsString;

/// Settings of a new window against what a person may have configured for all windows: a pane kept after its end
/// hides the end, a renamed window confuses its reader, and what is typed into one pane is not for its neighbours.
const WINDOW: [(&str, &str); 4] = [
    ("remain-on-exit", "off"),
    ("automatic-rename", "off"),
    ("allow-rename", "off"),
    ("synchronize-panes", "off"),
];

/// A session of ours lives on when its last client leaves, and when there was none.
const SESSION: [(&str, &str); 1] = [("destroy-unattached", "off")];

/// Everything that the client says, in order.
pub(super) fn create(spec: &CreateSpec) -> Script {
    match &spec.placement {
        Placement::NewSession { name, tags, size } => {
            let (columns, rows) = (size.0.to_string(), size.1.to_string());
            let head = ["-d", "-P", "-F", MADE, "-s", name.as_str(), "-x", &columns, "-y", &rows];
            // Its first window, not its current one: a person's hook may have opened another.
            let target = format!("={name}:^");
            Script::new()
                .then(Verb::NewSession, words(&head, spec))
                .and(session(&target, tags))
                .and(window(&target, &target, &spec.tags))
                .and(read_back(&target))
        }
        Placement::InSession(owned) => {
            // Behind the last window, so that the commands that follow can name it.
            let target = format!("{}:{{end}}", owned.session());
            let head = ["-d", "-P", "-F", MADE, "-a", "-t", &target];
            let make = Script::new()
                .then(Verb::NewWindow, words(&head, spec))
                .and(window(&target, &target, &spec.tags))
                .and(read_back(&target));
            let refuse = Script::new().then(Verb::Display, ["-p", OTHER]);
            let condition = all_of(&tags::condition(owned));
            let words: [OsString; 6] = [
                "-F".into(),
                "-t".into(),
                tags::target(owned).into(),
                condition.into(),
                make.text(),
                refuse.text(),
            ];
            Script::new().then(Verb::If, words)
        }
    }
}

/// The same settings and tags for the window's own ids, and none where the first attempt put them.
pub(super) fn put_right(spec: &CreateSpec, made: &Made, landed: &Landed) -> Script {
    let condition = [is("pid", made.server_pid), is("pane_id", &made.pane), is("window_id", &made.window)];
    let mut script = Script::new();
    if landed.window != made.window.as_str() {
        script = script.and(tags::unset(TagScope::Window, &landed.window));
    }
    if landed.pane != made.pane.as_str() {
        script = script.and(tags::unset(TagScope::Pane, &landed.pane));
    }
    if let Placement::NewSession { tags, .. } = &spec.placement {
        script = script.and(session(&format!("{}:", made.session), tags));
    }
    let script = script.and(window(made.window.as_str(), made.pane.as_str(), &spec.tags));
    choose(made.pane.as_str(), &condition, script.and(read_back(made.pane.as_str())))
}

fn words(head: &[&str], spec: &CreateSpec) -> Vec<OsString> {
    let mut words: Vec<OsString> = head.iter().map(OsString::from).collect();
    words.extend(["-n", spec.window.as_str(), "--"].map(OsString::from));
    words.extend(spec.command.iter().cloned());
    words
}

fn session(target: &str, tags: &Tags) -> Script {
    options(&SESSION, None, target).and(tags::set(TagScope::Session, target, tags))
}

fn window(target: &str, pane: &str, tags: &Tags) -> Script {
    options(&WINDOW, Some("-w"), target).and(tags::set(TagScope::Window, target, tags)).and(tags::set(
        TagScope::Pane,
        pane,
        tags,
    ))
}

fn options(settings: &[(&str, &str)], flag: Option<&str>, target: &str) -> Script {
    settings.iter().fold(Script::new(), |script, (name, value)| {
        let args = flag.into_iter().chain(["-t", target, name, value]).map(str::to_owned);
        script.then(Verb::SetOption, args)
    })
}

fn read_back(target: &str) -> Script {
    let [s, w, p] = [TagScope::Session, TagScope::Window, TagScope::Pane].map(tags::format);
    let format = format!("{TAGS}\t#{{session_id}}\t#{{window_id}}\t#{{pane_id}}\t{s}\t{w}\t{p}");
    let attached = Script::new()
        .then(Verb::Display, ["-p", UNATTENDED])
        .then(Verb::ListClients, ["-F", "loopmux-client"]);
    let exits: [OsString; 3] = ["-F".into(), "#{exit-unattached}".into(), attached.text()];
    Script::new().then(Verb::Display, ["-p", "-t", target, &format]).then(Verb::If, exits).and(end())
}
