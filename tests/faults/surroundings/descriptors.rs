//! A process that may open few files, or none.

use super::{Zoo, words};
use crate::harness::{World, eventually, finish, finish_child};
use crate::oracle::{judge, lives, living, remove_all};
use crate::support::{server, world};

/// With the first not even the program's libraries can be opened; with the last nothing is missing.
const LIMITS: [u32; 16] = [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 20, 24, 32];

fn limit(n: u32) -> Vec<std::ffi::OsString> {
    words(["prlimit", &format!("--nofile={n}:{n}")])
}

#[test]
fn commands_that_may_open_few_files_end_and_remove_nothing() {
    let mut zoo = Zoo::new();
    let mut refused = 0;
    for n in LIMITS {
        let what = format!("{n} descriptors");
        let list = zoo.spares(&limit(n), &["list", "--json"], &what);
        refused += u32::from(list.code != Some(0));
    }
    for n in [5, 7, 9, 10, 11, 12, 13, 14, 16, 20] {
        zoo.endure(&limit(n), &format!("{n} descriptors"));
    }
    assert!(refused > 0, "no limit was too low");
    let enough = zoo.spares(&limit(32), &["list", "--json"], "many descriptors");
    assert_eq!(enough.code, Some(0), "no limit was high enough: {enough:?}");
    zoo.recovers("after few descriptors");
}

#[test]
fn a_stop_that_may_open_few_files_tells_the_truth() {
    let world = world();
    server(&world);
    for n in LIMITS {
        let mut zoo = Stopped { run: crate::states::started(&world, "stay"), world: &world };
        zoo.stop(n);
    }
    remove_all(&world, false, "after stops with few descriptors");
}

struct Stopped<'w> {
    world: &'w World,
    run: String,
}

impl Stopped<'_> {
    #[track_caller]
    fn stop(&mut self, n: u32) {
        let mut command = self.world.bare("prlimit");
        command.arg(format!("--nofile={n}:{n}")).arg(&self.world.program);
        command.args(["stop", "--grace", "200ms", &self.run]);
        let ran = finish(command);
        assert!(ran.code.is_some_and(|code| code != 101), "{n} descriptors: {ran:?}");
        let left: Vec<_> = living(self.world).into_iter().filter(|l| l.run == self.run && lives(l)).collect();
        assert!(ran.code != Some(0) || left.is_empty(), "{n} descriptors: {ran:?}, and {left:?} lives");
        judge(self.world, &[0, 137, 143], &format!("a stop with {n} descriptors"));
        self.world.loopmux(["stop", "--grace", "200ms", &self.run]).exits(0);
    }
}

#[test]
fn a_launch_that_may_open_few_files_is_told_and_leaves_nothing_that_cannot_go() {
    let world = world();
    server(&world);
    let mut fates = std::collections::BTreeSet::new();
    for n in LIMITS {
        for how in [&["run", "-d"][..], &["run"]] {
            let mut command = world.bare("prlimit");
            command.arg(format!("--nofile={n}:{n}")).arg(&world.program).args(how);
            command.args(["--", "agent", "exit", "0"]);
            let ran = finish(command);
            let when = format!("{how:?} with {n} descriptors: {ran:?}");
            assert!(ran.code.is_some_and(|code| code != 101), "{when}");
            fates.insert(ran.code);
            eventually(&format!("{when}: the end of its agent"), || {
                let left: Vec<_> = living(&world).into_iter().filter(lives).collect();
                if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
            });
            judge(&world, &[0], &when);
        }
    }
    assert!(fates.contains(&Some(0)) && fates.len() > 1, "{fates:?}");
    remove_all(&world, false, "after launches with few descriptors");
}

/// Every window's keeper may open few files.
#[test]
fn a_keeper_that_may_open_few_files_starts_nothing_or_tells_its_end() {
    let mut world = world();
    let real = world.program.clone();
    let programs = world.file("programs");
    std::fs::create_dir(&programs).expect("a directory");
    std::fs::copy(&real, programs.join("loopmux")).expect("a copy");
    world.program = programs.join("loopmux");
    server(&world);
    let mut ends = std::collections::BTreeSet::new();
    for n in LIMITS {
        let keeper = programs.join("loopmux-keep");
        let real = real.with_file_name("loopmux-keep");
        // What it starts may open as many as it likes.
        let script = format!("#!/bin/sh\nulimit -Sn {n}\nexec {} \"$@\"\n", real.display());
        std::fs::write(&keeper, script).expect("a script");
        let executable = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
        std::fs::set_permissions(&keeper, executable).expect("chmod");
        let child = world.start(["run", "--json", "--", "agent", "exit", "7"]);
        let ran = finish_child(child);
        let when = format!("a keeper with {n} descriptors: {ran:?}");
        assert!(matches!(ran.code, Some(1 | 5 | 6 | 8)), "{when}");
        judge(&world, &[7], &when);
        let said = ran.json();
        let kind = said["data"]["attempts"][0]["verdict"]["kind"].as_str().unwrap_or("none").to_owned();
        let code = &said["data"]["attempts"][0]["verdict"]["code"];
        assert!(kind != "exited" || *code == 7 || said.to_string().contains("spawn_error"), "{when}");
        ends.insert(kind);
    }
    assert!(ends.contains("exited") && ends.len() > 1, "{ends:?}");
    remove_all(&world, false, "after keepers with few descriptors");
}

/// Neither is a server started that could not open what it needs: it would spin, and nobody could tell it to end.
#[test]
fn a_doctor_that_may_open_few_files_leaves_no_server() {
    let world = world();
    for n in [8, 10, 12, 16, 24, 40] {
        let mut command = world.bare("prlimit");
        command.arg(format!("--nofile={n}:{n}")).arg(&world.program).args(["doctor", "--json"]);
        let ran = finish(command);
        assert_ne!(ran.code, Some(0), "{n} descriptors: {ran:?}");
        eventually("the end of every process", || {
            let left: Vec<u32> = world.processes().iter().map(|h| h.identity().pid).collect();
            if left.is_empty() { Ok(()) } else { Err(format!("{n} descriptors: {left:?} after {ran:?}")) }
        });
        assert!(n < 24 || ran.out.contains("ulimit -n"), "{ran:?}");
    }
}
