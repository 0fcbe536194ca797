//! Verdicts and evidence in a person's words.

use super::page::clock;
use crate::observe::{AttemptView, RunView};
use crate::verdict::{Cause, End, EngineSeen, Lease, Leftovers, MuxObject, Observation, ServerSeen, Verdict};

/// How a program ended.
pub fn end(end: &End) -> String {
    match end {
        End::Code(code) => format!("exited {code}"),
        End::Signal(signal) => format!("ended by signal {signal}{}", signal_name(*signal)),
        End::SpawnError(why) => format!("could not be executed: {why}"),
    }
}

fn signal_name(signal: i32) -> String {
    crate::process::signal_name(signal).map_or_else(String::new, |name| format!(" (SIG{name})"))
}

/// What became of an attempt, in one sentence.
pub fn verdict(view: &AttemptView) -> String {
    match &view.verdict {
        Verdict::Launching => "launching: its keeper has not started yet".to_owned(),
        Verdict::Running { window_gone: None } => "running".to_owned(),
        Verdict::Running { window_gone: Some(cause) } => {
            format!("running, and its window is gone: {}", cause.in_words())
        }
        Verdict::Exited { end: how, leftovers } => format!("{}{}", end(how), left(leftovers)),
        Verdict::Lost { cause, end: how, leftovers } => {
            let seen = match how {
                Some(how) => format!("; its program {} with the hang-up", end(how)),
                None => String::new(),
            };
            format!("lost: {} ({}){seen}{}", lost_because(view, *cause), LOST, left(leftovers))
        }
        Verdict::NeverStarted { why } => format!("never started: {why}"),
        Verdict::Unknown { why } => format!("unknown: {why}"),
    }
}

/// What lost means, beside every lost attempt.
const LOST: &str = "lost mid-run, not a CLI exit";

fn lost_because(view: &AttemptView, cause: Cause) -> String {
    let multiplexer = view.launch.known().map_or("the multiplexer", |l| l.mux.backend.as_str());
    match (cause, &view.evidence.session) {
        (Cause::SessionKilled, MuxObject::Absent) => {
            format!("{multiplexer} no longer reports its session")
        }
        (Cause::ServerGone, _) => format!("its {multiplexer} server is gone"),
        _ => cause.in_words().to_owned(),
    }
}

fn left(leftovers: &Leftovers) -> String {
    match leftovers {
        Leftovers::None | Leftovers::Settling => String::new(),
        Leftovers::Some => ", and something of it still runs".to_owned(),
        Leftovers::Unknown(why) => format!(", and whether something of it still runs is unknown: {why}"),
    }
}

/// The start receipt and the window.
pub fn start(view: &AttemptView) -> String {
    match &view.start {
        Observation::Unknown(why) => format!("unknown: {why}"),
        Observation::Absent => "none".to_owned(),
        Observation::Known(receipt) => {
            let mut line = format!("keeper pid {} (started {})", receipt.keeper.pid, clock(receipt.at_ms));
            if let Some(cli) = view.spawned.known() {
                line = format!("pid {} (started {})", cli.cli.pid, clock(cli.at_ms));
            }
            let mux = super::report::MuxReport::of(view);
            if let (Some(window), Some(session)) = (mux.window_id.or(mux.pane_id), mux.session_id) {
                line.push_str(&format!(", window {window} in session {session}"));
            }
            if let (Some(backend), Some(pid)) = (mux.backend, mux.server_pid) {
                line.push_str(&format!(" of {backend} server {pid}"));
            }
            line
        }
    }
}

/// The lease, without its holders.
pub fn lease(view: &AttemptView) -> String {
    match &view.evidence.lease {
        Lease::Held => match view.start.known() {
            Some(start) => format!("held since {}", clock(start.at_ms)),
            None => "held".to_owned(),
        },
        Lease::Free => match view.evidence.emptied {
            Observation::Known(()) => "free, and no descendant is left".to_owned(),
            Observation::Absent | Observation::Unknown(_) => "free".to_owned(),
        },
        Lease::NoFile => "none".to_owned(),
        Lease::Unknown(why) => format!("unknown: {why}"),
    }
}

/// The exit receipt.
pub fn exit(view: &AttemptView) -> String {
    match &view.exit {
        Observation::Absent => "none".to_owned(),
        Observation::Unknown(why) => format!("unknown: {why}"),
        Observation::Known(receipt) => {
            let hangup = if receipt.hangup { ", after a hang-up of its terminal" } else { "" };
            format!("{} at {}{hangup}", end(&receipt.end), clock(receipt.at_ms))
        }
    }
}

/// The multiplexer's word on session and window.
pub fn session(view: &AttemptView) -> String {
    let e = &view.evidence;
    let server = view.server().map_or_else(|| "the server".to_owned(), |s| format!("server {}", s.pid));
    let session = super::report::MuxReport::of(view);
    let id = session.session_id.as_deref().unwrap_or("it");
    match (&e.server, &e.session, &e.window) {
        (ServerSeen::NotAsked, ..) => "not asked".to_owned(),
        (ServerSeen::Gone, ..) => format!("not there: {server} is gone"),
        (_, MuxObject::Absent, _) => format!("not there: {server} answered, and does not list {id}"),
        (_, MuxObject::Present, MuxObject::Present) => {
            let at = view
                .pane
                .as_ref()
                .map(|p| format!(", window {} in {}", p.window, super::page::shown(&p.session_name)));
            format!("there{}", at.unwrap_or_default())
        }
        (_, MuxObject::Present, _) => format!("there, without its window: {server} does not list that"),
        (_, MuxObject::NotServed(why) | MuxObject::Unknown(why), _) => format!("unknown: {why}"),
        (_, MuxObject::NotAsked, _) => "not asked".to_owned(),
    }
}

/// Everything about a run that could not be seen, each with its reason.
pub fn unknowns(view: &RunView) -> Vec<String> {
    let mut out = Vec::new();
    if let Observation::Unknown(why) = &view.file {
        out.push(format!("what was asked: {why}"));
    }
    if matches!(view.file, Observation::Absent) {
        out.push("what was asked: run.json is missing".to_owned());
    }
    if let Observation::Unknown(why) = &view.record {
        out.push(format!("record: {why}"));
    }
    if matches!(view.record, Observation::Absent) {
        out.push("record: state.json is missing".to_owned());
    }
    if let EngineSeen::Unknown(why) = &view.engine.seen {
        out.push(format!("engine: {why}"));
    }
    if let Observation::Unknown(why) = &view.stop {
        out.push(format!("stop request: {why}"));
    }
    match &view.attempts {
        Observation::Unknown(why) => out.push(format!("attempts: {why}")),
        Observation::Known(attempts) => {
            for attempt in attempts {
                out.extend(
                    attempt.unknowns().into_iter().map(|what| format!("attempt {}: {what}", attempt.n)),
                );
                if let Verdict::Unknown { why } = &attempt.verdict
                    && !attempt.unknowns().iter().any(|u| *u == why.to_string())
                {
                    out.push(format!("attempt {}: {why}", attempt.n));
                }
            }
        }
        Observation::Absent => {}
    }
    out
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_in_words() {
        assert_eq!(end(&End::Code(3)), "exited 3");
        assert_eq!(end(&End::Signal(9)), "ended by signal 9 (SIGKILL)");
        assert_eq!(end(&End::Signal(15)), "ended by signal 15 (SIGTERM)");
        assert_eq!(end(&End::Signal(63)), "ended by signal 63");
        assert_eq!(end(&End::SpawnError("no such file".to_owned())), "could not be executed: no such file");
    }
}
