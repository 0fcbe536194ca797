//! What lives, or may live, is not removed: by no command, and whatever the multiplexer says.

use crate::harness::Tree;
use crate::harness::{World, alive, eventually, signal};
use crate::support::{engine, is_there, keeper_killed, kept, names, orphaned, session};
use loopmux::process::Signal;
use serde_json::Value;

const ACTS: [&[&str]; 3] =
    [&["delete", "--json"], &["archive", "--json"], &["clean", "--hard", "--retain", "0", "--json"]];

/// Every act on a run, each as a command line.
fn acts(run: &str) -> Vec<Vec<String>> {
    let line = |act: &&[&str]| {
        let mut words: Vec<String> = act.iter().map(ToString::to_string).collect();
        if act[0] != "clean" {
            words.push(run.to_owned());
        }
        words
    };
    ACTS.iter().map(line).collect()
}

fn holders(said: &Value) -> Vec<u64> {
    said["data"]["kept"][0]["holders"]
        .as_array()
        .unwrap()
        .iter()
        .map(|h| h["pid"].as_u64().unwrap())
        .collect()
}

#[test]
fn an_orphaned_program_is_named_and_kept_and_goes_with_force() {
    let world = World::new();
    let (run, cli) = orphaned(&world, &["sleep", "600"]);
    let before = Tree::of(&world.run_dir(&run));
    for act in acts(&run) {
        let said = kept(&world.loopmux(&act), &run, "refused-alive");
        assert!(holders(&said).contains(&u64::from(cli)), "{said}");
        assert!(said["data"]["kept"][0]["reason"].as_str().unwrap().contains("`sleep 600`"), "{said}");
        assert!(alive(cli));
    }
    Tree::of(&world.run_dir(&run)).is(&before, "a run that was kept");
    let text = world.loopmux(["delete", &run]).exits(4);
    assert!(text.err.contains(&format!("pid {cli} `sleep 600`")), "{}", text.err);
    assert!(text.err.contains(&format!("loopmux stop {run}")), "{}", text.err);
    let said = world.loopmux(["delete", "--force", "--json", &run]).exits(0).json();
    assert_eq!(said["data"]["removed"][0]["run"], run, "{said}");
    assert!(!alive(cli) && !is_there(&world, &run));
}

#[test]
fn archive_and_clean_end_an_orphan_first_with_force() {
    let world = World::new();
    let (run, cli) = orphaned(&world, &["sleep", "600"]);
    let said = world.loopmux(["archive", "--force", "--json", &run]).exits(0).json();
    assert_eq!(said["data"]["archived"][0]["run"], run, "{said}");
    assert!(!alive(cli) && !is_there(&world, &run));
    let (run, cli) = orphaned(&world, &["sleep", "600"]);
    world.loopmux(["clean", "--hard", "--retain", "0", "--force"]).exits(0);
    assert!(!alive(cli) && !is_there(&world, &run));
}

#[test]
fn a_live_engine_forbids_removal_and_a_clean_leaves_its_run_alone() {
    let world = World::new();
    let (run, _) = world.launched(&["sleep", "600"]);
    let (cli, engine) = (world.cli(&run, 1), engine(&world, &run));
    for act in &acts(&run)[..2] {
        let said = kept(&world.loopmux(act), &run, "refused-alive");
        assert!(holders(&said).contains(&u64::from(engine)), "{said}");
    }
    let said = world.loopmux(["clean", "--hard", "--retain", "0", "--json"]).exits(0).json();
    assert_eq!(said["data"]["kept"][0]["run"], run, "{said}");
    assert!(alive(cli) && alive(engine) && is_there(&world, &run));
}

#[test]
fn a_program_that_outlived_its_session_and_its_server_is_found_and_named() {
    let world = World::new();
    let (run, _) = world.launched(&["sh", "-c", "trap '' HUP TERM; while :; do sleep 1; done"]);
    let cli = world.cli(&run, 1);
    signal(engine(&world, &run), Signal::Kill);
    signal(world.server(), Signal::Kill);
    world.until(&run, |s| {
        s["run"]["status"] == "orphaned" && s["attempts"][0]["evidence"]["hangup"] == "present"
    });
    for act in acts(&run) {
        let said = kept(&world.loopmux(&act), &run, "refused-alive");
        assert!(holders(&said).contains(&u64::from(cli)), "{said}");
    }
    assert!(alive(cli));
    world.loopmux(["delete", "--force", "--grace", "100ms", &run]).exits(0);
    assert!(!alive(cli) && !is_there(&world, &run));
}

