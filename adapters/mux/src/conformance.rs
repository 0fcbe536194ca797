//! What any backend must do, as checks that any implementation can be put through.
//!
//! A backend's own tests implement [`Harness`] for a private, throw-away server and call [`all`], or a single
//! check. A check panics with what it saw, like any test; it sets up through the seam, and through the harness
//! only what a person would do by hand.

mod acts;
mod looks;

pub use acts::*;
pub use looks::*;

use crate::ids::{PaneId, SessionId, SessionName, Tags};
use crate::multiplexer::{CreateSpec, Created, Multiplexer, Placement};
use crate::snapshot::{Answered, Owned, Scope, Snapshot, TagScope};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a check waits for what must happen: a guard against hanging, not a measure.
pub const HANG: Duration = Duration::from_secs(60);

/// A backend on a server of its own, without sessions, and a person's hands on it.
pub trait Harness {
    /// The backend under test.
    fn backend(&self) -> &dyn Multiplexer;

    /// A directory for windows to start in; it is there.
    fn directory(&self) -> PathBuf;

    /// A program that stays until it is killed; two words at least.
    fn idle(&self) -> Vec<OsString>;

    /// A program that notes every byte it reads. `ready` waits until it reads.
    fn recorder(&self) -> Vec<OsString>;

    /// Waits until the recorder in `pane` reads.
    fn recorder_is_ready(&self, pane: &PaneId);

    /// What the recorder in `pane` has noted so far.
    fn recorded(&self, pane: &PaneId) -> Vec<u8>;

    /// Makes the program in `pane` print a line, which then shows.
    fn print(&self, pane: &PaneId, line: &str);

    /// A program that keeps what a pane is piped to, in a place whose name has every odd character.
    fn sink(&self) -> Vec<OsString>;

    /// What the sink has kept so far.
    fn sunk(&self) -> Vec<u8>;

    /// A person makes a session of that name, without tags.
    fn session_by_hand(&self, name: &str) -> SessionId;

    /// A person renames a session.
    fn rename_by_hand(&self, session: &SessionId, name: &str);

    /// A person splits the pane's window: one more pane.
    fn split_by_hand(&self, pane: &PaneId) -> PaneId;

    /// A person sets the tags of a scope for the whole server, if the multiplexer lets objects inherit them.
    fn tag_globally(&self, at: TagScope, tags: &Tags);

    /// A person takes an object's own tags away, or puts others there.
    fn retag(&self, pane: &PaneId, at: TagScope, tags: Option<&Tags>);

    /// The program of a pane ends, and the pane is kept, dead, if the multiplexer can do that. False if it cannot.
    fn end_and_keep(&self, pane: &PaneId) -> bool;

    /// Ends the server and starts another at the same place, whose first session is of that name and not ours.
    fn restart_with(&self, name: &str);

    /// Whether each session has a server of its own.
    fn a_server_for_each_session(&self) -> bool {
        false
    }

    /// How many sessions are many.
    fn many(&self) -> u32 {
        60
    }

    /// Whether a window's tags stay when the pane goes that it was made with.
    fn windows_keep_their_tags(&self) -> bool {
        true
    }

    /// Whether a process runs, by the system's word and not the multiplexer's. `None` where panes have none.
    fn runs(&self, pid: u32) -> Option<bool>;
}

