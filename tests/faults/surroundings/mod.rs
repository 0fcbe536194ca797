//! Surroundings that refuse: files that cannot be opened, processes that cannot be seen, another boot or machine, no
//! multiplexer, small disks and layered ones. What lives goes on and is not called ended, nothing is removed without proof, and once
//! the surroundings are right again everything can be told, ended and removed.

mod descriptors;
mod disks;
mod machines;
mod processes;

use crate::harness::{Ran, World, eventually, pid, signal};
use crate::oracle::{entries, judge, listed, lives, living, no_secret, remove_all, run_dir};
use crate::states;
use crate::support::{server, world};
use loopmux::process::Signal;
use serde_json::Value;
use std::ffi::OsString;

/// Codes with which the agents here exit.
const CODES: [i64; 4] = [0, 7, 137, 143];

/// A world with a run of each kind, and surroundings into which its commands can be put.
pub(crate) struct Zoo {
    pub world: World,
    /// How the commands are executed where all is well.
    well: Vec<OsString>,
    /// An engine drives it.
    pub live: String,
    /// Its engine was killed, and its agent lives.
    pub orphan: String,
    /// Exited 7; made anew by [`Zoo::endure`].
    pub ended: String,
    /// Its keeper was killed: no receipt says how it ended, nor that nothing is left of it.
    pub lost: String,
    /// In an archive.
    pub archived: String,
    /// In quarantine.
    pub aside: String,
}

impl Zoo {
    /// Runs of each kind, on a server that was started where all is well.
    #[track_caller]
    pub(crate) fn new() -> Self {
        Self::in_world(world())
    }

    #[track_caller]
    pub(crate) fn in_world(world: World) -> Self {
        server(&world);
        let some = |run: Option<String>| run.expect("a run");
        let live = states::started(&world, "stay");
        let orphan = some(states::orphan(&world));
        let archived = some(states::archived(&world));
        let aside = some(states::quarantined(&world));
        let lost = states::started(&world, "deaf");
        let keeper = pid(&world.read(&lost, "attempts/1/start.json")["keeper"]);
        let agent = world.cli(&lost, 1);
        // The keeper first, so that it does not come to write a receipt. A multiplexer would continue one that is frozen.
        signal(keeper, Signal::Kill);
        for one in living(&world).iter().filter(|l| l.run == lost) {
            let _ = one.handle.signal(Signal::Kill);
        }
        eventually("the end of a keeper and its agent", || {
            let left = [keeper, agent].into_iter().find(|pid| crate::harness::alive(*pid));
            left.map_or(Ok(()), |pid| Err(format!("{pid} lives")))
        });
        world.loopmux(["wait", &lost]).exits(6);
        assert!(!world.run_dir(&lost).join("attempts/1/emptied.json").exists());
        let ended = some(states::ended(&world));
        let well = world.prefix.clone();
        Self { world, well, live, orphan, ended, lost, archived, aside }
    }

    /// Executes a command in other surroundings.
    #[track_caller]
    pub(crate) fn amiss(&mut self, surroundings: &[OsString], words: &[&str]) -> Ran {
        self.world.prefix = surroundings.iter().chain(&self.well).cloned().collect();
        let ran = self.world.loopmux(words);
        self.world.prefix = self.well.clone();
        ran
    }

    /// Everything that nobody may be ended by, in these surroundings: what lives goes on where it is, and is not called
    /// ended; what has ended is somewhere, unless the program says that it was removed.
    #[track_caller]
    pub(crate) fn endure(&mut self, surroundings: &[OsString], what: &str) {
        if run_dir(&self.world, &self.ended).is_none() {
            self.ended = states::ended(&self.world).expect("a run");
        }
        let (live, orphan, ended) = (self.live.clone(), self.orphan.clone(), self.ended.clone());
        let (lost, archived, aside) = (self.lost.clone(), self.archived.clone(), self.aside.clone());
        for run in [&live, &orphan] {
            for act in [
                &["status", "--json", run][..],
                &["wait", "--json", "--timeout", "50ms", run],
                &["logs", run],
                &["attach", "--json", run],
                &["delete", run],
                &["delete", "--unproven", run],
                &["archive", run],
                &["resume", "-d", run],
            ] {
                self.spares(surroundings, act, what);
            }
        }
        for act in [
            &["list", "--json"][..],
            &["list", "--all-projects", "--json"],
            &["mux", "ls"],
            &["doctor"],
            &["cleanup"],
            &["archive", "--list"],
            &["list", "--quarantined"],
            &["delete", &lost],
            &["clean", "--retain", "0"],
            &["restore", &archived],
            &["restore", &aside],
            &["archive", &ended],
            &["restore", &ended],
            &["delete", &ended],
            &["clean", "--hard", "--retain", "0"],
            &["run", "-d", "--", "agent", "exit", "7"],
            &["run", "--", "agent", "exit", "7"],
        ] {
            self.spares(surroundings, act, what);
        }
        no_secret(&self.world, what);
    }

