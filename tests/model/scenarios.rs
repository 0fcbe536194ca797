//! What is explored: one command from the launch on, two commands at once from wherever engine and keeper come to rest,
//! and the variants of platform and world. Each with the number of its states.

use crate::model::{BARE, Scenario};
use crate::state::Command::{
    Archive, Cleanup, Delete, EraseQuarantined, Force, Nothing, Restore, Resume, Stop, Unproven,
};

/// From the launch on: the window may come late, the program may leave something, anybody may be killed.
const LAUNCHED: Scenario = Scenario { deaths: true, leftovers: true, late: true, faults: 1, ..BARE };

/// From wherever an engine and a keeper alone come to rest.
const RESTING: Scenario = Scenario { deaths: true, at_rest: true, sound_sleep: true, faults: 1, ..BARE };

/// Declares scenarios and their list.
macro_rules! scenarios {
    ($($(#[$doc:meta])* $name:ident = $scenario:expr;)*) => {
        $($(#[$doc])* pub(crate) const $name: Scenario = Scenario { name: stringify!($name), ..$scenario };)*

        /// All of them.
        pub(crate) const SCENARIOS: &[Scenario] = &[$($name,)*];
    };
}

scenarios! {
    /// Engine, keeper, program, and a multiplexer that does what it wants.
    ALONE = Scenario { mux: true, late: false, ..LAUNCHED };
    /// Somebody looks all the time.
    OBSERVED = Scenario { observer: true, ..LAUNCHED };
    /// A removal from the launch on.
    DELETED = Scenario { commands: [Delete, Nothing], mux: true, ..LAUNCHED };
    /// A stop from the launch on.
    STOPPED = Scenario { commands: [Stop, Nothing], mux: true, leftovers: false, ..LAUNCHED };
    /// A resume from the launch on, under observation.
    RESUMED = Scenario { commands: [Resume, Nothing], ..LAUNCHED };
    /// A quarantine from the launch on, while reads fail.
    PUT_ASIDE = Scenario { commands: [Unproven, Nothing], errors: true, deaths: false, ..LAUNCHED };
    /// A forced removal.
    FORCED = Scenario { commands: [Force, Nothing], mux: true, leftovers: true, ..RESTING };
    /// Two removals: the second finishes or undoes what the first left.
    TWO_DELETES = Scenario { commands: [Delete, Delete], leftovers: true, ..RESTING };
    /// A removal and a resume.
    DELETE_RESUME = Scenario { commands: [Delete, Resume], ..RESTING };
    /// A removal and a stop.
    DELETE_STOP = Scenario { commands: [Delete, Stop], ..RESTING };
    /// A stop and a resume.
    STOP_RESUME = Scenario { commands: [Stop, Resume], ..RESTING };
    /// Two stops.
    TWO_STOPS = Scenario { commands: [Stop, Stop], leftovers: true, ..RESTING };
    /// Two archives, on a disk that may not keep what is written.
    TWO_ARCHIVES = Scenario { commands: [Archive, Archive], leftovers: true, bad_disk: true, ..RESTING };
    /// An archive and a stop.
    ARCHIVE_STOP = Scenario { commands: [Archive, Stop], ..RESTING };
    /// An archive and a resume.
    ARCHIVE_RESUME = Scenario { commands: [Archive, Resume], bad_disk: true, ..RESTING };
    /// An archive of a run that was resumed after an archive was interrupted.
    OLD_ARCHIVE = Scenario { commands: [Resume, Archive], old_archive: true, ..RESTING };
    /// A quarantine that is interrupted, and a removal.
    QUARANTINE_DELETED = Scenario { commands: [Unproven, Delete], tear: true, faults: 2, ..RESTING };
    /// A quarantine of a launch whose window may come at any time.
    QUARANTINE_LATE = Scenario { commands: [Unproven, Restore], errors: true, late: true, ..RESTING };
    /// A cleanup and a resume.
    CLEANUP_RESUME = Scenario { commands: [Cleanup, Resume], mux: true, ..RESTING };
    /// Two resumes.
    TWO_RESUMES = Scenario { commands: [Resume, Resume], ..RESTING };
    /// A quarantine and its end.
    QUARANTINE_ERASED =
        Scenario { commands: [Unproven, EraseQuarantined], errors: true, tear: true, leftovers: true, ..RESTING };
    /// A quarantine and the way back.
    QUARANTINE_RESTORED =
        Scenario { commands: [Unproven, Restore], errors: true, tear: true, leftovers: true, ..RESTING };
    /// A removal while others take names, ids and pids that were ours.
    STRANGERS_DELETE = Scenario { commands: [Force, Nothing], strangers: true, mux: true, ..RESTING };
    /// A cleanup while others do.
    STRANGERS_CLEANUP = Scenario { commands: [Cleanup, Nothing], strangers: true, mux: true, ..RESTING };
    /// A window's command is executed again.
    RESPAWNED = Scenario { respawn: true, deaths: false, late: false, leftovers: false, ..LAUNCHED };
    /// What went away is named.
    CAUSES = Scenario { causes: true, mux: true, reboot: true, strangers: true, leftovers: false, late: false, ..LAUNCHED };
    /// A stop from a shell that the agent started.
    INSIDE = Scenario { commands: [Stop, Nothing], inside: true, ..RESTING };
    /// The host restarts.
    REBOOTED = Scenario { commands: [Stop, Delete], reboot: true, leftovers: true, ..RESTING };
    /// Leftovers that nothing sees but their keeper.
    HIDDEN = Scenario { commands: [Force, Nothing], leftovers: true, hidden: true, ..RESTING };
    /// A kernel without autogroups.
    NO_AUTOGROUP = Scenario { commands: [Delete, Nothing], leftovers: true, no_autogroup: true, strangers: true, ..RESTING };
    /// The commands run in another pid namespace.
    FOREIGN_SPACE = Scenario { commands: [Force, Nothing], leftovers: true, foreign_space: true, strangers: true, ..RESTING };
    /// A platform that ends children first and the keeper last.
    WINDOWS = Scenario { commands: [Stop, Nothing], windows: true, leftovers: false, ..LAUNCHED };
    /// A run with a plan.
    PLANNED = Scenario { commands: [Delete, Resume], plan: true, ..RESTING };
}