/// One check, with the name to call it by.
pub type Check = (&'static str, fn(&dyn Harness));

/// Every check.
pub const CHECKS: &[Check] = &[
    ("nothing_is_served_before_the_first_create", looks::nothing_is_served_before_the_first_create),
    ("a_created_session_reads_back_with_its_tags", looks::a_created_session_reads_back_with_its_tags),
    ("a_window_in_our_session_has_its_own_tags", looks::a_window_in_our_session_has_its_own_tags),
    ("foreign_and_untagged_objects_are_seen_as_such", looks::foreign_and_untagged_objects_are_seen_as_such),
    ("inherited_tags_are_nobodys", looks::inherited_tags_are_nobodys),
    ("names_are_exact", looks::names_are_exact),
    ("a_renamed_session_keeps_its_tags", looks::a_renamed_session_keeps_its_tags),
    ("a_split_is_not_tagged", looks::a_split_is_not_tagged),
    ("a_dead_pane_is_listed_as_dead", looks::a_dead_pane_is_listed_as_dead),
    ("many_panes_are_all_listed", looks::many_panes_are_all_listed),
    ("what_a_pane_shows_is_captured", looks::what_a_pane_shows_is_captured),
    ("a_plan_leads_in_moves_or_refuses", looks::a_plan_leads_in_moves_or_refuses),
    ("the_backend_is_usable", looks::the_backend_is_usable),
    ("unsafe_requests_are_refused_unasked", acts::unsafe_requests_are_refused_unasked),
    ("a_name_is_given_once", acts::a_name_is_given_once),
    ("only_a_session_of_ours_gets_a_window", acts::only_a_session_of_ours_gets_a_window),
    ("a_kill_reaches_its_scope_only", acts::a_kill_reaches_its_scope_only),
    ("a_kill_needs_the_token_at_that_moment", acts::a_kill_needs_the_token_at_that_moment),
    ("a_kill_of_what_is_gone_hits_nobody", acts::a_kill_of_what_is_gone_hits_nobody),
    ("a_kill_does_not_reach_another_server", acts::a_kill_does_not_reach_another_server),
    ("a_kill_goes_no_wider_than_its_proof", acts::a_kill_goes_no_wider_than_its_proof),
    ("pasted_bytes_arrive_exactly", acts::pasted_bytes_arrive_exactly),
    ("nothing_is_pasted_where_nobody_reads", acts::nothing_is_pasted_where_nobody_reads),
    ("enter_is_pressed", acts::enter_is_pressed),
    ("a_pane_is_piped_to_a_sink_of_any_name", acts::a_pane_is_piped_to_a_sink_of_any_name),
];

/// Runs every check, each on a harness of its own.
///
/// # Panics
/// A check failed.
pub fn all(new: impl Fn() -> Box<dyn Harness>) {
    for (_, check) in CHECKS {
        check(&*new());
    }
}

/// Tags for the `n`th thing.
pub fn tags(n: u32) -> Tags {
    Tags {
        token: format!("{:032x}", u128::from(n) + (1 << 100)),
        project: "00000000000000aa".to_owned(),
        run: format!("20261129-160042-{n:04x}"),
        state: "00000000000000bb".to_owned(),
    }
}

pub(crate) fn name(text: &str) -> SessionName {
    SessionName::new(text).expect("a safe name")
}

pub(crate) fn in_new_session(on: &dyn Harness, called: &str, n: u32, command: Vec<OsString>) -> CreateSpec {
    CreateSpec {
        placement: Placement::NewSession { name: name(called), tags: tags(n), size: (100, 30) },
        window: name("agent"),
        tags: tags(n),
        command,
        cwd: on.directory(),
    }
}

/// A session with one idle window, tagged as the `n`th.
pub(crate) fn idle(on: &dyn Harness, called: &str, n: u32) -> Created {
    let created = on.backend().create(&in_new_session(on, called, n, on.idle()));
    created.unwrap_or_else(|e| panic!("create {called}: {e}"))
}

pub(crate) fn look(on: &dyn Harness) -> Answered {
    match on.backend().snapshot(Scope::Everything) {
        Snapshot::Answered(answered) => answered,
        other => panic!("no answer: {other:?}"),
    }
}

/// The one object that carries the `n`th tags at that scope.
pub(crate) fn owned(on: &dyn Harness, n: u32, at: TagScope) -> Owned {
    let mut found = look(on).owned(&tags(n), at);
    assert_eq!(found.len(), 1, "tags {n} at {at:?}: {found:?}");
    found.remove(0)
}

/// Waits for what must come.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < HANG, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
