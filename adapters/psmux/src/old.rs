//! What is otherwise in 3.3.8, below the floor.
//!
//! There one execution says one command, a line inside it ends with the first command that prints and skips settings
//! that follow each other, and no option is a pane's own. So a session is made in one execution and tagged in others,
//! one for each option; the tags of a window and of its pane are
//! options of the session, which the seals with their ids keep for the one window that was made; and a condition's word
//! that it held comes behind the act, which the end of a server can swallow.

use crate::argv::List;
use crate::ids::pane_target;
use crate::kill::done;
use crate::snapshot::{Row, parse_row, row_format};
use crate::version::LIMITS;
use crate::{Heard, Psmux};
use loopmux_mux::{CreateSpec, Placement, ReplyClass, Trouble};

impl Psmux {
    /// What says that a condition held, and the act, in the order in which both come through.
    pub(crate) fn with_word(&self, act: List) -> List {
        if self.old { act.and(done()) } else { done().and(act) }
    }

    /// Executes the commands of a list, together or, where a line skips some, one by one; the last one's reply.
    ///
    /// # Errors
    /// One of them got no reply.
    pub(crate) fn say(&self, query: &str, target: &str, list: &List) -> Result<Heard, Trouble> {
        if !self.old {
            return self.ask(query, &self.client_at(target, list).deadline(self.act));
        }
        let mut commands = list.one_by_one();
        let last = commands
            .try_fold(None, |_, one| self.ask(query, &self.client(&one).deadline(self.act)).map(Some))?;
        last.ok_or_else(|| self.nothing_to_say(query))
    }

    fn nothing_to_say(&self, query: &str) -> Trouble {
        let said = "there was no command".to_owned();
        Trouble { class: ReplyClass::Failed, tried: self.tried(query), said }
    }

    /// What a command that makes a window prints: a row, of which old versions keep no tabs.
    pub(crate) fn made_format(&self) -> String {
        if self.old { "#{session_id} #{pane_id}".to_owned() } else { row_format() }
    }

    /// The rows of a new window: as it was made, and as it was tagged where that is said in one execution.
    pub(crate) fn made_rows(&self, heard: &Heard) -> Vec<Row> {
        if !self.old {
            return heard.stdout.lines().filter_map(parse_row).collect();
        }
        let Some((session, pane)) = heard.stdout.trim().split_once(' ') else { return Vec::new() };
        let target = pane_target(session, pane);
        let show = List::new().then(["display-message", "-p", "-t", &target, &row_format()]);
        match self.ask("display-message", &self.client(&show)) {
            Ok(heard) => heard.stdout.lines().filter_map(parse_row).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// Why a window cannot be made; `None` if it can.
    pub(crate) fn limit(&self, spec: &CreateSpec) -> Option<String> {
        match spec.placement {
            Placement::InSession(_) if self.old => {
                Some(format!("a second window of a session cannot be told from the first: {LIMITS}"))
            }
            _ => None,
        }
    }
}
