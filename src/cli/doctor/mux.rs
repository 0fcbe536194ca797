//! What is needed of the multiplexer: on the person's server only looks, on a server of its own real acts.

use super::super::Context;
use super::{Doctor, Found};
use crate::backends;
use crate::observe::identify_server;
use crate::process::{Handle, Identity, Life, Opened, Signal};
use crate::run::id::mint_token;
use loopmux_mux::{
    Answered, CreateSpec, KillReply, KillScope, Multiplexer, Owned, Placement, Scope, SessionName, Snapshot,
    TagScope, Tags,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SERVER: [&str; 3] = ["server", "mux-session", "mux-kill"];

/// As many files as a server with a few windows opens, and some.
const ENOUGH_FILES: u64 = 64;

/// How long a server of ours may take to end with its last session.
const LAST_SESSION: Duration = Duration::from_secs(5);

/// A selected multiplexer that makes sessions and kills them as it should.
pub(super) struct Usable {
    /// It, on the person's socket.
    pub mux: Arc<dyn Multiplexer>,
}

/// Checks the multiplexer that the settings select; `None` if it cannot be used.
pub(super) fn check(ctx: &Context, doctor: &mut Doctor) -> Option<Usable> {
    let began = Instant::now();
    let settings = match ctx.settings() {
        Ok(settings) => settings,
        Err(_) => {
            doctor.note("multiplexer", Found::skip("the configuration cannot be used"), began);
            doctor.skip(&SERVER, "the configuration cannot be used");
            return None;
        }
    };
    let checked = backends::select(settings).and_then(|s| Ok((backends::check(&*s.mux)?, s)));
    let (probe, selected) = match checked {
        Ok(checked) => checked,
        Err(e) => {
            let fix = match &e {
                backends::Unusable::Missing { .. } => "install it as other programs are installed here",
                _ => "see: loopmux mux",
            };
            doctor.note("multiplexer", Found::fail(e.to_string(), fix), began);
            doctor.skip(&SERVER, "there is no multiplexer");
            return None;
        }
    };
    let version = probe.version.unwrap_or_default();
    let mux: Arc<dyn Multiplexer> = Arc::from(selected.mux);
    let what = format!("{} {version} at {}, {}", mux.name(), mux.binary().display(), selected.why);
    doctor.note("multiplexer", Found::pass(what), began);
    let asked = Arc::clone(&mux);
    doctor.check("server", move || server(&*asked, &version));
    let began = Instant::now();
    if let Some(found) = few_files() {
        doctor.note("mux-session", found, began);
        doctor.skip(&["mux-kill"], "no server is started with so few open files");
        return None;
    }
    let asked = Arc::clone(&mux);
    match ThrownAway::begin(&*asked) {
        Ok((private, found)) => {
            doctor.note("mux-session", found, began);
            doctor.check("mux-kill", move || private.kill()).then_some(Usable { mux })
        }
        Err(found) => {
            doctor.note("mux-session", found, began);
            doctor.skip(&["mux-kill"], "no session could be made");
            None
        }
    }
}

/// The person's server, if one answers: its version, and the options that are hazards.
fn server(mux: &dyn Multiplexer, client: &str) -> Found {
    let answered = match mux.snapshot(Scope::Everything) {
        Snapshot::Answered(answered) => answered,
        Snapshot::NotServed(trouble) => {
            return Found::pass(format!("none runs yet, the first run starts one ({trouble})"));
        }
        Snapshot::Unknown(trouble) => {
            return Found::fail(
                format!("cannot be asked: {trouble}"),
                format!("look at the server at {}, or set LOOPMUX_SOCKET to another", mux.socket().display()),
            );
        }
    };
    if let Some(skew) = backends::skew(mux.name(), client, &answered.version) {
        return Found::fail(skew, "end that server when nothing in it is needed any more");
    }
    let hazards = match backends::hazards(mux) {
        Ok(hazards) => hazards,
        Err(trouble) => {
            return Found::fail(format!("cannot be asked for its options: {trouble}"), "try again");
        }
    };
    if let Some(hazard) = hazards.iter().find(|h| !h.harmless_to_ours) {
        return Found::fail(&hazard.what, &hazard.fix);
    }
    let harmless: Vec<&str> = hazards.iter().map(|h| h.what.as_str()).collect();
    let harmless = match harmless.as_slice() {
        [] => String::new(),
        some => format!("; our windows are made so that this does nothing to them: {}", some.join("; ")),
    };
    Found::pass(format!("pid {}, {}, answers{harmless}", answered.server_pid, answered.version))
}

/// A server inherits the limit of open files of whoever starts it. One that cannot open what it needs spins and does not
/// answer, and nobody could tell it to end.
fn few_files() -> Option<Found> {
    let most = crate::process::most_files()?;
    (most < ENOUGH_FILES).then(|| {
        Found::fail(
            format!("a process may open {most} files here, and a server needs {ENOUGH_FILES}"),
            format!("raise the limit, for example with: ulimit -n {ENOUGH_FILES}"),
        )
    })
}

/// A server of our own on a socket of its own, with one session. Everything ends when it is dropped.
struct ThrownAway {
    mux: Box<dyn Multiplexer>,
    tags: Tags,
    server: Option<Identity>,
    _dir: tempfile::TempDir,
}

impl ThrownAway {
    fn begin(mux: &dyn Multiplexer) -> Result<(Self, Found), Found> {
        let fix = "read what the multiplexer said; its configuration file is the usual cause";
        let fail = |why: String| Found::fail(why, fix);
        let dir = private_dir().map_err(|e| fail(format!("cannot make a directory for a socket: {e}")))?;
        let private = backends::elsewhere(mux, &dir.path().join("s")).map_err(|e| fail(e.to_string()))?;
        let hex = |n: usize| mint_token().chars().take(n).collect::<String>();
        let tags = Tags { token: hex(32), project: hex(16), run: "doctor".to_owned(), state: hex(16) };
        let mut this = Self { mux: private, tags, server: None, _dir: dir };
        let created = this.mux.create(&this.spec().map_err(fail)?).map_err(|e| fail(e.to_string()))?;
        this.server = identify_server(created.server_pid);
        if !created.tagged {
            return Err(fail("a session was made, and its tags did not read back".to_owned()));
        }
        let answered = this.look().map_err(fail)?;
        let carries = |at| !answered.owned(&this.tags, at).is_empty();
        match [TagScope::Session, TagScope::Window, TagScope::Pane].into_iter().find(|at| !carries(*at)) {
            None => {
                let found =
                    Found::pass("a throw-away session on a socket of its own was made, tagged and found");
                Ok((this, found))
            }
            Some(at) => {
                Err(fail(format!("the tags at the {at:?} of a session that was made did not read back")))
            }
        }
    }

    fn spec(&self) -> Result<CreateSpec, String> {
        let name = |text: &str| SessionName::new(text).map_err(|e| e.to_string());
        Ok(CreateSpec {
            placement: Placement::NewSession {
                name: name("loopmux-doctor")?,
                tags: self.tags.clone(),
                size: (80, 24),
            },
            window: name("doctor")?,
            tags: self.tags.clone(),
            command: vec!["sleep".into(), "60".into()],
            cwd: PathBuf::from("/"),
        })
    }

    fn look(&self) -> Result<Answered, String> {
        match self.mux.snapshot(Scope::Everything) {
            Snapshot::Answered(answered) => Ok(answered),
            Snapshot::NotServed(t) | Snapshot::Unknown(t) => Err(t.to_string()),
        }
    }

    fn owned(&self) -> Result<Owned, String> {
        let found = self.look()?.owned(&self.tags, TagScope::Session).into_iter().next();
        found.ok_or_else(|| "the session is not listed".to_owned())
    }

    /// A kill with another token must be refused, and one with the right token done.
    fn kill(self) -> Found {
        let fix = "this multiplexer must not be used with loopmux; please report it with its version";
        match self.try_kill() {
            Ok(()) => Found::pass("a kill with a wrong token is refused, one with the right token is done"),
            Err(why) => Found::fail(why, fix),
        }
    }

    fn try_kill(&self) -> Result<(), String> {
        let wrong = Tags { token: mint_token(), ..self.tags.clone() };
        let mut altered = self.look()?;
        for row in &mut altered.panes {
            row.session_tags = Some(wrong.clone());
        }
        let stranger = altered.owned(&wrong, TagScope::Session).into_iter().next();
        let stranger = stranger.ok_or("the session is not listed")?;
        match self.mux.kill(&stranger, KillScope::Session) {
            KillReply::Refused(_) => {}
            other => return Err(format!("a kill with a wrong token was not refused: {other:?}")),
        }
        match self.mux.kill(&self.owned()?, KillScope::Session) {
            KillReply::Done => {}
            other => return Err(format!("a kill with the right token was not done: {other:?}")),
        }
        match self.look() {
            Ok(answered) if answered.owned(&self.tags, TagScope::Session).is_empty() => Ok(()),
            Ok(_) => Err("a session that was killed is still listed".to_owned()),
            // It ended with its last session.
            Err(_) => Ok(()),
        }
    }
}

impl Drop for ThrownAway {
    fn drop(&mut self) {
        if let Ok(answered) = self.look() {
            // Whoever answers on this socket was started by this check.
            self.server = identify_server(answered.server_pid);
            for owned in answered.owned(&self.tags, TagScope::Session) {
                // What it says does not matter: the process is looked at next.
                let _ = self.mux.kill(&owned, KillScope::Session);
            }
        }
        end_server(self.server.as_ref());
    }
}

/// Ends a server that was started for a check, if it does not end with its last session: a configuration can keep
/// it, and nobody else knows its socket.
pub(super) fn end_server(server: Option<&Identity>) {
    let Some(Opened::Handle(handle)) = server.map(Handle::open) else { return };
    let end = Instant::now() + LAST_SESSION;
    while handle.life() == Life::Alive && Instant::now() < end {
        let left = end.saturating_duration_since(Instant::now()).min(Duration::from_millis(500));
        match crate::wake::wait(&[crate::wake::AsSource::as_source(&handle)], Some(left)) {
            Ok(crate::wake::Woke::By(_)) => return,
            _ => {
                // It has ended meanwhile where this fails.
                let _ = handle.signal(Signal::Term);
            }
        }
    }
}

/// A private directory with a short path: a socket's path has little room.
pub(super) fn private_dir() -> std::io::Result<tempfile::TempDir> {
    let make = |dir: &Path| tempfile::Builder::new().prefix("loopmux-").tempdir_in(dir);
    let temp = std::env::temp_dir();
    if temp.as_os_str().len() < 60 { make(&temp) } else { make(Path::new("/tmp")) }
}
