//! What kind of reply psmux gave.
//!
//! A client of psmux asks one server for each session, and what a server refused can come back in the place of a row,
//! on standard output and with exit 0. So an exit 0 is read as well, where tmux's would be believed:
//!
//! * a listing of which a row is blank or an error lacks what that row's server did not say;
//! * an error that is all there is, is the answer;
//! * what a pane shows is a program's own text, and only the wordings that psmux itself uses are taken for an error.

use loopmux_mux::said::{misses_an_object, quiet};
use loopmux_mux::{ReplyClass, Said};

/// The class of a reply to `query`, which is psmux's name of the command.
pub fn classify(query: &str, said: Said<'_>) -> ReplyClass {
    if said.timed_out {
        return ReplyClass::TimedOut;
    }
    match said.code {
        None => ReplyClass::Failed,
        Some(0) => at_exit_0(query, said),
        Some(_) => said
            .stderr
            .lines()
            .chain(said.stdout.lines().filter(|line| is_error_row(line)))
            .find_map(complaint)
            .unwrap_or(ReplyClass::Failed),
    }
}

fn at_exit_0(query: &str, said: Said<'_>) -> ReplyClass {
    if said.stdout.trim().is_empty()
        && let Some(class) = said.stderr.lines().find_map(complaint)
    {
        return class;
    }
    let mut lines = said.stdout.lines();
    if query.starts_with("has-") {
        return quiet(query, said.stdout);
    }
    if let (Some(only), None) = (lines.next(), lines.next())
        && !asks_every_server(query)
        && is_error_row(only)
    {
        return match complaint(only) {
            Some(class) => class,
            None if shows_text(query) => ReplyClass::Answered,
            None => ReplyClass::Failed,
        };
    }
    if query.starts_with("list-") && said.stdout.lines().any(|row| row.trim().is_empty() || is_error_row(row))
    {
        return ReplyClass::Partial;
    }
    quiet(query, said.stdout)
}

/// A question that no single server answers: its client asks each in turn.
fn asks_every_server(query: &str) -> bool {
    query == "list-sessions"
}

/// A question whose answer is whatever a program wrote.
fn shows_text(query: &str) -> bool {
    matches!(query, "capture-pane" | "show-buffer" | "save-buffer")
}

/// Whether a server answered with an error where a row belongs.
fn is_error_row(line: &str) -> bool {
    line.starts_with("ERROR: ")
}

/// What a line complains of; `None` for a line that is no complaint that psmux is known to make. Anchored at its start,
/// behind which the names stand that people choose.
fn complaint(line: &str) -> Option<ReplyClass> {
    let line = line.trim().to_ascii_lowercase();
    let line = line.strip_prefix("psmux: ").unwrap_or(&line);
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let starts = |wordings: &[&str]| wordings.iter().any(|w| line.starts_with(w));
    if misses_an_object(line) {
        Some(ReplyClass::Absent)
    } else if starts(&["no server running on "]) {
        Some(ReplyClass::NoListener)
    } else if starts(&["warning: no active session", "no current ", "no sessions"]) {
        Some(ReplyClass::NoTarget)
    } else if starts(&["invalid session key", "authentication required"]) {
        Some(ReplyClass::Denied)
    } else if starts(&["no response from server", "connection timed out"]) || outlived_its_kill(line) {
        Some(ReplyClass::TimedOut)
    } else if starts(&["server exited", "lost server", "[server exited", "[lost server"]) {
        Some(ReplyClass::ServerLost)
    } else if starts(&["duplicate session", "failed to create session", "server failed to start"]) {
        // What follows says why the new server did not come, and is about no server that was asked.
        Some(ReplyClass::Failed)
    } else {
        system_error(line)
    }
}

/// `kill-session: session 'x' still present after 5s`: the client gave up, and the server may still do it.
fn outlived_its_kill(line: &str) -> bool {
    line.starts_with("kill-session: ")
        && line.rsplit_once(" still present after ").is_some_and(|(_, time)| {
            let digits = time.strip_suffix('s').unwrap_or_default();
            !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
        })
}

/// A line that is only the system's word about a connection, with the numbers that Windows sockets have.
fn system_error(line: &str) -> Option<ReplyClass> {
    let number = line.strip_suffix(')')?.rsplit_once("(os error ")?.1;
    match number {
        "5" | "10013" => Some(ReplyClass::Denied),
        "10053" | "10054" => Some(ReplyClass::ServerLost),
        "10060" => Some(ReplyClass::TimedOut),
        "10061" => Some(ReplyClass::NoListener),
        _ => None,
    }
}
