//! Every combination of evidence.

use super::*;

fn why() -> Why {
    Why::new("test")
}

fn seen<T: Clone>(known: T) -> [Observation<T>; 3] {
    [Observation::Known(known), Observation::Absent, Observation::Unknown(why())]
}

/// Every combination of every field that a verdict reads. The multiplexer's word is tried apart.
fn every_evidence(mut check: impl FnMut(&Evidence)) -> u64 {
    let ends = [End::Code(0), End::Code(3), End::Signal(9), End::SpawnError("no such file".into())];
    let mut exits: Vec<Observation<ExitFact>> = vec![Observation::Absent, Observation::Unknown(why())];
    for end in &ends {
        for hangup in [false, true] {
            exits.push(Observation::Known(ExitFact { end: end.clone(), hangup }));
        }
    }
    let hangups = [
        Observation::Known(HangupFact { cause: Some(Cause::SessionKilled) }),
        Observation::Known(HangupFact { cause: None }),
        Observation::Absent,
        Observation::Unknown(why()),
    ];
    let leases = [Lease::Held, Lease::Free, Lease::NoFile, Lease::Unknown(why())];
    let lives = [Life::Alive, Life::Gone, Life::Unknown(why())];
    let hosts = [Host::SameBoot, Host::OtherBoot, Host::Unknown(why())];
    let mut n = 0;
    for cancelled in seen(()) {
        for refused in seen("no".to_owned()) {
            for start in seen(()) {
                for lease in &leases {
                    for exit in &exits {
                        for hangup in &hangups {
                            for leftovers in seen(1) {
                                for (host, keeper, server_process) in triples(&hosts, &lives) {
                                    n += 1;
                                    check(&Evidence {
                                        cancelled: cancelled.clone(),
                                        refused: refused.clone(),
                                        start: start.clone(),
                                        lease: lease.clone(),
                                        exit: exit.clone(),
                                        hangup: hangup.clone(),
                                        leftovers: leftovers.clone(),
                                        host,
                                        keeper,
                                        server_process,
                                        ..Evidence::none()
                                    });
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    n
}

fn triples(hosts: &[Host], lives: &[Life]) -> Vec<(Host, Life, Life)> {
    let mut all = Vec::new();
    for host in hosts {
        for keeper in lives {
            for server in lives {
                all.push((host.clone(), keeper.clone(), server.clone()));
            }
        }
    }
    all
}

/// What each verdict needs, stated apart from how it is decided.
#[test]
fn every_end_rests_on_stable_facts_and_on_nothing_else() {
    let n = every_evidence(|e| {
        let verdict = decide(e);
        let started = e.start == Observation::Known(());
        match &verdict {
            Verdict::Exited { end, .. } => {
                assert!(started, "{e:?}");
                let fact = ExitFact { end: end.clone(), hangup: false };
                assert_eq!(e.exit, Observation::Known(fact), "{e:?}");
            }
            Verdict::Lost { end: Some(end), .. } => {
                assert!(started, "{e:?}");
                let fact = ExitFact { end: end.clone(), hangup: true };
                assert_eq!(e.exit, Observation::Known(fact), "{e:?}");
            }
            Verdict::Lost { end: None, leftovers, .. } => {
                assert!(started && e.lease == Lease::Free && e.exit == Observation::Absent, "{e:?}");
                assert_eq!(*leftovers, Leftovers::None, "{e:?}");
            }
            Verdict::NeverStarted { .. } => {
                assert!(e.start == Observation::Absent && e.exit == Observation::Absent, "{e:?}");
                let refused = matches!(e.refused, Observation::Known(_));
                let given_up = e.cancelled == Observation::Known(())
                    && e.refused == Observation::Absent
                    && matches!(e.lease, Lease::Free | Lease::NoFile);
                assert!(refused || given_up, "{e:?}");
            }
            Verdict::Running { .. } => {
                assert!(started && e.lease == Lease::Held && e.exit == Observation::Absent, "{e:?}");
            }
            Verdict::Launching => assert_eq!(e.start, Observation::Absent, "{e:?}"),
            Verdict::Unknown { .. } => {}
        }
    });
    assert_eq!(n, 3 * 3 * 3 * 4 * 10 * 4 * 3 * 27);
}

fn every_word_of_the_multiplexer() -> [(ServerSeen, MuxObject, MuxObject); 7] {
    [
        (ServerSeen::Same, MuxObject::Present, MuxObject::Present),
        (ServerSeen::Same, MuxObject::Present, MuxObject::Absent),
        (ServerSeen::Same, MuxObject::Absent, MuxObject::Absent),
        (ServerSeen::Other, MuxObject::Unknown(why()), MuxObject::Unknown(why())),
        (ServerSeen::Gone, MuxObject::NotServed(why()), MuxObject::NotServed(why())),
        (ServerSeen::Unknown(why()), MuxObject::Unknown(why()), MuxObject::Unknown(why())),
        (ServerSeen::NotAsked, MuxObject::NotAsked, MuxObject::NotAsked),
    ]
}

/// The multiplexer, the host and the processes never change what kind of verdict it is.
#[test]
fn what_can_flip_never_decides() {
    every_evidence(|e| {
        let blind = Evidence {
            host: Host::Unknown(why()),
            keeper: Life::Unknown(why()),
            server_process: Life::Unknown(why()),
            server: ServerSeen::NotAsked,
            session: MuxObject::NotAsked,
            window: MuxObject::NotAsked,
            ..e.clone()
        };
        assert_eq!(decide(e).kind(), decide(&blind).kind(), "{e:?}");
        for (server, session, window) in every_word_of_the_multiplexer() {
            let told = Evidence { server, session, window, ..e.clone() };
            assert_eq!(decide(e), decide(&told), "{told:?}");
        }
    });
}

/// Whatever a decision needs, taken away, makes it weaker: never an end out of ignorance.
#[test]
fn an_unknown_never_makes_an_end() {
    every_evidence(|e| {
        if decide(e).is_end() {
            return;
        }
        let weaker = [
            Evidence { start: Observation::Unknown(why()), ..e.clone() },
            Evidence { lease: Lease::Unknown(why()), ..e.clone() },
            Evidence { exit: Observation::Unknown(why()), ..e.clone() },
            Evidence { cancelled: Observation::Unknown(why()), ..e.clone() },
        ];
        for evidence in weaker {
            assert!(!decide(&evidence).is_end(), "{e:?}\n{evidence:?}");
        }
    });
}

#[test]
fn causes_follow_from_the_boot_the_hangup_and_the_kernel() {
    let ended = Evidence { start: Observation::Known(()), lease: Lease::Free, ..Evidence::none() };
    let cause = |e: &Evidence| match decide(e) {
        Verdict::Lost { cause, .. } => cause,
        other => panic!("{other:?}"),
    };
    let hangup = |c| Observation::Known(HangupFact { cause: c });
    let with = |host, keeper, server_process, hangup| Evidence {
        host,
        keeper,
        server_process,
        hangup,
        ..ended.clone()
    };
    use Life::{Alive, Gone};
    let unknown = || Life::Unknown(why());
    assert_eq!(cause(&with(Host::SameBoot, Gone, Alive, Observation::Absent)), Cause::KeeperKilled);
    assert_eq!(cause(&with(Host::SameBoot, Gone, Gone, Observation::Absent)), Cause::ServerGone);
    assert_eq!(cause(&with(Host::SameBoot, Gone, unknown(), Observation::Absent)), Cause::Unexplained);
    assert_eq!(cause(&with(Host::SameBoot, unknown(), Alive, Observation::Absent)), Cause::Unexplained);
    assert_eq!(
        cause(&with(Host::OtherBoot, unknown(), unknown(), Observation::Absent)),
        Cause::HostRestarted
    );
    assert_eq!(
        cause(&with(Host::SameBoot, Gone, Alive, hangup(Some(Cause::WindowKilled)))),
        Cause::WindowKilled
    );
    assert_eq!(cause(&with(Host::SameBoot, Gone, Alive, hangup(None))), Cause::Unexplained);
    let receipt = Observation::Known(ExitFact { end: End::Signal(1), hangup: true });
    let seen = Evidence { exit: receipt, hangup: hangup(Some(Cause::SessionKilled)), ..ended.clone() };
    assert_eq!(cause(&seen), Cause::SessionKilled);
    let later = Evidence { host: Host::OtherBoot, ..seen };
    assert_eq!(
        cause(&later),
        Cause::SessionKilled,
        "a later reboot does not change what the keeper was told"
    );
}

#[test]
fn a_program_that_outlives_its_window_runs() {
    let e = Evidence {
        start: Observation::Known(()),
        lease: Lease::Held,
        hangup: Observation::Known(HangupFact { cause: Some(Cause::WindowKilled) }),
        window: MuxObject::Absent,
        ..Evidence::none()
    };
    assert_eq!(decide(&e), Verdict::Running { window_gone: Some(Cause::WindowKilled) });
}

#[test]
fn leftovers_keep_the_exit_code() {
    let e = Evidence {
        start: Observation::Known(()),
        lease: Lease::Held,
        exit: Observation::Known(ExitFact { end: End::Code(0), hangup: false }),
        keeper: Life::Alive,
        ..Evidence::none()
    };
    let end = End::Code(0);
    assert_eq!(decide(&e), Verdict::Exited { end: end.clone(), leftovers: Leftovers::Settling });
    let told = Evidence { leftovers: Observation::Known(2), ..e.clone() };
    assert_eq!(decide(&told), Verdict::Exited { end: end.clone(), leftovers: Leftovers::Some });
    let orphaned = Evidence { keeper: Life::Gone, ..e };
    assert_eq!(decide(&orphaned), Verdict::Exited { end, leftovers: Leftovers::Some });
}

#[test]
fn the_policy_table_holds_its_invariants() {
    for status in Status::ALL {
        let row = status.row();
        assert_eq!(serde_json::to_value(status).unwrap(), serde_json::Value::from(row.word));
        assert!(
            [row.active, row.is_final, row.derived].into_iter().filter(|x| *x).count() == 1,
            "{status}: exactly one of active, final, derived"
        );
        assert!(!(row.active && row.removable), "{status}: what is driven is never removed");
        assert!(!row.is_final || row.removable, "{status}: every final state reaches removal");
        assert!(!row.is_final || matches!(row.exit, 0 | 1 | 6 | 7), "{status}");
    }
    for never in [Status::Orphaned, Status::Unknown] {
        assert!(!never.row().removable && !never.row().resumable, "{never}");
    }
    assert_eq!(Status::ALL.iter().filter(|s| s.row().exit == 0).count(), 1);
}

#[test]
fn a_status_is_derived_from_record_engine_and_verdict() {
    let record = |status, more| Observation::Known(RecordSeen { status, more_to_decide: more });
    let exited = |code| Verdict::Exited { end: End::Code(code), leftovers: Leftovers::None };
    let lost = Verdict::Lost { cause: Cause::ServerGone, end: None, leftovers: Leftovers::None };
    let running = Verdict::Running { window_gone: None };
    let never = Verdict::NeverStarted { why: "x".into() };
    let unknown = Verdict::Unknown { why: why() };
    let gone = EngineSeen::Gone;
    let active = record(Status::Running, false);
    let of = |r: &Observation<RecordSeen>, e: &EngineSeen, v: Option<&Verdict>| derive_status(r, e, v);

    // What is final stays final, whatever anybody sees.
    for fin in [Status::Succeeded, Status::Failed, Status::Stopped, Status::Lost, Status::TimedOut] {
        for engine in [EngineSeen::Running, EngineSeen::Gone, EngineSeen::Unknown(why())] {
            for verdict in [None, Some(&running), Some(&unknown), Some(&lost)] {
                assert_eq!(of(&record(fin, true), &engine, verdict), fin);
            }
        }
    }
    // A record that cannot be read is unknown, whatever else is seen.
    for r in [Observation::Absent, Observation::Unknown(why())] {
        assert_eq!(of(&r, &gone, Some(&exited(0))), Status::Unknown);
    }
    assert_eq!(of(&active, &EngineSeen::Running, Some(&lost)), Status::Running);
    assert_eq!(of(&active, &EngineSeen::Unknown(why()), Some(&running)), Status::Unknown);
    assert_eq!(of(&active, &gone, Some(&running)), Status::Orphaned);
    assert_eq!(of(&active, &gone, Some(&Verdict::Launching)), Status::Unknown);
    assert_eq!(of(&active, &gone, Some(&unknown)), Status::Unknown);
    assert_eq!(of(&active, &gone, None), Status::Interrupted);
    assert_eq!(of(&active, &gone, Some(&exited(0))), Status::Succeeded);
    assert_eq!(of(&active, &gone, Some(&exited(3))), Status::Failed);
    assert_eq!(of(&active, &gone, Some(&lost)), Status::Lost);
    assert_eq!(of(&active, &gone, Some(&never)), Status::Failed);
    let plan = record(Status::Running, true);
    assert_eq!(of(&plan, &gone, Some(&exited(0))), Status::Interrupted);
    assert_eq!(of(&plan, &gone, Some(&lost)), Status::Interrupted);
    let paused = |more| record(Status::Paused, more);
    assert_eq!(of(&paused(true), &gone, Some(&exited(3))), Status::Paused);
    assert_eq!(of(&paused(true), &gone, None), Status::Paused);
    assert_eq!(of(&paused(false), &gone, Some(&exited(3))), Status::Failed);
    assert_eq!(of(&paused(true), &gone, Some(&running)), Status::Orphaned);
    let left = Verdict::Exited { end: End::Code(0), leftovers: Leftovers::Some };
    assert_eq!(of(&plan, &gone, Some(&left)), Status::Orphaned);
}

#[test]
fn exit_codes_of_several_runs_follow_the_contract() {
    assert_eq!(exit_code_of_all([]), 0);
    assert_eq!(exit_code_of_all([0, 0]), 0);
    assert_eq!(exit_code_of_all([0, 1, 7]), 7);
    assert_eq!(exit_code_of_all([1, 7, 6, 0]), 6);
    assert_eq!(exit_code_of_all([6, 8, 1]), 8);
    let lost = Verdict::Lost { cause: Cause::KeeperKilled, end: None, leftovers: Leftovers::None };
    assert_eq!(exit_code(Status::Interrupted, Some(&lost)), 6);
    assert_eq!(exit_code(Status::Interrupted, None), 1);
}
