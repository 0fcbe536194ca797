//! What the multiplexer says right after the terminal went away: once, bounded, in a process of its own.

use super::super::backend;
use super::super::receipts::Receipts;
use crate::process::{self, Handle, Identity, Life, Opened};
use crate::run::dir::Dir;
use crate::run::files::{HangupFile, LaunchFile, SCHEMA, StartFile, name, now_ms};
use crate::verdict::{Cause, Observation};
use loopmux_mux::{Answered, ReplyClass, Scope, Snapshot};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The class of an explanation for which the multiplexer was not asked.
pub(super) const NOT_ASKED: &str = "not-asked";

/// A server that is on its way out answers wrongly or not at all. With hundreds of windows it takes a while.
const ON_ITS_WAY: Duration = Duration::from_secs(5);

/// Starts the process that asks. It needs nothing of the dead terminal.
///
/// # Errors
/// As the operating system says.
#[allow(unsafe_code)]
pub(super) fn start(dir: &Dir) -> io::Result<Pid> {
    let (program, directory) = super::system::without_paths(dir);
    let mut command = Command::new(program);
    command.args(["explain", "."]).current_dir(directory);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let in_child = || {
        super::signals::back_to_default();
        rustix::process::setsid()?;
        Ok(())
    };
    // SAFETY: between fork and exec it only makes system calls; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(in_child) };
    Ok(Pid::from_child(&command.spawn()?))
}

/// Asks, and writes `hangup.json`.
pub(super) fn main(path: &Path) -> i32 {
    let Ok(dir) = Dir::open(path) else { return 1 };
    let Observation::Known(launch) = dir.read_json::<LaunchFile>(name::LAUNCH) else { return 1 };
    let start = dir.read_json::<StartFile>(name::START);
    let file = explain(&launch, start.known());
    i32::from(Receipts::new(&dir, Some(&launch)).write(name::HANGUP, &file).is_err())
}

fn explain(launch: &LaunchFile, start: Option<&StartFile>) -> HangupFile {
    let snapshot = match backend::open(&launch.mux) {
        Ok(mux) => mux.snapshot(Scope::Everything),
        Err(why) => return note(None, NOT_ASKED, why),
    };
    let class = snapshot.class().as_str();
    match snapshot {
        Snapshot::Answered(answered) => {
            let (cause, said) = from_answer(&answered, start);
            note(cause, class, said)
        }
        Snapshot::NotServed(trouble) | Snapshot::Unknown(trouble) => {
            let server = start.and_then(|s| s.server.as_ref());
            // A client that could not even be executed says nothing about the server.
            let patience = if trouble.class == ReplyClass::Failed { ON_ITS_WAY / 10 } else { ON_ITS_WAY };
            let cause = without_answer(server, trouble.class, patience);
            note(cause, class, trouble.to_string())
        }
    }
}

fn note(cause: Option<Cause>, class: &str, said: String) -> HangupFile {
    HangupFile { schema: SCHEMA, cause, class: class.to_owned(), said, at_ms: now_ms() }
}

/// A server answered. What it lists explains the end if it is the server that had the window.
fn from_answer(answered: &Answered, start: Option<&StartFile>) -> (Option<Cause>, String) {
    let pid = answered.server_pid;
    let Some(server) = start.and_then(|s| s.server.as_ref()) else {
        return (None, format!("server {pid} answered; which one had the window is not recorded"));
    };
    match process::life(server) {
        Life::Gone => {
            return (Some(Cause::ServerGone), format!("server {} is gone; {pid} answered", server.pid));
        }
        Life::Unknown(why) => return (None, format!("server {pid} answered; {why}")),
        Life::Alive if server.pid != pid => {
            return (None, format!("server {pid} answered in the place of {}", server.pid));
        }
        Life::Alive => {}
    }
    let Some(session) = start.and_then(|s| s.session.as_ref()) else {
        return (None, format!("server {pid} answered; which session had the window is not recorded"));
    };
    let pane = start.and_then(|s| s.pane.as_ref());
    let listed = |there: bool| if there { "lists" } else { "does not list" };
    let pane_said = pane
        .map_or_else(String::new, |pane| format!(" and {} {pane}", listed(answered.pane(pane).is_some())));
    let has = answered.has_session(session);
    let said = format!("server {pid} answered: it {} {session}{pane_said}", listed(has));
    (Some(if has { Cause::WindowKilled } else { Cause::SessionKilled }), said)
}

