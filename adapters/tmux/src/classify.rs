//! What kind of reply tmux gave.
//!
//! Wordings are anchored at the start of a line, because names and paths of people's own stand behind them, and
//! are read without regard to case. They count on a non-zero exit only, but for the ones that were measured on an
//! exit 0: tmux reports a refused access, a server without sessions, or one too old for it, and exits 0.

use loopmux_mux::said::{misses_an_object, quiet};
use loopmux_mux::{ReplyClass, Said};

/// The class of a reply to `query`, which is tmux's name of the command or a word that begins with it.
pub fn classify(query: &str, said: Said<'_>) -> ReplyClass {
    if said.timed_out {
        return ReplyClass::TimedOut;
    }
    match said.code {
        None => ReplyClass::Failed,
        Some(0) => said.stderr.lines().find_map(said_at_exit_0).unwrap_or_else(|| quiet(query, said.stdout)),
        Some(_) => said.stderr.lines().find_map(complaint).unwrap_or(ReplyClass::Failed),
    }
}

fn said_at_exit_0(line: &str) -> Option<ReplyClass> {
    const MEASURED: [&str; 3] =
        ["access not allowed", "no current target", "server version is too old for client"];
    let lower = line.trim().to_ascii_lowercase();
    MEASURED.iter().any(|wording| lower.starts_with(wording)).then(|| complaint(line)).flatten()
}

fn complaint(line: &str) -> Option<ReplyClass> {
    let line = line.trim().to_ascii_lowercase();
    let starts = |wordings: &[&str]| wordings.iter().any(|w| line.starts_with(w));
    if misses_an_object(&line) {
        return Some(ReplyClass::Absent);
    }
    if starts(&["no current ", "no sessions"]) {
        return Some(ReplyClass::NoTarget);
    }
    if starts(&["no server running on "]) {
        return Some(ReplyClass::NoListener);
    }
    if starts(&["server version is too old for client", "protocol version mismatch"]) {
        return Some(ReplyClass::Incompatible);
    }
    if starts(&["server exited", "lost server", "[server exited", "[lost server"]) {
        return Some(ReplyClass::ServerLost);
    }
    if starts(&["access not allowed", "client is read-only"]) {
        return Some(ReplyClass::Denied);
    }
    if line.starts_with("directory ") && line.ends_with(" has unsafe permissions") {
        return Some(ReplyClass::Denied);
    }
    const ON_THE_WAY: [&str; 5] = [
        "error connecting to ",
        "error creating ",
        "couldn't create directory ",
        "can't create socket: ",
        "failed to connect to server: ",
    ];
    if starts(&ON_THE_WAY) {
        return on_the_way(&line);
    }
    None
}

/// What the system said on the way to the socket: in brackets at the end, or behind the colon in old versions.
fn on_the_way(line: &str) -> Option<ReplyClass> {
    let bracketed = line.strip_suffix(')').and_then(|l| l.rsplit_once('(')).map(|(_, cause)| cause);
    match bracketed.or_else(|| line.rsplit_once(": ").map(|(_, cause)| cause))? {
        "no such file or directory" | "not a directory" => Some(ReplyClass::NoSocket),
        "connection refused" => Some(ReplyClass::NoListener),
        "permission denied" | "operation not permitted" => Some(ReplyClass::Denied),
        _ => None,
    }
}
