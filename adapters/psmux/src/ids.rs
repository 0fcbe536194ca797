//! Ids at the seam's edge.
//!
//! Every session has a server of its own, and each counts its windows and panes from 1. So a window's or pane's id here
//! has its session's in front: `$3:@1`, `$3:%1`. The session's is the one that psmux keeps across a change of its name.

use loopmux_mux::{PaneId, SessionId, WindowId};

/// Whether a session's, window's or pane's own id is what psmux makes: the sign of its kind and digits.
pub(crate) fn is_id(sign: char, text: &str) -> bool {
    text.strip_prefix(sign)
        .is_some_and(|n| !n.is_empty() && n.len() <= 20 && n.bytes().all(|b| b.is_ascii_digit()))
}

pub(crate) fn session(id: &str) -> SessionId {
    SessionId::from_backend(id)
}

pub(crate) fn window(session: &str, id: &str) -> WindowId {
    WindowId::from_backend(format!("{session}:{id}"))
}

pub(crate) fn pane(session: &str, id: &str) -> PaneId {
    PaneId::from_backend(format!("{session}:{id}"))
}

/// The session and the own id of a window or pane; `None` if it is none of psmux's.
pub(crate) fn parts(sign: char, id: &str) -> Option<(&str, &str)> {
    let (session, own) = id.split_once(':')?;
    (is_id('$', session) && is_id(sign, own)).then_some((session, own))
}

/// How a command names a pane by its qualified id.
pub(crate) fn pane_target(session: &str, own: &str) -> String {
    format!("{session}:.{own}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_its_session_in_front() {
        assert_eq!(parts('%', pane("$3", "%1").as_str()), Some(("$3", "%1")));
        assert_eq!(parts('@', window("$3", "@12").as_str()), Some(("$3", "@12")));
        for bad in ["%1", "$3", "$3:", "$3:@1", "x:%1", "$3:%1:", "$3:%1 ; kill-server", "$:%1"] {
            assert_eq!(parts('%', bad), None, "{bad}");
        }
    }
}
