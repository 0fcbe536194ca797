//! Each guard taken out: the rule that breaks, the ability that is lost, or the proof that another guard stands behind
//! it.

use crate::explore::Outcome;
use crate::model::{GUARDS, Model, Scenario, without};
use crate::properties::{all_of, breaks};
use crate::reach;
use crate::rules;
use crate::scenarios::*;
use crate::state::{Report, State};
use loopmux::verdict::Status;

/// Declares one test for each set of guards without which a rule breaks.
macro_rules! breaking {
    ($($name:ident: L $rule:literal in $scenario:ident without $($guard:ident),+;)*) => {
        $(#[test]
        fn $name() {
            let guards = without(&[$(stringify!($guard)),+]);
            if let Err(how) = breaks(&$scenario, guards, $rule) {
                panic!("rule L{} holds without {:?}: {how}", $rule, [$(stringify!($guard)),+]);
            }
        })*

        /// The guards that a rule needs.
        const NEEDED: &[&str] = &[$($(stringify!($guard)),+),*];
    };
}

breaking! {
    a_lease_read_before_the_start_receipt: L 2 in ALONE without start_before_lease;
    an_exit_receipt_read_before_the_lease: L 2 in ALONE without lease_before_exit;
    a_start_receipt_read_once: L 14 in RESUMED without start_read_again;
    a_loss_read_in_a_directory_that_is_erased: L 2 in DELETE_STOP without place_is_checked;
    an_unreadable_file_taken_for_a_missing_one: L 10 in QUARANTINE_ERASED without unknown_is_unknown;
    a_listing_believed: L 11 in ALONE without listing_is_no_proof;
    a_removal_without_the_last_receipt: L 1 in TWO_DELETES without emptied_counts;
    an_exclusive_probe: L 9 in OBSERVED without probes_share;
    a_keeper_that_tries_once_for_its_lease: L 9 in OBSERVED without patience;
    a_lease_that_the_program_does_not_inherit: L 2 in ALONE without lease_inherited;
    a_keeper_that_does_not_look_again_for_another: L 14 in RESPAWNED without unused_after_lease;
    a_keeper_that_does_not_look_at_its_path: L 14 in DELETED without keeper_checks_path;
    a_keeper_that_does_not_look_for_cancelled: L 14 in ALONE without keeper_checks_cancelled;
    a_keeper_that_does_not_look_at_its_terminal_again: L 2 in ALONE without keeper_drains;
    a_keeper_that_waits_for_nobody: L 1 in TWO_DELETES without keeper_waits_for_descendants;
    a_receipt_without_a_sentinel: L 2 in WINDOWS without sentinel;
    an_answer_of_another_server_believed: L 12 in CAUSES without explains_by_identity;
    an_engine_lock_that_leaks: L 20 in ALONE without engine_lock_stays;
    a_record_written_without_the_run_lock: L 3 in STOP_RESUME without record_under_lock;
    a_final_record_overwritten: L 3 in STOP_RESUME without final_is_final, stop_looks_under_lock;
    a_record_not_read_again: L 3 in STOP_RESUME without record_read_again, stop_looks_under_lock;
    an_end_seen_before_the_run_lock: L 4 in STOP_RESUME without stop_looks_under_lock;
    an_attempt_that_is_not_counted: L 4 in FORCED without attempts_are_counted;
    a_write_that_makes_its_directory: L 8 in DELETE_STOP without writes_make_nothing;
    a_stop_without_a_look_at_the_whole_run: L 5 in STOPPED without stop_looks_last;
    a_stop_that_believes_the_kill: L 5 in STOPPED without stop_looks_again, stop_looks_last;
    a_stop_that_kills_the_keeper_first: L 5 in HIDDEN without stop_spares_keeper;
    a_stop_that_looks_at_leases_only: L 5 in TWO_STOPS without stop_sweeps;
    a_signal_by_number: L 7 in STRANGERS_DELETE without signals_by_handle;
    a_pid_of_another_namespace: L 22 in FOREIGN_SPACE without foreign_space_is_unknown;
    a_kill_by_name: L 6 in STRANGERS_DELETE without kills_by_token;
    a_kill_by_id_on_another_server: L 6 in STRANGERS_DELETE without kills_on_recorded_server;
    a_removal_without_the_run_lock: L 1 in DELETE_RESUME without acts_under_run_lock;
    a_removal_without_a_verdict: L 23 in TWO_DELETES without removal_needs_verdict;
    a_force_that_erases: L 23 in FORCED without force_needs_proof;
    a_launch_erased_before_it_was_given_up: L 1 in DELETED without launching_is_given_up_first, trash_is_looked_at;
    a_removal_without_a_second_look: L 14 in DELETED without trash_is_looked_at;
    an_erasing_without_a_mark: L 19 in TWO_DELETES without erasing_is_marked;
    an_undecided_removal_finished: L 23 in QUARANTINE_DELETED without undecided_is_put_back;
    a_quarantine_over_a_held_lease: L 1 in QUARANTINE_ERASED without quarantine_refuses_held;
    a_quarantine_without_another_look: L 18 in QUARANTINE_LATE without quarantine_looks_again;
    an_archive_not_read_back: L 19 in TWO_ARCHIVES without archive_is_read_back;
    an_older_archive_taken_for_this_one: L 19 in OLD_ARCHIVE without archive_is_compared;
    a_resume_over_what_lives: L 15 in RESUMED without resume_needs_end;
    a_cleanup_of_what_lives: L 2 in CLEANUP_RESUME without cleanup_needs_end;
    a_cleanup_by_run_id: L 13 in STRANGERS_CLEANUP without cleanup_by_token;
}

