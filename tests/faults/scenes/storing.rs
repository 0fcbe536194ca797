//! Archives, and the way back.

use crate::harness::finish_child;
use crate::scene::{Act, PLAIN, Scene};
use crate::states::{self, is_somewhere};
use crate::support::start_with;

pub(crate) const SCENES: &[Scene] = &[
    ARCHIVE,
    ARCHIVE_AFTER_AN_ARCHIVE,
    ARCHIVE_AFTER_A_BEGINNING,
    WITHDRAWN,
    RESTORE,
    RESTORE_UNRESERVED,
    FROM_QUARANTINE,
];

/// An ended run.
pub(crate) const ARCHIVE: Scene = Scene {
    name: "an archive",
    prepare: states::ended,
    act: Act::Command(&["archive", "RUN"]),
    check: is_somewhere,
    drives: &[(
        "archive",
        &[
            "make.archive",
            "archive.stage",
            "archive.publish",
            "remove.trash",
            "remove.commit",
            "remove.rmdir",
        ],
    )],
    ..PLAIN
};

/// Another archive died when the run was in it.
pub(crate) const ARCHIVE_AFTER_AN_ARCHIVE: Scene = Scene {
    name: "an archive after one that died before it removed the run",
    prepare: states::half_archived,
    act: Act::Command(&["archive", "RUN"]),
    check: is_somewhere,
    drives: &[("archive", &["lock.run", "remove.trash", "remove.commit"])],
    ..PLAIN
};

/// Another archive died when it had begun.
pub(crate) const ARCHIVE_AFTER_A_BEGINNING: Scene = Scene {
    name: "an archive after one that died before it was good",
    prepare: states::hardly_archived,
    act: Act::Command(&["archive", "RUN"]),
    check: is_somewhere,
    drives: &[("archive", &["archive.sweep", "archive.stage", "archive.publish"])],
    ..PLAIN
};

/// Something changes in the run at the last moment: it stays, and its archive goes.
pub(crate) const WITHDRAWN: Scene = Scene {
    name: "an archive that is withdrawn",
    prepare: states::ended,
    act: Act::Play(|world, run, faults| {
        let held = world.file("held");
        let hold = format!("{faults},hold:remove.trash.after:{}", held.display());
        let child = start_with(world, &["archive", run.expect("a run")], &hold);
        states::await_file(&world.file("held.reached"));
        let trash = crate::oracle::entries(world, "trash");
        std::fs::write(trash[0].join("result.json"), "{}").expect("a late file");
        std::fs::write(held, "").expect("the end of the hold");
        finish_child(child);
    }),
    check: is_somewhere,
    drives: &[("archive", &["remove.put-back", "archive.withdraw"])],
    ..PLAIN
};

/// From the archive.
pub(crate) const RESTORE: Scene = Scene {
    name: "a restore",
    prepare: states::archived,
    act: Act::Command(&["restore", "RUN"]),
    check: is_somewhere,
    drives: &[("restore", &["lock.run", "restore.stage", "restore.publish", "archive.unlink"])],
    ..PLAIN
};

/// The archive was brought from elsewhere: nothing reserves its id here.
pub(crate) const RESTORE_UNRESERVED: Scene = Scene {
    name: "a restore of a run that is new here",
    prepare: |world| {
        let run = states::archived(world).expect("a run");
        let locks = crate::oracle::entries(world, "locks");
        for lock in locks.iter().filter(|l| l.to_string_lossy().contains(&run)) {
            std::fs::remove_file(lock).expect("the lock file");
        }
        Some(run)
    },
    act: Act::Command(&["restore", "RUN"]),
    check: is_somewhere,
    drives: &[("restore", &["lock.run", "restore.publish"])],
    ..PLAIN
};

/// From quarantine.
pub(crate) const FROM_QUARANTINE: Scene = Scene {
    name: "a restore from quarantine",
    prepare: states::quarantined,
    unknown: true,
    act: Act::Command(&["restore", "RUN"]),
    drives: &[("restore", &["quarantine.restore"])],
    ..PLAIN
};
