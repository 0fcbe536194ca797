//! An act that dies at any of its steps leaves what the next one finishes or undoes.

use crate::archive::content;
use crate::harness::{Ran, World};
use crate::support::{ended, names, settled, with_fault, yard};
use std::collections::BTreeMap;
use std::path::PathBuf;

type Content = BTreeMap<PathBuf, Vec<u8>>;

/// A run that has ended, and everything of it.
fn made(world: &World) -> (String, Content) {
    let run = ended(world, "echo hi; exit 3");
    let content = content(&world.run_dir(&run));
    (run, content)
}

/// The same with a window of an engine, of which a removal takes note.
fn made_detached(world: &World) -> (String, Content) {
    let run = world.detach(["sh", "-c", "echo hi; exit 3"]);
    world.loopmux(["wait", &run]).exits(1);
    settled(world, &run);
    let content = content(&world.run_dir(&run));
    (run, content)
}

/// Where a run is, of all places in which it could be; it is whole there.
#[track_caller]
fn whereabouts(world: &World, run: &str, was: &Content) -> Vec<&'static str> {
    let mut at = Vec::new();
    let of_run = |place: &str| -> Vec<String> {
        names(world, place).into_iter().filter(|n| n == run || n.starts_with(&format!("{run}."))).collect()
    };
    for name in of_run("runs") {
        assert_eq!(content(&yard(world).join("runs").join(name)), *was, "the run is not whole");
        at.push("runs");
    }
    for name in of_run("trash") {
        if name.ends_with(".erasing") {
            at.push("erasing");
        } else {
            assert_eq!(content(&yard(world).join("trash").join(name)), *was, "the run in trash is not whole");
            at.push("trash");
        }
    }
    for name in of_run("quarantine") {
        assert_eq!(content(&yard(world).join("quarantine").join(name)), *was, "not whole in quarantine");
        at.push("quarantine");
    }
    if !of_run("archive").is_empty() {
        at.push("archive");
    }
    at
}

fn both(name: &str) -> [String; 2] {
    [format!("die:{name}.before"), format!("die:{name}.after")]
}

#[track_caller]
fn died(ran: &Ran, fault: &str) {
    assert_eq!(ran.code, None, "{fault} was not met: {ran:?}");
}

#[test]
fn a_delete_that_died_is_finished_or_undone_by_the_next() {
    let world = World::new();
    let faults = [
        "lock.run",
        "make.trash",
        "replace.control.json",
        "lock.control",
        "remove.trash",
        "remove.commit",
        "remove.unlink",
    ];
    let mut all: Vec<String> = faults.into_iter().flat_map(both).collect();
    all.extend(["die:remove.unlink.before@7".to_owned(), "die:remove.rmdir.before@1".to_owned()]);
    all.extend([
        "die:remove.rmdir.after@2".to_owned(),
        "die:remove.rmdir.before@4".to_owned(),
        "die:remove.rmdir.after@4".to_owned(),
    ]);
    for fault in all {
        let (run, was) = if fault.contains("control") { made_detached(&world) } else { made(&world) };
        if fault.contains("make.trash") && yard(&world).join("trash").exists() {
            std::fs::remove_dir(yard(&world).join("trash")).unwrap();
        }
        died(&with_fault(&world, &fault, &["delete", &run]), &fault);
        let at = whereabouts(&world, &run, &was);
        assert!(matches!(at[..], ["runs"] | ["trash"] | ["erasing"] | []), "{fault}: {at:?}");
        let decided = matches!(at[..], ["erasing"] | []);
        // Whichever of these commands comes first settles it.
        world.loopmux(["clean"]).exits(0);
        let settled = whereabouts(&world, &run, &was);
        if decided {
            assert_eq!(settled, Vec::<&str>::new(), "{fault}");
            world.loopmux(["delete", &run]).exits(3);
        } else {
            assert_eq!(settled, ["runs"], "{fault}");
            world.loopmux(["delete", &run]).exits(0);
        }
        assert_eq!(whereabouts(&world, &run, &was), Vec::<&str>::new(), "{fault}");
    }
    world.loopmux(["cleanup"]).exits(0);
    assert_eq!(crate::support::sessions(&world), Vec::<String>::new(), "every window was remembered");
}

