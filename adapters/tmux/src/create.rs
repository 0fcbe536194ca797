//! Creating a window: made, configured, tagged and read back by one execution of the client.
//!
//! tmux runs a list of commands without reading its terminals in between, so a program that ends at once is still
//! there to be tagged; only a person's hook that waits comes between. A hook can also put another window or pane
//! where ours is looked for: the read-back tells, and a second execution names ours by its ids.

mod reply;
mod script;

use crate::argv::Verb;
use crate::snapshot::ended;
use crate::tags::is_id;
use crate::{Heard, Tmux, never_asked};
use loopmux_mux::spawn::Invocation;
use loopmux_mux::{CreateError, CreateSpec, Created, Owned, Placement, ReplyClass, Trouble};
use reply::{Landed, Made, NotMade};

/// The most that one request to tmux may hold, in bytes, with room for what it adds.
const LONGEST_REQUEST: usize = 15_000;

impl Tmux {
    pub(crate) fn create_window(&self, spec: &CreateSpec) -> Result<Created, CreateError> {
        let verb = match spec.placement {
            Placement::NewSession { .. } => Verb::NewSession,
            Placement::InSession(_) => Verb::NewWindow,
        };
        let refused = |said| CreateError::Refused(self.unasked(verb, said));
        check(spec).map_err(refused)?;
        if let Placement::NewSession { .. } = spec.placement {
            self.socket.prepare(self.uid).map_err(|e| refused(e.to_string()))?;
        }
        let client = self.client(&script::create(spec)).cwd(&spec.cwd).deadline(self.act);
        let size: usize = client.arguments().iter().map(|word| word.len() + 1).sum();
        if size > LONGEST_REQUEST {
            return Err(refused(format!("a request of {size} bytes, tmux takes about {LONGEST_REQUEST}")));
        }
        let heard = self.execute(verb, &client)?;
        let made = match reply::made(&heard.stdout) {
            Ok(made) => made,
            Err(NotMade::Other(said)) => return Err(refused(said)),
            Err(NotMade::Nothing) if reply::nothing_can_appear(&heard) => {
                return Err(CreateError::Refused(self.trouble(verb, &heard)));
            }
            Err(NotMade::Nothing) => return Err(CreateError::MayAppear(self.trouble(verb, &heard))),
        };
        let landed = self.read_back(verb, &made, &heard)?;
        let tagged = landed.is(&made, spec) || self.put_right(spec, &made, &landed);
        Ok(made.created(tagged))
    }

    fn execute(&self, verb: Verb, client: &Invocation) -> Result<Heard, CreateError> {
        client.run().map(|reply| self.heard(verb, reply)).map_err(|e| {
            let trouble = self.unasked(verb, e.to_string());
            if never_asked(&e) { CreateError::Refused(trouble) } else { CreateError::MayAppear(trouble) }
        })
    }

    fn unasked(&self, verb: Verb, said: String) -> Trouble {
        Trouble { class: ReplyClass::Failed, tried: self.tried(verb), said }
    }

    /// Where the tags went, by a reply that is whole. Anything less means that the window was made, and is gone or
    /// only half configured by now.
    fn read_back(&self, verb: Verb, made: &Made, heard: &Heard) -> Result<Landed, CreateError> {
        let mut lines = heard.stdout.lines();
        let complete = lines.next_back().is_some_and(|line| ended(line, made.server_pid))
            && heard.class == ReplyClass::Answered
            && heard.stderr.trim().is_empty();
        let may_appear = |trouble| Err(CreateError::MayAppear(trouble));
        if reply::server_ends_unattended(&heard.stdout) {
            let said = "the server's option exit-unattached is on and nobody is attached, so it ends at once; \
                        attach a terminal, or turn the option off";
            return may_appear(self.unasked(verb, said.to_owned()));
        }
        match lines.find_map(reply::landed) {
            Some(landed) if complete => Ok(landed),
            _ => may_appear(self.trouble(verb, heard)),
        }
    }

    /// Configures and tags the window by its ids, and takes the tags from where they went. Whether they read back
    /// now.
    fn put_right(&self, spec: &CreateSpec, made: &Made, landed: &Landed) -> bool {
        let client = self.client(&script::put_right(spec, made, landed)).deadline(self.act);
        let Ok(heard) = self.ask(Verb::SetOption, &client) else { return false };
        let complete = heard.stdout.lines().next_back().is_some_and(|line| ended(line, made.server_pid));
        complete && heard.stdout.lines().find_map(reply::landed).is_some_and(|landed| landed.is(made, spec))
    }
}

/// What no server needs to be asked for.
fn check(spec: &CreateSpec) -> Result<(), String> {
    spec.tags.check().map_err(|e| e.to_string())?;
    if spec.command.len() < 2 {
        return Err("a window's command needs two words at least: tmux gives one to a shell".to_owned());
    }
    match &spec.placement {
        Placement::NewSession { tags, size, .. } => {
            tags.check().map_err(|e| e.to_string())?;
            if size.0 == 0 || size.1 == 0 {
                return Err(format!("a window of {} by {} cells", size.0, size.1));
            }
            Ok(())
        }
        Placement::InSession(owned) => check_owned(owned),
    }
}

/// A proof of ownership whose parts stand in a condition.
pub(crate) fn check_owned(owned: &Owned) -> Result<(), String> {
    owned.tags().check().map_err(|e| e.to_string())?;
    let ids = [('$', owned.session().as_str()), ('@', owned.window().as_str()), ('%', owned.pane().as_str())];
    match ids.into_iter().find(|(sign, id)| !is_id(*sign, id)) {
        Some((_, id)) => Err(format!("{id:?} is no id of tmux")),
        None => Ok(()),
    }
}