/// Programs in front of the real one, each of which keeps quiet about every session in its own way.
const QUIET: [(&str, &str); 5] = [
    ("omits everything and exits 0", "#!/bin/sh\nexit 0\n"),
    // Its marks come from the server itself, so that the answer is complete by all that can be checked.
    ("omits our sessions alone and exits 0", "#!/bin/sh\n/usr/bin/tmux \"$@\" | grep -v lm-\nexit 0\n"),
    ("answers for another server", "#!/bin/sh\nexec /usr/bin/tmux -S \"$0.none\" \"$@\"\n"),
    ("fails silently", "#!/bin/sh\nexit 1\n"),
    ("hangs", "#!/bin/sh\nexec sleep 600\n"),
];

#[test]
fn a_multiplexer_that_keeps_quiet_allows_nothing() {
    let world = World::new();
    let (run, cli) = orphaned(&world, &["sleep", "600"]);
    for (how, script) in QUIET {
        world.script("tmux", script);
        if how.contains("alone") {
            let list = world.loopmux(["mux", "ls", "--json"]).exits(0).json();
            let listed = list["data"]["sessions"].to_string();
            assert!(list["data"]["sessions"].is_array() && !listed.contains("lm-"), "{list}");
        }
        let said = kept(&world.loopmux(["delete", "--json", &run]), &run, "refused-alive");
        assert!(holders(&said).contains(&u64::from(cli)), "{how}: {said}");
    }
    std::fs::remove_file(world.bin().join("tmux")).unwrap();
    let mut without = world.command(["delete", "--json", &run]);
    without.env("PATH", world.bin());
    kept(&crate::harness::finish(without), &run, "refused-alive");
    assert!(alive(cli));
}

#[test]
fn a_multiplexer_that_keeps_quiet_forbids_nothing() {
    for (how, script) in QUIET {
        let world = World::new();
        let run = crate::support::ended(&world, "exit 0");
        world.script("tmux", script);
        let ran = world.loopmux(["delete", &run]);
        assert_eq!(ran.code, Some(0), "{how}: {ran:?}");
        assert!(!is_there(&world, &run), "{how}");
    }
    let world = World::new();
    let run = crate::support::ended(&world, "exit 0");
    let mut without = world.command(["archive", &run]);
    without.env("PATH", world.bin());
    crate::harness::finish(without).exits(0);
    assert_eq!(names(&world, "archive"), [format!("{run}.tar.gz")]);
}

#[test]
fn a_killed_keepers_run_goes_once_nobody_of_it_is_found() {
    let world = World::new();
    let run = keeper_killed(&world, &["sleep", "600"]);
    world.loopmux(["delete", &run]).exits(0);
    assert!(!is_there(&world, &run));
}

/// What a descendant keeps of the run, and how it is then found. All of them outlive the keeper, and none holds the
/// lease.
#[test]
fn a_descendant_that_let_go_of_the_lease_is_found_all_the_same() {
    let world = World::new();
    // It closes everything; a session of its own, its environment, or neither is what is left.
    for (how, start) in [
        (
            "carries its token",
            "setsid sh -c 'trap \"\" HUP; exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; PIDFILE'",
        ),
        (
            "belongs to its kernel session",
            "env -i sh -c 'trap \"\" HUP; exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; PIDFILE'",
        ),
    ] {
        let mark = world.file(&format!("pid-{}", how.len()));
        let inner =
            format!("exec >/dev/null 2>&1 </dev/null; echo $$ > {}; exec /bin/sleep 600", mark.display());
        let script = format!("{} & sleep 600", start.replace("PIDFILE", &inner));
        let run = keeper_killed_with(&world, &["sh", "-c", &script], &mark);
        let left: u32 = std::fs::read_to_string(&mark).unwrap().trim().parse().unwrap();
        assert!(alive(left), "{how}: the descendant was to live on");
        assert_eq!(world.status(&run)["attempts"][0]["evidence"]["lease"], "free", "{how}");
        let said = kept(&world.loopmux(["delete", "--json", &run]), &run, "refused-alive");
        assert_eq!(holders(&said), [u64::from(left)], "{how}: {said}");
        assert!(said["data"]["kept"][0]["reason"].as_str().unwrap().contains(how), "{said}");
        let unproven = world.loopmux(["delete", "--unproven", "--json", &run]);
        kept(&unproven, &run, "refused-alive");
        // A stop finds it by the same looks, and ends it.
        let stopped = world.loopmux(["stop", "--json", &run]).exits(0).json();
        assert_eq!(stopped["data"]["gone"][0]["pid"], u64::from(left), "{how}: {stopped}");
        assert!(!alive(left), "{how}");
        world.loopmux(["delete", &run]).exits(0);
    }
}