    /// One act that must not end anything.
    #[track_caller]
    pub(crate) fn spares(&mut self, surroundings: &[OsString], act: &[&str], what: &str) -> Ran {
        let before = living(&self.world);
        let there = self.places();
        let ran = self.amiss(surroundings, act);
        let said = format!("{what}: {act:?}: {:?}\n{}{}", ran.code, ran.out, ran.err);
        assert!(ran.code.is_some_and(|code| code != 101), "{said}");
        for one in &before {
            if one.ends_by_itself {
                continue;
            }
            assert!(lives(one), "{one:?} was ended by {said}");
            assert!(run_dir(&self.world, &one.run).is_some(), "the run of {one:?} is gone after {said}");
            is_not_called_ended(&one.run, one.attempt, &ran, act, &said);
        }
        let now = self.places();
        let told = |id: &String| {
            matches!(act[0], "delete" | "clean")
                && ran.out.lines().any(|l| l.starts_with("removed") && l.ends_with(id.as_str()))
        };
        let gone: Vec<_> = there.iter().filter(|id| !now.contains(id) && !told(id)).collect();
        assert!(gone.is_empty(), "{gone:?} are gone after {said}");
        ran
    }

    /// Every run, wherever it is.
    fn places(&self) -> Vec<String> {
        ["runs", "trash", "quarantine", "archive"]
            .iter()
            .flat_map(|place| entries(&self.world, place))
            .filter_map(|p| {
                let name = p.file_name()?.to_string_lossy().into_owned();
                (!name.starts_with('.')).then(|| name.split('.').next().unwrap_or_default().to_owned())
            })
            .collect()
    }

    /// A stop of one that does not listen, and that no engine drives: it ends it by proof, or says that it did not. With
    /// the surroundings right again it does.
    #[track_caller]
    pub(crate) fn stop_tells_the_truth(&mut self, surroundings: &[OsString], what: &str) {
        let run = states::deaf_orphan(&self.world).expect("a run");
        let ran = self.amiss(surroundings, &["stop", "--force", "--json", &run]);
        let said = format!("{what}: {:?}\n{}{}", ran.code, ran.out, ran.err);
        let left = living(&self.world).into_iter().filter(|l| l.run == run && lives(l)).count();
        assert!(left == 0 || matches!(ran.code, Some(1 | 4 | 5 | 8)), "{left} processes live after {said}");
        if left > 0 && ran.json()["ok"] == true {
            let named = |list: &str| ran.json()["data"][list].as_array().map_or(0, Vec::len);
            assert!(named("survived") + named("unknown") > 0, "nobody is named in {said}");
        }
        judge(&self.world, &CODES, what);
        self.world.loopmux(["stop", "--force", &run]).exits(0);
        let left = living(&self.world).into_iter().filter(|l| l.run == run && lives(l)).count();
        assert_eq!(left, 0, "{what}, and then where all is well");
    }

    /// The surroundings are right again: what is told is so, and everything dead can be removed.
    #[track_caller]
    pub(crate) fn recovers(self, what: &str) {
        judge(&self.world, &CODES, what);
        let ids: Vec<String> =
            listed(&self.world).iter().filter_map(|r| r["id"].as_str().map(str::to_owned)).collect();
        for run in [&self.live, &self.orphan] {
            assert!(ids.contains(run), "{what}: {run} is not listed");
        }
        remove_all(&self.world, true, what);
    }
}

/// What an answer says of a run whose agent lives.
#[track_caller]
fn is_not_called_ended(run: &str, attempt: u64, ran: &Ran, act: &[&str], said: &str) {
    if !act.contains(&"--json") || ran.code.is_none() || ran.out.trim().is_empty() {
        return;
    }
    let answer = ran.json();
    if answer["ok"] != true {
        return;
    }
    let over = |status: &Value| {
        ["succeeded", "failed", "lost", "stopped", "timed-out", "interrupted"]
            .contains(&status.as_str().unwrap_or_default())
    };
    match act[0] {
        "list" => {
            let runs = answer["data"]["runs"].as_array().expect("runs");
            let told =
                runs.iter().find(|r| r["id"] == run).unwrap_or_else(|| panic!("{run} is missing: {said}"));
            assert!(!over(&told["status"]) || told["attempt"].as_u64() != Some(attempt), "{run}: {said}");
        }
        "status" if answer["data"]["run"]["id"] == run => {
            assert!(!over(&answer["data"]["run"]["status"]), "{said}");
            if let Some(one) = living_of(&answer["data"], attempt) {
                assert!(!matches!(one, "exited" | "lost" | "never-started"), "{said}");
            }
        }
        "wait" if answer["data"]["run"]["id"] == run => {
            assert!(!over(&answer["data"]["run"]["status"]), "{said}");
        }
        _ => {}
    }
}

fn living_of(data: &Value, attempt: u64) -> Option<&str> {
    let attempts = data["attempts"].as_array()?;
    attempts.iter().find(|a| a["n"].as_u64() == Some(attempt))?["verdict"]["kind"].as_str()
}

/// A program in front of every command.
pub(crate) fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.map(OsString::from).to_vec()
}

/// A mount namespace in which a script was executed before the command.
pub(crate) fn after(script: &str) -> Vec<OsString> {
    let script = format!("set -e; {script}; exec \"$@\"");
    words(["unshare", "--mount", "sh", "-c", &script, "sh"])
}

/// What a program says in such surroundings: a test makes sure of its fault with that.
#[track_caller]
pub(crate) fn says(zoo: &Zoo, surroundings: &[OsString], program: &[&str]) -> Ran {
    let mut all = surroundings.to_vec();
    all.extend(program.iter().map(OsString::from));
    let mut command = std::process::Command::new(&all[0]);
    command.args(&all[1..]).current_dir(zoo.world.path());
    crate::harness::finish(command)
}