/// The system without a guard still keeps every rule.
fn keeps_every_rule(scenario: &Scenario, guards: &[&str]) -> (Model, Vec<State>) {
    let m = Model::new(*scenario, without(guards));
    let (found, _) = all_of(&m);
    let broken = found.states.iter().find_map(rules::broken);
    assert_eq!((found.outcome, broken), (Outcome::Complete, None), "without {guards:?}");
    (m, found.states)
}

/// Declares one test for each guard that another one stands behind: in the scenarios where it could matter, every rule
/// holds without it.
macro_rules! redundant {
    ($($name:ident: $guard:ident in $($scenario:ident),+;)*) => {
        $(#[test]
        fn $name() {
            $(keeps_every_rule(&$scenario, &[stringify!($guard)]);)+
        })*

        /// Those guards.
        const REDUNDANT: &[&str] = &[$(stringify!($guard)),*];
    };
}

redundant! {
    // The sweep finds whoever holds the lease.
    leftovers_that_hold_the_lease: leftovers_count in TWO_DELETES, TWO_ARCHIVES;
    // The look after the lease decides.
    a_first_look_for_another_keeper: unused_before_lease in RESPAWNED;
    // A later attempt needs the end of the earlier, which `cancelled` proves to a late keeper.
    a_look_for_a_later_attempt: keeper_checks_attempt in RESUMED;
    // Two keepers of one directory never both start.
    receipts_that_are_written_once: receipts_once in RESPAWNED;
    // Under the run lock nobody writes between the look and the write.
    the_record_read_once: record_read_again in DELETE_STOP;
    // Whoever looks under the run lock sees that it is final.
    a_record_that_is_not_final: final_is_final in DELETE_STOP;
    // The look at the whole run sees what a kill left.
    an_attempt_not_looked_at_again: stop_looks_again in FORCED;
    // The lease decides.
    a_multiplexer_that_vetoes_nothing: listing_vetoes in DELETED;
    // The second look sees what began meanwhile.
    a_launch_removed_without_cancelled: launching_is_given_up_first in DELETED;
    // What was decided stays true.
    an_erasing_taken_up_unprobed: erasing_is_probed in TWO_DELETES;
    // Nothing can begin in the quarantine.
    a_quarantine_erased_unseen: quarantine_is_looked_at in QUARANTINE_ERASED;
    // Under the run lock a free engine lock stays free.
    a_resume_that_takes_no_lock: resume_takes_engine_lock in TWO_RESUMES;
}

/// Without it a launch that never started is never known to.
#[test]
fn giving_up_without_cancelled_ends_nothing() {
    let (m, states) = keeps_every_rule(&ALONE, &["give_up_cancels"]);
    let failed =
        |s: &State| m.tables_read().record(s.record).status == Status::Failed && !s.attempts[0].refused;
    assert!(!states.iter().any(failed), "a launch that never started was recorded");
}

/// Without it a removal that was interrupted is in nobody's reach.
#[test]
fn a_trash_that_nobody_settles() {
    let (m, states) = keeps_every_rule(&TWO_DELETES, &["trash_is_recovered"]);
    let (_, stuck) = reach::unreachable(&m, &states);
    assert!(!stuck.is_empty());
}

/// Without either a stop from inside the run waits for itself.
#[test]
fn a_stop_from_inside_that_stays_or_does_not_register() {
    for guard in ["stop_leaves", "keeper_spares_stopper"] {
        let (_, states) = keeps_every_rule(&INSIDE, &[guard]);
        assert!(
            !states.iter().any(|s| s.mutators[0].report == Report::Success && s.faults == 1),
            "without {guard}"
        );
    }
}

/// The guards that an ability needs.
const ABILITIES: &[&str] = &["give_up_cancels", "trash_is_recovered", "stop_leaves", "keeper_spares_stopper"];

#[test]
fn every_guard_is_taken_out() {
    for guard in GUARDS {
        let lists = [NEEDED, REDUNDANT, ABILITIES];
        assert!(lists.iter().any(|list| list.contains(guard)), "nobody tries the system without {guard}");
    }
}
