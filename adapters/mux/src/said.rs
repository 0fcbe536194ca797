//! What a client said, and what silence means: the part of classifying replies that the multiplexers share.

use crate::class::ReplyClass;

/// What is known of a client's end.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// The deadline passed and the client was killed.
    pub timed_out: bool,
    /// Its exit code; `None` if it did not exit by itself.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: &'a str,
    /// Its standard error.
    pub stderr: &'a str,
}

/// The class of an exit 0 without a word that speaks against it. `query` is the command's whole name.
pub fn quiet(query: &str, stdout: &str) -> ReplyClass {
    if query.starts_with("has-") {
        ReplyClass::ClaimsPresent
    } else if !stdout.trim().is_empty() {
        ReplyClass::Answered
    } else if is_act(query) {
        ReplyClass::Accepted
    } else {
        ReplyClass::Empty
    }
}

/// Whether a complaint is that an object of the multiplexer is not there, in lower case and from its start: `can't find
/// session: x`, `no such window: @1`; the oldest have no colon.
pub fn misses_an_object(line: &str) -> bool {
    const OBJECTS: [&str; 4] = ["session", "window", "pane", "client"];
    let object = line.strip_prefix("can't find ").or_else(|| line.strip_prefix("no such "));
    object.is_some_and(|rest| OBJECTS.iter().any(|o| rest.strip_prefix(o).is_some_and(ends_word)))
        || line.strip_prefix("session not found").is_some_and(ends_word)
}

fn ends_word(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with([':', ' '])
}

/// Commands that change something and are not asked for output.
fn is_act(query: &str) -> bool {
    const ACTS: [&str; 24] = [
        "attach-",
        "bind-",
        "break-",
        "copy-mode",
        "delete-",
        "detach-",
        "if-",
        "join-",
        "kill-",
        "link-",
        "load-",
        "move-",
        "new-",
        "paste-",
        "pipe-",
        "rename-",
        "resize-",
        "respawn-",
        "select-",
        "send-",
        "set-",
        "source-",
        "swap-",
        "unlink-",
    ];
    let others = ["split-window", "start-server", "switch-client", "wait-for"];
    ACTS.iter().any(|act| query.starts_with(act)) || others.contains(&query)
}
