//! How a person gets to a pane.

use crate::Tmux;
use crate::argv::{Script, Verb};
use loopmux_mux::{AttachPlan, ByHand, Here, PaneId, SessionId, SessionName};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Reads where a process runs out of tmux's variables: `socket,pid,session` and the pane's id.
pub(crate) fn here(tmux: Option<&OsStr>, pane: Option<&OsStr>) -> Option<Here> {
    let text = tmux?.as_bytes();
    // A path can hold commas, the two numbers cannot.
    let mut parts = text.rsplitn(3, |b| *b == b',');
    let (session, pid, socket) = (parts.next()?, parts.next()?, parts.next()?);
    if socket.is_empty() {
        return None;
    }
    let pane = pane.and_then(OsStr::to_str).filter(|p| crate::tags::is_id('%', p)).map(PaneId::from_backend);
    let session = std::str::from_utf8(session).ok().map(|n| format!("${n}"));
    Some(Here {
        socket: PathBuf::from(OsStr::from_bytes(socket)),
        session: session.filter(|s| crate::tags::is_id('$', s)).map(SessionId::from_backend),
        server_pid: std::str::from_utf8(pid).ok().and_then(|p| p.parse().ok()),
        pane,
    })
}

impl Tmux {
    /// For a person: commands by their whole names, and the exact session.
    pub(crate) fn words_by_hand(&self, name: &SessionName) -> ByHand {
        let words = |command: &str| {
            let client = [self.binary.as_os_str(), OsStr::new("-S"), self.socket.path.as_os_str()];
            let command = [command.to_owned(), "-t".to_owned(), format!("={name}")];
            client.into_iter().map(OsStr::to_owned).chain(command.into_iter().map(Into::into)).collect()
        };
        ByHand { look: words("attach-session"), end: words("kill-session") }
    }

    pub(crate) fn plan_attach(&self, pane: &PaneId, session: &SessionId, here: Option<&Here>) -> AttachPlan {
        // The session's own link of the pane's window, with that pane in front.
        let target = format!("{session}:.{pane}");
        let attach = self.for_terminal(&Script::new().then(Verb::Attach, ["-t", &target]));
        match here {
            None => AttachPlan::Attach(attach),
            Some(here) if same_socket(&here.socket, &self.socket.path) => {
                AttachPlan::Switch(self.for_terminal(&Script::new().then(Verb::Switch, ["-t", &target])))
            }
            Some(here) => AttachPlan::Refused {
                why: format!(
                    "this terminal is inside the server at {}, and the window is in the one at {}",
                    here.socket.display(),
                    self.socket.path.display()
                ),
                instead: attach,
            },
        }
    }
}

/// Two paths of one socket: by their text, or by what they lead to.
fn same_socket(a: &Path, b: &Path) -> bool {
    let node = |path: &Path| std::fs::metadata(path).map(|m| (m.dev(), m.ino()));
    a == b || matches!((node(a), node(b)), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_socket_pid_and_pane() {
        let found = here(Some(OsStr::new("/tmp/a,b/s,4242,3")), Some(OsStr::new("%17"))).unwrap();
        assert_eq!(found.socket, Path::new("/tmp/a,b/s"));
        assert_eq!(found.server_pid, Some(4242));
        assert_eq!(found.session, Some(SessionId::from_backend("$3")));
        assert_eq!(found.pane, Some(PaneId::from_backend("%17")));
    }

    #[test]
    fn what_is_not_there_is_not_guessed() {
        assert_eq!(here(None, Some(OsStr::new("%1"))), None);
        assert_eq!(here(Some(OsStr::new("")), None), None);
        assert_eq!(here(Some(OsStr::new(",1,2")), None), None);
        let odd = here(Some(OsStr::new("/s,x,y")), Some(OsStr::new("pane"))).unwrap();
        assert_eq!((odd.server_pid, odd.session, odd.pane), (None, None, None));
    }
}