fn end_if_there(pid: u32) {
    if let Some(id) = loopmux::process::identify(pid).unwrap()
        && let loopmux::process::Opened::Handle(handle) = loopmux::process::Handle::open(&id)
        && let Err(e) = handle.signal(Signal::Kill)
    {
        assert!(!alive(pid), "process {pid}: {e}");
    }
}

fn keeper_killed_with(world: &World, argv: &[&str], mark: &std::path::Path) -> String {
    let (run, _) = world.launched(argv);
    eventually("the descendant", || match std::fs::read_to_string(mark) {
        Ok(text) if text.ends_with('\n') => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let keeper = crate::harness::pid(&world.read(&run, "attempts/1/start.json")["keeper"]);
    let cli = world.cli(&run, 1);
    signal(cli, Signal::Stop);
    signal(keeper, Signal::Kill);
    // The kernel's hang-up may be faster.
    end_if_there(cli);
    for child in children_of(cli) {
        end_if_there(child);
    }
    world.loopmux(["wait", &run]).exits(6);
    run
}

/// The `sleep` that the script itself waits for: it holds the lease.
fn children_of(pid: u32) -> Vec<u32> {
    let all = loopmux::process::children(pid).found;
    all.into_iter().filter(|n| n.command == "sleep 600").map(|n| n.id.pid).collect()
}

#[test]
fn a_tagged_window_forbids_removal_until_a_cleanup_closed_it() {
    let world = World::new();
    let run = world.loopmux(["run", "-d", "--park", "--", "true"]).exits(0).out.trim().to_owned();
    world.loopmux(["wait", &run]).exits(0);
    for act in acts(&run) {
        let said = kept(&world.loopmux(&act), &run, "refused-alive");
        assert!(said["data"]["kept"][0]["reason"].as_str().unwrap().contains("window"), "{said}");
    }
    let text = world.loopmux(["delete", &run]).exits(4);
    assert!(text.err.contains("loopmux cleanup"), "{}", text.err);
    let said = world.loopmux(["cleanup", "--json"]).exits(0).json();
    let ended = said["data"]["ended"].as_array().unwrap();
    assert!(ended.iter().any(|w| w["session"] == session(&world, &run).as_str()), "{said}");
    world.loopmux(["delete", &run]).exits(0);
}

#[test]
fn force_closes_a_parked_window() {
    let world = World::new();
    let run = world.loopmux(["run", "-d", "--park", "--", "true"]).exits(0).out.trim().to_owned();
    world.loopmux(["wait", &run]).exits(0);
    world.loopmux(["delete", "--force", &run]).exits(0);
    assert!(!is_there(&world, &run));
}

#[test]
fn what_can_be_no_run_or_means_two_touches_nothing() {
    let world = World::new();
    let (a, b) = (crate::support::ended(&world, "exit 0"), crate::support::ended(&world, "exit 0"));
    let before = Tree::of(&world.state().join("projects"));
    for act in ["delete", "archive", "restore"] {
        for bad in ["", ".", "..", "../x", "/", "a/b", "..\\x"] {
            world.loopmux([act, "--", bad]).exits(2);
        }
    }
    for act in ["delete", "archive"] {
        let both = &a[..a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count()];
        let said = world.loopmux([act, "--json", both]).exits(3).json();
        assert_eq!(said["error"]["code"], "ambiguous", "{said}");
        assert_eq!(said["data"]["removed"], serde_json::json!([]), "the lists are always there: {said}");
        world.loopmux([act, "no-such-run"]).exits(3);
        // One that is right beside one that is wrong is not touched either.
        world.loopmux([act, &a, "no-such-run"]).exits(3);
        world.loopmux([act, &a, ""]).exits(2);
        world.loopmux([act]).exits(2);
    }
    let elsewhere = world.file("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for act in ["delete", "archive"] {
        world.loopmux(["--project", elsewhere.to_str().unwrap(), act, &a]).exits(3);
    }
    let now = Tree::of(&world.state().join("projects"));
    now.is(&before, "the state directory");
    assert!(now.paths().count() > 10);
}