/// No answer that counts: the kernel says whether the server is gone, perhaps in a moment.
fn without_answer(server: Option<&Identity>, class: ReplyClass, patience: Duration) -> Option<Cause> {
    match Handle::open(server?) {
        Opened::Gone => Some(Cause::ServerGone),
        Opened::Unknown(_) => None,
        Opened::Handle(handle) => {
            if ends_within(&handle, patience) {
                return Some(Cause::ServerGone);
            }
            // It lives on without a single session; ours was the last.
            (class == ReplyClass::NoTarget).then_some(Cause::SessionKilled)
        }
    }
}

fn ends_within(handle: &Handle, patience: Duration) -> bool {
    let end = Instant::now() + patience;
    loop {
        let rest = end.saturating_duration_since(Instant::now());
        let rest = Timespec {
            tv_sec: i64::try_from(rest.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(rest.subsec_nanos()),
        };
        let mut polled = [PollFd::new(handle, PollFlags::IN)];
        match poll(&mut polled, Some(&rest)) {
            Err(rustix::io::Errno::INTR) if Instant::now() < end => {}
            _ => return matches!(handle.life(), Life::Gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopmux_mux::{PaneId, PaneRow, SessionId, WindowId};

    fn started_by(server: Option<Identity>) -> StartFile {
        StartFile {
            schema: SCHEMA,
            token: String::new(),
            keeper: process::current(),
            host: process::host().clone(),
            server,
            session: Some(SessionId::from_backend("$1")),
            pane: Some(PaneId::from_backend("%1")),
            at_ms: 0,
        }
    }

    fn answer(pid: u32, session: &str) -> Answered {
        let row = PaneRow {
            server_pid: pid,
            session: SessionId::from_backend(session),
            window: WindowId::from_backend("@9"),
            pane: PaneId::from_backend("%9"),
            pane_pid: None,
            dead: false,
            attached: 0,
            session_tags: None,
            window_tags: None,
            pane_tags: None,
            session_name: String::new(),
            window_name: String::new(),
        };
        Answered { server_pid: pid, panes: vec![row], ..Answered::default() }
    }

    #[test]
    fn an_answer_explains_only_what_the_recorded_server_lists() {
        let me = process::current();
        let cause = |answered: &Answered, server: &Option<Identity>| {
            from_answer(answered, Some(&started_by(server.clone()))).0
        };
        let server = Some(me.clone());
        assert_eq!(cause(&answer(me.pid, "$1"), &server), Some(Cause::WindowKilled));
        assert_eq!(cause(&answer(me.pid, "$2"), &server), Some(Cause::SessionKilled));
        assert_eq!(cause(&answer(1, "$1"), &server), None, "a stranger answered");
        assert_eq!(cause(&answer(me.pid, "$1"), &None), None);
        let before = Some(Identity { start: me.start + 1, ..me.clone() });
        assert_eq!(cause(&answer(me.pid, "$1"), &before), Some(Cause::ServerGone));
        let elsewhere = Some(Identity { boot: "other".to_owned(), ..me.clone() });
        assert_eq!(cause(&answer(me.pid, "$1"), &elsewhere), None);
    }

    #[test]
    fn without_an_answer_only_the_kernel_says_that_a_server_is_gone() {
        let me = process::current();
        let gone = Identity { start: me.start + 1, ..me.clone() };
        let without_answer = |server, class| without_answer(server, class, Duration::ZERO);
        assert_eq!(without_answer(Some(&gone), ReplyClass::NoListener), Some(Cause::ServerGone));
        assert_eq!(without_answer(Some(&me), ReplyClass::NoListener), None);
        assert_eq!(without_answer(Some(&me), ReplyClass::NoTarget), Some(Cause::SessionKilled));
        assert_eq!(without_answer(None, ReplyClass::NoListener), None);
    }
}
