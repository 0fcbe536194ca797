//! Deaths right before and right after every durable step: of a launch, an end, a stop, a removal, and of whoever takes
//! part in it; and a disk that is full at each of these steps in turn. After each the next command finishes or undoes, and
//! the rules hold.

use crate::scene::needs_the_disk;
use crate::scenes::{self, ending, launch, removal, storing};
use std::collections::BTreeSet;

macro_rules! scenes {
    ($play:ident: $($name:ident: $scene:expr;)*) => {
        $(
            #[test]
            fn $name() {
                $scene.$play();
            }
        )*
    };
}

scenes! {
    play:
    deaths_in_a_launch: launch::FOREGROUND;
    deaths_in_a_detached_launch: launch::DETACHED;
    deaths_where_no_engine_comes: launch::WITHOUT_AN_ENGINE;
    deaths_where_a_keeper_comes_late: launch::REFUSED;
    deaths_in_a_resume: launch::RESUMED;
    deaths_in_a_detached_resume: launch::RESUMED_IN_A_WINDOW;
    deaths_at_an_exit: ending::EXIT;
    deaths_with_leftovers: ending::LEFTOVERS;
    deaths_at_a_hang_up: ending::HANG_UP;
    deaths_in_a_stop: ending::STOP;
    deaths_in_a_stop_of_one_that_does_not_listen: ending::STOP_OF_A_DEAF_ONE;
    deaths_in_a_stop_of_an_orphan: ending::STOP_OF_AN_ORPHAN;
    deaths_in_a_stop_of_an_orphan_that_does_not_listen: ending::STOP_OF_A_DEAF_ORPHAN;
    deaths_in_a_stop_of_a_launch: ending::STOP_OF_A_LAUNCH;
    deaths_in_a_stop_from_inside: ending::STOP_FROM_INSIDE;
    deaths_in_a_delete: removal::DELETE;
    deaths_in_a_delete_of_a_launch: removal::DELETE_OF_A_LAUNCH;
    deaths_where_a_delete_is_undone: removal::DELETE_AFTER_A_RENAME;
    deaths_where_a_delete_is_finished: removal::DELETE_AFTER_A_DECISION;
    deaths_in_a_delete_by_force: removal::DELETE_BY_FORCE;
    deaths_in_a_delete_without_proof: removal::DELETE_UNPROVEN;
    deaths_in_a_cleanup: removal::CLEANUP;
    deaths_in_a_cleanup_after_a_delete: removal::CLEANUP_AFTER_A_DELETE;
    deaths_in_a_clean: removal::CLEAN;
    deaths_in_a_clean_of_the_quarantine: removal::CLEAN_QUARANTINE;
    deaths_in_an_archive: storing::ARCHIVE;
    deaths_in_an_archive_after_another: storing::ARCHIVE_AFTER_AN_ARCHIVE;
    deaths_in_an_archive_after_a_beginning: storing::ARCHIVE_AFTER_A_BEGINNING;
    deaths_where_an_archive_is_withdrawn: storing::WITHDRAWN;
    deaths_in_a_restore: storing::RESTORE;
    deaths_in_a_restore_of_a_stranger: storing::RESTORE_UNRESERVED;
    deaths_in_a_restore_from_quarantine: storing::FROM_QUARANTINE;
}

// A cleanup writes nothing.
scenes! {
    play_on_full_disks:
    full_disks_in_a_launch: launch::FOREGROUND;
    full_disks_in_a_detached_launch: launch::DETACHED;
    full_disks_where_no_engine_comes: launch::WITHOUT_AN_ENGINE;
    full_disks_where_a_keeper_comes_late: launch::REFUSED;
    full_disks_in_a_resume: launch::RESUMED;
    full_disks_in_a_detached_resume: launch::RESUMED_IN_A_WINDOW;
    full_disks_at_an_exit: ending::EXIT;
    full_disks_with_leftovers: ending::LEFTOVERS;
    full_disks_at_a_hang_up: ending::HANG_UP;
    full_disks_in_a_stop: ending::STOP;
    full_disks_in_a_stop_of_one_that_does_not_listen: ending::STOP_OF_A_DEAF_ONE;
    full_disks_in_a_stop_of_an_orphan: ending::STOP_OF_AN_ORPHAN;
    full_disks_in_a_stop_of_an_orphan_that_does_not_listen: ending::STOP_OF_A_DEAF_ORPHAN;
    full_disks_in_a_stop_of_a_launch: ending::STOP_OF_A_LAUNCH;
    full_disks_in_a_stop_from_inside: ending::STOP_FROM_INSIDE;
    full_disks_in_a_delete: removal::DELETE;
    full_disks_in_a_delete_of_a_launch: removal::DELETE_OF_A_LAUNCH;
    full_disks_where_a_delete_is_undone: removal::DELETE_AFTER_A_RENAME;
    full_disks_where_a_delete_is_finished: removal::DELETE_AFTER_A_DECISION;
    full_disks_in_a_delete_by_force: removal::DELETE_BY_FORCE;
    full_disks_in_a_delete_without_proof: removal::DELETE_UNPROVEN;
    full_disks_in_a_cleanup_after_a_delete: removal::CLEANUP_AFTER_A_DELETE;
    full_disks_in_a_clean: removal::CLEAN;
    full_disks_in_a_clean_of_the_quarantine: removal::CLEAN_QUARANTINE;
    full_disks_in_an_archive: storing::ARCHIVE;
    full_disks_in_an_archive_after_another: storing::ARCHIVE_AFTER_AN_ARCHIVE;
    full_disks_in_an_archive_after_a_beginning: storing::ARCHIVE_AFTER_A_BEGINNING;
    full_disks_where_an_archive_is_withdrawn: storing::WITHDRAWN;
    full_disks_in_a_restore: storing::RESTORE;
    full_disks_in_a_restore_of_a_stranger: storing::RESTORE_UNRESERVED;
    full_disks_in_a_restore_from_quarantine: storing::FROM_QUARANTINE;
}

/// A step that nobody dies at is a hole in these tests.
#[test]
fn somebody_dies_at_every_step_that_there_is() {
    let scenes = scenes::all();
    let driven: BTreeSet<&str> =
        scenes.iter().flat_map(|s| s.drives).flat_map(|(_, steps)| steps.iter().copied()).collect();
    let listed: BTreeSet<&str> = loopmux::fault::POINTS.iter().copied().collect();
    assert_eq!(driven, listed);
    let tests = include_str!("points.rs");
    let played = |kind: &str| {
        let lines = tests.lines().filter(|l| l.contains("::") && l.trim_end().ends_with(';'));
        lines.filter(|l| l.starts_with(kind)).count()
    };
    for scene in &scenes {
        assert!(!scene.name.is_empty() && !scene.drives.is_empty());
    }
    assert_eq!(played("    deaths_"), scenes.len(), "a scene without a test");
    assert_eq!(played("    full_disks_"), scenes.len() - 1, "a scene without a test");
    let of_the_disk = listed.iter().filter(|step| needs_the_disk(step)).count();
    assert!(of_the_disk > 40 && of_the_disk < listed.len(), "{of_the_disk}");
}
