//! Deletions, and what cleans up after runs.

use crate::scene::{Act, PLAIN, Scene};
use crate::states;

pub(crate) const SCENES: &[Scene] = &[
    DELETE,
    DELETE_OF_A_LAUNCH,
    DELETE_AFTER_A_RENAME,
    DELETE_AFTER_A_DECISION,
    DELETE_BY_FORCE,
    DELETE_UNPROVEN,
    CLEANUP,
    CLEANUP_AFTER_A_DELETE,
    CLEAN,
    CLEAN_QUARANTINE,
];

/// An ended run, with the window of its engine still open.
pub(crate) const DELETE: Scene = Scene {
    name: "a delete",
    prepare: states::ended_in_a_window,
    act: Act::Command(&["delete", "RUN"]),
    drives: &[(
        "delete",
        &[
            "lock.run",
            "lock.control",
            "replace.control.json",
            "make.trash",
            "remove.trash",
            "remove.commit",
            "remove.unlink",
            "remove.rmdir",
        ],
    )],
    ..PLAIN
};

/// A launch that nobody drives any more is given up first.
pub(crate) const DELETE_OF_A_LAUNCH: Scene = Scene {
    name: "a delete of a launch without an engine",
    prepare: states::unlaunched,
    act: Act::Command(&["delete", "RUN"]),
    drives: &[("delete", &["create.cancelled", "unlink.env.json", "remove.trash"])],
    ..PLAIN
};

/// Another delete died after its first rename: that one is undone.
pub(crate) const DELETE_AFTER_A_RENAME: Scene = Scene {
    name: "a delete after one that died before it decided",
    prepare: states::trashed,
    act: Act::Command(&["delete", "RUN"]),
    drives: &[("delete", &["remove.put-back", "remove.trash"])],
    ..PLAIN
};

/// Another delete died after its second rename: that one is finished.
pub(crate) const DELETE_AFTER_A_DECISION: Scene = Scene {
    name: "a delete after one that died after it decided",
    prepare: states::doomed,
    act: Act::Command(&["delete", "RUN"]),
    drives: &[("delete", &["remove.unlink", "remove.rmdir"])],
    ..PLAIN
};

/// A live run is stopped first.
pub(crate) const DELETE_BY_FORCE: Scene = Scene {
    name: "a delete by force",
    prepare: states::deaf,
    act: Act::Command(&["delete", "--force", "--grace", "100ms", "RUN"]),
    ends: true,
    drives: &[(
        "delete",
        &["write.stop.json", "stop.ask", "stop.kill-window", "stop.kill", "cleanup.kill", "remove.trash"],
    )],
    ..PLAIN
};

/// What is unknown is put aside.
pub(crate) const DELETE_UNPROVEN: Scene = Scene {
    name: "a delete without proof",
    prepare: states::torn,
    unknown: true,
    act: Act::Command(&["delete", "--unproven", "RUN"]),
    drives: &[("delete", &["make.trash", "remove.trash", "make.quarantine", "quarantine.move"])],
    ..PLAIN
};

/// A parked window is closed.
pub(crate) const CLEANUP: Scene = Scene {
    name: "a cleanup",
    prepare: states::ended_in_a_window,
    act: Act::Command(&["cleanup"]),
    drives: &[("cleanup", &["lock.run", "lock.control", "cleanup.kill"])],
    ..PLAIN
};

/// The window of a run that is gone is closed.
pub(crate) const CLEANUP_AFTER_A_DELETE: Scene = Scene {
    name: "a cleanup after a delete",
    prepare: states::removed_with_a_window,
    act: Act::Command(&["cleanup"]),
    drives: &[("cleanup", &["cleanup.kill", "replace.control.json"])],
    ..PLAIN
};

/// Everything that has ended.
pub(crate) const CLEAN: Scene = Scene {
    name: "a clean",
    prepare: states::ended,
    act: Act::Command(&["clean", "--hard", "--retain", "0"]),
    drives: &[("clean", &["lock.run", "remove.trash", "remove.commit", "remove.rmdir"])],
    ..PLAIN
};

/// A run that was put aside is erased.
pub(crate) const CLEAN_QUARANTINE: Scene = Scene {
    name: "a clean of the quarantine",
    prepare: states::quarantined,
    unknown: true,
    act: Act::Command(&["clean", "--quarantine", "RUN", "--yes"]),
    drives: &[("clean", &["lock.run", "remove.commit", "remove.unlink", "remove.rmdir"])],
    ..PLAIN
};
