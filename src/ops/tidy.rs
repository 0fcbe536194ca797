//! Taking away what a killed keeper left behind: files that have no name yet, and the environment with its secrets.

use crate::observe::AttemptView;
use crate::run::files::name;
use crate::run::store::AttemptRead;
use crate::verdict::{Lease, Life};

/// What only a keeper writes. Whoever explains a hang-up may outlive the keeper, so its file is not among them.
const A_KEEPERS: [&str; 6] =
    [name::START, name::SPAWNED, name::EXIT, name::REFUSED, name::LEFTOVERS, name::EMPTIED];

/// Removes the unfinished files of an attempt that has ended, by proof, with a keeper that is gone. What cannot be
/// removed stays for the removal of the run.
pub fn tidy(read: &AttemptRead, view: &AttemptView) {
    let nobody_writes = view.evidence.keeper == Life::Gone && view.evidence.lease == Lease::Free;
    if !view.verdict.is_end() || !nobody_writes {
        return;
    }
    let removed = read.dir().remove_unfinished(&A_KEEPERS).and_then(|()| read.dir().remove_file(name::ENV));
    if let Err(e) = removed {
        tracing::debug!("left where it is: {e}");
    }
}
