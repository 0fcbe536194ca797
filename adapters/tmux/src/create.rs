//! Creating a window: made, configured, tagged and read back by one execution of the client.
//!
//! tmux runs a list of commands without reading its terminals in between, so a program that ends at once is still
//! there to be tagged; only a person's hook that waits comes between.

use crate::argv::{Script, Verb, all_of};
use crate::snapshot::{END, ended};
use crate::tags::{self, is_id};
use crate::{Heard, Tmux, never_asked};
use loopmux_mux::spawn::Invocation;
use loopmux_mux::{
    CreateError, CreateSpec, Created, Owned, PaneId, Placement, ReplyClass, SessionId, TagScope, Tags,
    Trouble, WindowId,
};
use std::ffi::OsString;

/// What the new window is, printed by the command that makes it.
const MADE: &str = "loopmux-made\t#{pid}\t#{version}\t#{session_id}\t#{window_id}\t#{pane_id}\t#{pane_pid}";

/// What `if-shell` prints when the session is not the one that was seen.
const OTHER: &str = "loopmux-refused\t#{pid}\t#{session_id}";

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

impl Tmux {
    pub(crate) fn create_window(&self, spec: &CreateSpec) -> Result<Created, CreateError> {
        self.check(spec)?;
        if let Placement::NewSession { .. } = spec.placement {
            self.socket.prepare(self.uid).map_err(|e| {
                let dir = self.socket.own_dir.as_deref().unwrap_or(&self.socket.path).display();
                self.refused(format!("the directory for the socket, {dir}: {e}"))
            })?;
        }
        let verb = match spec.placement {
            Placement::NewSession { .. } => Verb::NewSession,
            Placement::InSession(_) => Verb::NewWindow,
        };
        let client = self.client(&script(spec)).cwd(&spec.cwd).deadline(self.act);
        let heard = self.execute(verb, &client)?;
        let made = match read_made(&heard.stdout) {
            Ok(made) => made,
            Err(NotMade::Other(said)) => return Err(self.refused(said)),
            Err(NotMade::Nothing) => return Err(self.not_made(verb, &heard)),
        };
        self.read_back(verb, spec, made, &heard)
    }

    /// What no server needs to be asked for.
    fn check(&self, spec: &CreateSpec) -> Result<(), CreateError> {
        let bad = |e: &dyn std::fmt::Display| self.refused(e.to_string());
        spec.tags.check().map_err(|e| bad(&e))?;
        if spec.command.len() < 2 {
            return Err(
                self.refused("a window's command needs two words at least: tmux gives one to a shell".into())
            );
        }
        match &spec.placement {
            Placement::NewSession { tags, size, .. } => {
                tags.check().map_err(|e| bad(&e))?;
                if size.0 == 0 || size.1 == 0 {
                    return Err(self.refused(format!("a window of {} by {} cells", size.0, size.1)));
                }
            }
            Placement::InSession(owned) => check_owned(owned).map_err(|said| self.refused(said))?,
        }
        Ok(())
    }

    fn execute(&self, verb: Verb, client: &Invocation) -> Result<Heard, CreateError> {
        match client.run() {
            Ok(reply) => Ok(self.heard(verb, reply)),
            Err(e) => {
                let trouble =
                    Trouble { class: ReplyClass::Failed, tried: self.tried(verb), said: e.to_string() };
                Err(if never_asked(&e) {
                    CreateError::Refused(trouble)
                } else {
                    CreateError::MayAppear(trouble)
                })
            }
        }
    }

    fn refused(&self, said: String) -> CreateError {
        CreateError::Refused(Trouble { class: ReplyClass::Failed, tried: self.tried(Verb::NewWindow), said })
    }

    /// A reply in which nothing says that a window was made.
    fn not_made(&self, verb: Verb, heard: &Heard) -> CreateError {
        let trouble = self.trouble(verb, heard);
        if nothing_can_appear(heard) {
            CreateError::Refused(trouble)
        } else {
            CreateError::MayAppear(trouble)
        }
    }

    /// Compares what the last command printed with what was made and what was asked for.
    fn read_back(
        &self,
        verb: Verb,
        spec: &CreateSpec,
        made: Made,
        heard: &Heard,
    ) -> Result<Created, CreateError> {
        let complete = heard.stdout.lines().next_back().is_some_and(|line| ended(line, made.server_pid));
        let tagged = complete && heard.stdout.lines().any(|line| carries(line, spec, &made));
        if !complete || heard.class != ReplyClass::Answered || !heard.stderr.trim().is_empty() {
            // It was made, and is gone or only half configured by now.
            return Err(CreateError::MayAppear(self.trouble(verb, heard)));
        }
        Ok(Created {
            server_pid: made.server_pid,
            version: made.version,
            session: made.session,
            window: made.window,
            pane: made.pane,
            pane_pid: made.pane_pid,
            tagged,
        })
    }
}

/// A proof of ownership whose parts stand in a condition.
pub(crate) fn check_owned(owned: &Owned) -> Result<(), String> {
    owned.tags().check().map_err(|e| e.to_string())?;
    let ids = [('$', owned.session().as_str()), ('@', owned.window().as_str()), ('%', owned.pane().as_str())];
    match ids.into_iter().find(|(sign, id)| !is_id(*sign, id)) {
        Some((_, id)) => Err(format!("{id:?} is no id of tmux")),
        None => Ok(()),
    }
}