#[test]
fn the_same_command_once_more_says_that_it_is_done() {
    let world = World::new();
    for fault in ["die:remove.trash.after", "die:remove.commit.after", "die:remove.unlink.after@5"] {
        let (run, _) = made(&world);
        died(&with_fault(&world, fault, &["delete", &run]), fault);
        let said = world.loopmux(["delete", "--json", &run]).exits(0).json();
        assert_eq!(said["data"]["removed"][0]["run"], run.as_str(), "{fault}: {said}");
        assert_eq!(names(&world, "trash"), Vec::<String>::new(), "{fault}");
    }
}

#[test]
fn a_stop_and_a_resume_find_a_run_whose_removal_died() {
    let world = World::new();
    for (command, code) in [("stop", 0), ("resume", 1)] {
        let (run, _) = made(&world);
        died(&with_fault(&world, "die:remove.trash.after", &["delete", &run]), command);
        assert_eq!(names(&world, "runs"), Vec::<String>::new());
        world.loopmux([command, &run]).exits(code);
        world.loopmux(["delete", &run]).exits(0);
    }
}

#[test]
fn an_archive_that_died_leaves_the_run_or_the_run_and_a_good_archive() {
    let world = World::new();
    let faults = [
        "make.archive",
        "archive.stage",
        "archive.publish",
        "remove.trash",
        "remove.commit",
        "remove.unlink",
    ];
    let mut all: Vec<String> = faults.into_iter().flat_map(both).collect();
    all.extend(["die:remove.rmdir.after@4".to_owned(), "die:remove.unlink.after@9".to_owned()]);
    for fault in all {
        let (run, was) = made(&world);
        if fault.contains("make.archive") {
            std::fs::remove_dir(yard(&world).join("archive")).ok();
        }
        died(&with_fault(&world, &fault, &["archive", &run]), &fault);
        let at: Vec<&str> = whereabouts(&world, &run, &was).into_iter().filter(|p| *p != "archive").collect();
        let archived = names(&world, "archive").contains(&format!("{run}.tar.gz"));
        assert!(
            archived || matches!(at[..], ["runs"] | ["trash"]),
            "{fault}: neither run nor archive: {at:?}"
        );
        let next = world.loopmux(["archive", "--json", &run]);
        match next.code {
            Some(0) => assert_eq!(next.json()["data"]["archived"][0]["run"], run.as_str(), "{fault}"),
            // The archive that died was done but for its words.
            Some(3) => assert!(at.is_empty(), "{fault}: {next:?}"),
            _ => panic!("{fault}: {next:?}"),
        }
        assert_eq!(whereabouts(&world, &run, &was), ["archive"], "{fault}");
        assert!(
            names(&world, "archive").iter().all(|n| !n.starts_with('.')),
            "{fault}: {:?}",
            names(&world, "archive")
        );
        world.loopmux(["restore", &run]).exits(0);
        assert_eq!(content(&world.run_dir(&run)), was, "{fault}");
        world.loopmux(["delete", &run]).exits(0);
    }
}

#[test]
fn a_restore_that_died_is_finished_by_the_next() {
    let world = World::new();
    for fault in ["restore.stage", "restore.publish", "archive.unlink"].into_iter().flat_map(both) {
        let (run, was) = made(&world);
        world.loopmux(["archive", &run]).exits(0);
        died(&with_fault(&world, &fault, &["restore", &run]), &fault);
        let at = whereabouts(&world, &run, &was);
        assert!(matches!(at[..], ["archive"] | ["runs", "archive"] | ["runs"]), "{fault}: {at:?}");
        let next = world.loopmux(["restore", &run]);
        assert_eq!(next.code, Some(if at == ["runs"] { 3 } else { 0 }), "{fault}: {next:?}");
        assert_eq!(whereabouts(&world, &run, &was), ["runs"], "{fault}");
        assert_eq!(names(&world, "archive"), Vec::<String>::new(), "{fault}");
        world.loopmux(["delete", &run]).exits(0);
    }
}

