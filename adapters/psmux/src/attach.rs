//! How a person gets to a pane, and where a process is.

use crate::argv::List;
use crate::ids::{is_id, pane, session};
use crate::{DATA_DIR, Psmux, endpoint};
use loopmux_mux::{AttachPlan, ByHand, Here, PaneId, ReplyClass, SessionId, SessionName};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What psmux sets in its panes.
pub(crate) struct Around {
    data: PathBuf,
    pane: String,
}

/// Reads whether a process runs in a pane of psmux. `TMUX` alone says only that there is some multiplexer.
pub(crate) fn around(get: impl Fn(&str) -> Option<OsString>) -> Option<Around> {
    get("PSMUX_SESSION").filter(|v| !v.is_empty())?;
    let tmux = get("TMUX")?.into_string().ok()?;
    let pane = get("TMUX_PANE")?.into_string().ok().filter(|p| is_id('%', p))?;
    // `DATA/NAMESPACE,PORT,0`: the port of the server, and no pid.
    let (before, _) = tmux.rsplit_once(',')?;
    let (socket, port) = before.rsplit_once(',')?;
    port.parse::<u16>().ok()?;
    let of_socket = || Some(PathBuf::from(&socket[..socket.rfind(['/', '\\'])?]));
    let data = endpoint::from_environment(get(DATA_DIR).as_deref()).or_else(of_socket)?;
    Some(Around { data, pane })
}

impl Psmux {
    pub(crate) fn where_we_are(&self, get: impl Fn(&str) -> Option<OsString>) -> Option<Here> {
        let around = around(&get)?;
        let ask = List::new().then(["display-message", "-p", "loopmux-here\t#{pid}\t#{session_id}"]);
        // The variable leads psmux to the server around us by its port; it has no other way to name it.
        let client = self.client(&ask).env("TMUX", get("TMUX").unwrap_or_default());
        let said = match (same_directory(&around.data, &self.data), self.ask("display-message", &client)) {
            (true, Ok(heard)) if heard.class == ReplyClass::Answered => heard.stdout,
            _ => String::new(),
        };
        let answer = said.trim().strip_prefix("loopmux-here\t").and_then(|rest| rest.split_once('\t'));
        let answer = answer.filter(|(_, id)| is_id('$', id));
        Some(Here {
            socket: around.data,
            server_pid: answer.and_then(|(pid, _)| pid.parse().ok()),
            session: answer.map(|(_, id)| session(id)),
            pane: answer.map(|(_, id)| pane(id, &around.pane)),
        })
    }

    fn for_terminal(&self, command: &str, target: &str) -> Vec<OsString> {
        vec![self.binary.clone().into(), command.into(), "-t".into(), target.into()]
    }

    /// For a person, whose shell has the data directory.
    pub(crate) fn words_by_hand(&self, name: &SessionName) -> ByHand {
        let exact = format!("={name}");
        ByHand {
            look: self.for_terminal("attach-session", &exact),
            end: self.for_terminal("kill-session", &exact),
        }
    }

    pub(crate) fn plan_attach(&self, _pane: &PaneId, session: &SessionId, here: Option<&Here>) -> AttachPlan {
        let attach = self.for_terminal("attach-session", session.as_str());
        match here {
            None => AttachPlan::Attach(attach),
            Some(here) if same_directory(&here.socket, &self.data) => {
                AttachPlan::Switch(self.for_terminal("switch-client", session.as_str()))
            }
            Some(here) => AttachPlan::Refused {
                why: format!(
                    "this terminal is inside the multiplexer at {}, and the window is in the one at {}",
                    here.socket.display(),
                    self.data.display()
                ),
                instead: attach,
            },
        }
    }
}

/// Two paths of one directory: by their text, as psmux compares them, or by what they lead to.
fn same_directory(a: &Path, b: &Path) -> bool {
    let text = |path: &Path| {
        let text = path.as_os_str().to_string_lossy().replace('/', "\\").to_lowercase();
        text.trim_end_matches('\\').to_owned()
    };
    text(a) == text(b) || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn env<'a>(vars: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<OsString> + 'a {
        |name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(OsStr::new(v)))
    }

    #[test]
    fn a_pane_of_psmux_is_told_from_one_of_another_multiplexer() {
        let tmux = ("TMUX", r"C:\data, odd/default,50123,0");
        let found = around(env(&[tmux, ("TMUX_PANE", "%3"), ("PSMUX_SESSION", "a")])).unwrap();
        assert_eq!(found.data, Path::new(r"C:\data, odd"));
        assert_eq!(found.pane, "%3");
        let own = [tmux, ("TMUX_PANE", "%3"), ("PSMUX_SESSION", "a"), (DATA_DIR, r"D:\d")];
        assert_eq!(around(env(&own)).unwrap().data, Path::new(r"D:\d"));
        assert!(around(env(&[tmux, ("TMUX_PANE", "%3")])).is_none());
        assert!(around(env(&[("PSMUX_SESSION", "a"), ("TMUX_PANE", "%3")])).is_none());
        assert!(around(env(&[tmux, ("PSMUX_SESSION", "a"), ("TMUX_PANE", "x")])).is_none());
    }

    #[test]
    fn a_directory_is_the_same_in_another_case() {
        assert!(same_directory(Path::new(r"C:\Data\x\"), Path::new("c:/data/X")));
        assert!(!same_directory(Path::new(r"C:\Data\x"), Path::new(r"C:\Data\y")));
    }
}