/// Everything that the client says, in order.
fn script(spec: &CreateSpec) -> Script {
    match &spec.placement {
        Placement::NewSession { name, tags, size } => {
            let (columns, rows) = (size.0.to_string(), size.1.to_string());
            let head = ["-d", "-P", "-F", MADE, "-s", name.as_str(), "-x", &columns, "-y", &rows];
            // Its first window, not its current one: a person's hook may have opened another.
            let target = format!("={name}:^");
            let make = Script::new().then(Verb::NewSession, words(&head, spec));
            make.and(options(&SESSION, None, &target))
                .and(options(&WINDOW, Some("-w"), &target))
                .and(tags::set(TagScope::Session, &target, tags))
                .and(tags_of_window(&target, &spec.tags))
                .and(read_back_script(&target))
        }
        Placement::InSession(owned) => {
            // Behind the last window, so that the commands that follow can name it.
            let target = format!("{}:{{end}}", owned.session());
            let head = ["-d", "-P", "-F", MADE, "-a", "-t", &target];
            let inner = Script::new()
                .then(Verb::NewWindow, words(&head, spec))
                .and(options(&WINDOW, Some("-w"), &target))
                .and(tags_of_window(&target, &spec.tags))
                .and(read_back_script(&target));
            let refuse = Script::new().then(Verb::Display, ["-p", OTHER]);
            Script::new().then(
                Verb::If,
                [
                    OsString::from("-F"),
                    "-t".into(),
                    tags::target(owned).into(),
                    all_of(&tags::condition(owned)).into(),
                    inner.text(),
                    refuse.text(),
                ],
            )
        }
    }
}

fn words(head: &[&str], spec: &CreateSpec) -> Vec<OsString> {
    let mut words: Vec<OsString> = head.iter().map(OsString::from).collect();
    words.extend(["-n", spec.window.as_str(), "--"].map(OsString::from));
    words.extend(spec.command.iter().cloned());
    words
}

fn options(settings: &[(&str, &str)], flag: Option<&str>, target: &str) -> Script {
    settings.iter().fold(Script::new(), |script, (name, value)| {
        let args = flag.into_iter().chain(["-t", target, name, value]).map(str::to_owned);
        script.then(Verb::SetOption, args)
    })
}

fn tags_of_window(target: &str, tags: &Tags) -> Script {
    tags::set(TagScope::Window, target, tags).and(tags::set(TagScope::Pane, target, tags))
}

fn read_back_script(target: &str) -> Script {
    let [s, w, p] = [TagScope::Session, TagScope::Window, TagScope::Pane].map(tags::format);
    let format = format!("loopmux-tags\t#{{session_id}}\t#{{window_id}}\t#{{pane_id}}\t{s}\t{w}\t{p}");
    Script::new().then(Verb::Display, ["-p", "-t", target, &format]).then(Verb::Display, ["-p", END])
}

/// What the command that made the window printed.
struct Made {
    server_pid: u32,
    version: String,
    session: SessionId,
    window: WindowId,
    pane: PaneId,
    pane_pid: Option<u32>,
}

enum NotMade {
    /// The server found another session in place of ours.
    Other(String),
    Nothing,
}

fn read_made(stdout: &str) -> Result<Made, NotMade> {
    let first = stdout.lines().next().unwrap_or_default();
    if let Some(found) = first.strip_prefix("loopmux-refused\t") {
        return Err(NotMade::Other(format!(
            "the session is no longer the one that was seen: the server found {}",
            found.replace('\t', " and session ")
        )));
    }
    let fields: Vec<&str> = first.split('\t').collect();
    let ["loopmux-made", pid, version, session, window, pane, pane_pid] = fields[..] else {
        return Err(NotMade::Nothing);
    };
    let Ok(server_pid) = pid.parse() else { return Err(NotMade::Nothing) };
    if !is_id('$', session) || !is_id('@', window) || !is_id('%', pane) {
        return Err(NotMade::Nothing);
    }
    Ok(Made {
        server_pid,
        version: version.to_owned(),
        session: SessionId::from_backend(session),
        window: WindowId::from_backend(window),
        pane: PaneId::from_backend(pane),
        pane_pid: pane_pid.parse().ok().filter(|pid| *pid != 0),
    })
}

/// Whether a line is the read-back of exactly this window with exactly these tags.
fn carries(line: &str, spec: &CreateSpec, made: &Made) -> bool {
    let Some(rest) = line.strip_prefix("loopmux-tags\t") else { return false };
    let fields: Vec<&str> = rest.split('\t').collect();
    if fields.len() != 3 + 3 * tags::VALUES {
        return false;
    }
    let ids = [made.session.as_str(), made.window.as_str(), made.pane.as_str()];
    let own = |n: usize| tags::read(&fields[3 + n * tags::VALUES..3 + (n + 1) * tags::VALUES], ids[n]);
    let session_is_tagged = match &spec.placement {
        Placement::NewSession { tags, .. } => own(0).as_ref() == Some(tags),
        Placement::InSession(_) => true,
    };
    fields[..3] == ids && session_is_tagged && own(1).as_ref() == Some(&spec.tags) && own(2) == own(1)
}

/// Whether it is certain that nothing was made and nothing will be: the client never reached a server that could
/// keep the request, or the server answered that it did not make it.
fn nothing_can_appear(heard: &Heard) -> bool {
    let failed = matches!(heard.reply.code, Some(code) if code != 0);
    if !failed || heard.reply.timed_out || heard.reply.truncated || !heard.stdout.trim().is_empty() {
        return false;
    }
    let first = heard.stderr.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let first = first.to_ascii_lowercase();
    const ANSWERED: [&str; 9] = [
        "duplicate session: ",
        "create window failed: ",
        "create session failed: ",
        "command too long",
        "failed to send command",
        "invalid session",
        "bad session name",
        "unknown command",
        "usage: ",
    ];
    let unreachable = matches!(
        heard.class,
        ReplyClass::NoListener | ReplyClass::NoSocket | ReplyClass::Denied | ReplyClass::Absent
    );
    unreachable || ANSWERED.iter().any(|wording| first.starts_with(wording)) || first.starts_with("error c")
}