#[test]
fn a_quarantine_that_died_leaves_the_run_in_one_place() {
    let world = World::new();
    let spoil =
        |run: &str| std::fs::write(world.run_dir(run).join("attempts/1/spawned.json"), "torn").unwrap();
    // In trash it is as good as in its place: whoever comes next puts it back.
    let whole = |run: &str| {
        let places = ["runs", "trash", "quarantine"]
            .map(|p| names(&world, p).iter().filter(|n| n.starts_with(run)).count());
        assert_eq!(places.iter().sum::<usize>(), 1, "{places:?}");
        places[2] == 0
    };
    for fault in both("remove.trash").into_iter().chain(both("quarantine.move")) {
        let run = ended(&world, "exit 0");
        spoil(&run);
        died(&with_fault(&world, &fault, &["delete", "--unproven", &run]), &fault);
        if whole(&run) {
            world.loopmux(["delete", "--unproven", &run]).exits(0);
        }
        assert!(!whole(&run));
    }
    for fault in both("quarantine.restore") {
        let run = names(&world, "quarantine")[0].split('.').next().unwrap().to_owned();
        died(&with_fault(&world, &fault, &["restore", &run]), &fault);
        if !whole(&run) {
            world.loopmux(["restore", &run]).exits(0);
        }
        assert!(whole(&run));
    }
    for (n, fault) in both("remove.commit").into_iter().enumerate() {
        let run = ended(&world, "exit 0");
        spoil(&run);
        world.loopmux(["delete", "--unproven", &run]).exits(0);
        let erase = ["clean", "--quarantine", &run, "--yes"];
        died(&with_fault(&world, &fault, &erase), &fault);
        let ran = world.loopmux(erase);
        assert_eq!(ran.code, Some(if n == 0 { 0 } else { 3 }), "{fault}: {ran:?}");
        assert!(
            !names(&world, "trash").iter().chain(&names(&world, "quarantine")).any(|e| e.starts_with(&run))
        );
    }
}

#[test]
fn a_cleanup_that_died_is_finished_by_the_next() {
    let world = World::new();
    for fault in both("cleanup.kill") {
        let run = world.detach(["true"]);
        world.loopmux(["wait", &run]).exits(0);
        died(&with_fault(&world, &fault, &["cleanup"]), &fault);
        world.loopmux(["cleanup"]).exits(0);
        assert_eq!(crate::support::sessions(&world), Vec::<String>::new(), "{fault}");
    }
}

#[test]
fn a_clean_that_died_in_the_middle_of_several_runs_is_finished_by_the_next() {
    let world = World::new();
    let runs: Vec<String> = (0..3).map(|_| ended(&world, "exit 0")).collect();
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    died(&with_fault(&world, "die:remove.commit.after@2", &["clean", "--retain", "0"]), "the second run");
    assert_eq!(names(&world, "runs"), runs[2..]);
    world.loopmux(["clean", "--retain", "0"]).exits(0);
    let archives: Vec<String> = runs.iter().map(|r| format!("{r}.tar.gz")).collect();
    assert_eq!(names(&world, "archive"), sorted(archives));
    assert_eq!((names(&world, "runs"), names(&world, "trash")), (Vec::new(), Vec::new()));
}

/// Kills an archive after a time that is another one each turn: the moments that have no name.
#[test]
fn an_archive_that_is_killed_at_any_moment_loses_nothing() {
    use loopmux::process::Signal;
    let world = World::new();
    for turn in 0..12u64 {
        let (run, was) = made(&world);
        let child = world.start(["archive", &run]);
        std::thread::sleep(std::time::Duration::from_millis(turn * 4));
        let id = loopmux::process::identify(child.id()).unwrap().unwrap();
        if let loopmux::process::Opened::Handle(handle) = loopmux::process::Handle::open(&id) {
            let _ = handle.signal(Signal::Kill);
        }
        crate::harness::finish_child(child);
        let at: Vec<&str> = whereabouts(&world, &run, &was).into_iter().filter(|p| *p != "archive").collect();
        let archived = names(&world, "archive").contains(&format!("{run}.tar.gz"));
        assert!(archived || matches!(at[..], ["runs"] | ["trash"]), "turn {turn}: {at:?}");
        let next = world.loopmux(["archive", &run]);
        assert!(matches!(next.code, Some(0 | 3)), "turn {turn}: {next:?}");
        world.loopmux(["restore", &run]).exits(0);
        assert_eq!(content(&world.run_dir(&run)), was, "turn {turn}");
        world.loopmux(["delete", &run]).exits(0);
    }
}
