//! Disks of every kind: small ones that are filled up to the last page or file but some, ones that cannot be written, and
//! ones in memory and in layers.

use super::CODES;
use crate::harness::{Disk, Ran, World, eventually, not_root, say};
use crate::oracle::{entries, judge, lives, living, remove_all, run_dir};
use crate::states;
use crate::support::{server, world};

/// What runs out.
#[derive(Clone, Copy, Debug)]
enum Short {
    Pages,
    Files,
}

/// A world whose state is on a small disk, with a live run of its own that must go on.
struct Small {
    disk: Disk,
    world: World,
    live: String,
}

impl Small {
    #[track_caller]
    fn new() -> Self {
        let mut world = world();
        let disk = Disk::mount(world.file("disk"), "size=4m,nr_inodes=600,mode=700");
        world.state = disk.path().join("state");
        server(&world);
        let live = states::started(&world, "stay");
        Self { disk, world, live }
    }

    /// A command on a disk on which there is little left, and then everything again.
    #[track_caller]
    fn act(&self, short: Short, left: u32, words: &[&str], meanwhile: impl FnOnce()) -> Ran {
        match short {
            Short::Pages => self.disk.fill_but(left),
            Short::Files => self.disk.take_inodes_but(left),
        }
        let ran = self.world.loopmux(words);
        meanwhile();
        match short {
            Short::Pages => self.disk.empty(),
            Short::Files => self.disk.give_inodes(),
        }
        let when = format!("{words:?} with {left} {short:?} left: {ran:?}");
        assert!(ran.code.is_some_and(|code| code != 101), "{when}");
        assert!(ran.code == Some(0) || !ran.err.is_empty(), "{when}");
        judge(&self.world, &CODES, &when);
        assert!(living(&self.world).iter().any(|l| l.run == self.live && l.is_agent && lives(l)), "{when}");
        ran
    }
}

/// One act with less and less missing, until it succeeds. `prepare` gives its run, `done` says whether it did all of it.
#[track_caller]
fn less_and_less_missing(
    prepare: fn(&World) -> Option<String>,
    act: &[&str],
    done: fn(&World, &str) -> bool,
) {
    if not_root("mount a disk") {
        return;
    }
    for short in [Short::Pages, Short::Files] {
        let small = Small::new();
        let mut refused = 0;
        let mut left = 0;
        loop {
            let run = prepare(&small.world).expect("a run");
            let words: Vec<&str> = act.iter().map(|w| if *w == "RUN" { &run } else { *w }).collect();
            let ran = small.act(short, left, &words, || {});
            if ran.code == Some(0) {
                assert!(done(&small.world, &run), "{words:?} with {left} {short:?} left: {ran:?}");
                break;
            }
            refused += 1;
            // With enough room it is finished.
            let again = small.world.loopmux(&words);
            assert_eq!(again.code, Some(0), "once more with room, after {ran:?}: {again:?}");
            assert!(done(&small.world, &run), "{words:?} once more: {again:?}");
            // One by one where a command begins; a restore writes many files in a row.
            left += if left < 8 { 1 } else { 3 };
            assert!(left < 100, "{words:?} never has enough {short:?}");
        }
        say(&format!("{act:?} was short of {short:?} {refused} times"));
        assert!(refused > 0 || words_need_nothing(act), "{act:?} never was short of {short:?}");
        remove_all(&small.world, true, &format!("{act:?}, short of {short:?}"));
    }
}

/// What removes needs no room.
fn words_need_nothing(act: &[&str]) -> bool {
    matches!(act[0], "delete" | "clean" | "stop")
}

#[test]
fn a_stop_with_less_and_less_missing() {
    less_and_less_missing(states::running, &["stop", "--grace", "200ms", "RUN"], |world, run| {
        !living(world).iter().any(|l| l.run == run && lives(l))
    });
}

#[test]
fn a_stop_of_an_orphan_with_less_and_less_missing() {
    less_and_less_missing(states::deaf_orphan, &["stop", "--force", "RUN"], |world, run| {
        !living(world).iter().any(|l| l.run == run && lives(l))
    });
}

#[test]
fn a_delete_with_less_and_less_missing() {
    less_and_less_missing(states::ended_in_a_window, &["delete", "RUN"], |world, run| {
        run_dir(world, run).is_none()
    });
}

#[test]
fn a_delete_without_proof_with_less_and_less_missing() {
    less_and_less_missing(states::torn, &["delete", "--unproven", "RUN"], |world, run| {
        run_dir(world, run).is_none()
            && entries(world, "quarantine").iter().any(|p| p.to_string_lossy().contains(run))
    });
}

#[test]
fn an_archive_with_less_and_less_missing() {
    less_and_less_missing(states::ended, &["archive", "RUN"], |world, run| {
        run_dir(world, run).is_none()
            && entries(world, "archive").iter().any(|p| p.ends_with(format!("{run}.tar.gz")))
    });
}

#[test]
fn a_restore_with_less_and_less_missing() {
    less_and_less_missing(states::archived, &["restore", "RUN"], |world, run| {
        run_dir(world, run).is_some() && entries(world, "archive").is_empty()
    });
}

#[test]
fn a_clean_with_less_and_less_missing() {
    less_and_less_missing(states::ended, &["clean", "--retain", "0"], |world, run| {
        run_dir(world, run).is_none()
    });
}

/// A launch needs room in three processes. Whatever it comes to is told, and can be ended and removed.
#[test]
fn launches_with_less_and_less_missing() {
    if not_root("mount a disk") {
        return;
    }
    for short in [Short::Pages, Short::Files] {
        let small = Small::new();
        let mut fates = std::collections::BTreeSet::new();
        let mut forgotten = 0;
        for left in [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 26, 34] {
            for how in [&["run", "-d", "--", "agent", "stay"][..], &["run", "--", "agent", "exit", "7"]] {
                let world = &small.world;
                let ran = small.act(short, left, how, || {});
                let detached = how.contains(&"-d");
                forgotten += ran.err.matches("close it by hand").count();
                let whole = if detached { Some(0) } else { Some(1) };
                let told = ran.err.contains("No space left") || ran.err.contains("never-started");
                fates.insert((detached, ran.code, told));
                // A run that was told to have begun is there.
                let ids: Vec<String> = crate::oracle::listed(world)
                    .iter()
                    .filter_map(|r| r["id"].as_str().map(str::to_owned))
                    .filter(|id| *id != small.live)
                    .collect();
                if detached && ran.code == whole {
                    assert!(ids.iter().any(|id| ran.out.contains(id.as_str())), "{ran:?}");
                }
                for id in ids {
                    let stop = world.loopmux(["stop", "--grace", "200ms", &id]);
                    assert_eq!(stop.code, Some(0), "{left} {short:?} left, after {ran:?}: {stop:?}");
                    let delete = world.loopmux(["delete", "--force", &id]);
                    assert_eq!(delete.code, Some(0), "{left} {short:?} left, after {ran:?}: {delete:?}");
                }
            }
        }
        let failed = fates.iter().filter(|(_, code, told)| *told && *code != Some(0)).count();
        assert!(failed > 0 && fates.contains(&(true, Some(0), false)), "{short:?}: {fates:?}");
        assert!(fates.contains(&(false, Some(1), false)), "{short:?}: {fates:?}");
        close_by_hand(&small.world, &small.live, forgotten);
        remove_all(&small.world, false, &format!("launches, short of {short:?}"));
    }
}

/// Windows of engines that came to nothing, where nothing could be written down that a cleanup would know them by: who
/// launched them was told, and closes them as `docs/limits.md` says.
#[track_caller]
fn close_by_hand(world: &World, live: &str, told: usize) {
    let cleanup = world.loopmux(["cleanup", "--json"]);
    let panes = world.tmux(["list-panes", "-a", "-F", "#{pane_id} #{pane_start_command}"]).exits(0).out;
    let ours: Vec<&str> = panes
        .lines()
        .filter(|l| l.contains("/staging/") && !l.contains(live))
        .filter_map(|l| l.split(' ').next())
        .collect();
    assert!(ours.len() <= told, "{told} windows were told to stay: {panes}\n{cleanup:?}");
    for pane in ours {
        world.tmux(["kill-pane", "-t", pane]).exits(0);
    }
}

/// The end of an agent whose keeper and engine have less and less.
#[test]
fn ends_with_less_and_less_missing() {
    if not_root("mount a disk") {
        return;
    }
    for short in [Short::Pages, Short::Files] {
        let small = Small::new();
        let world = &small.world;
        for left in 0..6 {
            let run = states::running(world).expect("a run");
            let agent = world.cli(&run, 1);
            small.act(short, left, &["list"], || {
                crate::harness::signal(agent, loopmux::process::Signal::Term);
                eventually("the agent's end", || {
                    if crate::harness::alive(agent) { Err("it lives".to_owned()) } else { Ok(()) }
                });
                world.until(&run, |s| s["attempts"][0]["verdict"]["code"] == 143);
            });
            let status = world.until(&run, |s| s["run"]["engine"]["state"] == "gone");
            assert_eq!(status["run"]["status"], "failed", "{left} {short:?} left: {status}");
            world.loopmux(["delete", &run]).exits(0);
        }
        remove_all(world, false, &format!("ends, short of {short:?}"));
    }
}

/// Everything that a run can go through.
#[track_caller]
fn live_through_everything(world: &World, what: &str) {
    server(world);
    let run = states::running(world).expect("a run");
    world.loopmux(["delete", &run]).exits(4);
    world.loopmux(["stop", "--grace", "200ms", &run]).exits(0);
    world.loopmux(["resume", "-d", &run]).exits(0);
    world.until(&run, |s| s["run"]["status"] == "running");
    world.loopmux(["archive", "--force", "--grace", "200ms", &run]).exits(0);
    world.loopmux(["restore", &run]).exits(0);
    let orphan = states::deaf_orphan(world).expect("a run");
    world.loopmux(["archive", &orphan]).exits(4);
    world.loopmux(["delete", "--force", "--grace", "100ms", &orphan]).exits(0);
    let torn = states::torn(world).expect("a run");
    world.loopmux(["delete", &torn]).exits(4);
    world.loopmux(["delete", "--unproven", &torn]).exits(0);
    world.loopmux(["restore", &torn]).exits(0);
    world.loopmux(["delete", "--unproven", &torn]).exits(0);
    for fault in ["die:remove.trash.after", "die:remove.commit.after", "die:archive.publish.after"] {
        let run = states::ended(world).expect("a run");
        let act = if fault.contains("archive") { "archive" } else { "delete" };
        states::died(world, &[act, &run], fault);
    }
    judge(world, &CODES, what);
    world.loopmux(["clean", "--retain", "0"]).exits(0);
    remove_all(world, true, what);
}

#[test]
fn a_state_directory_in_memory_lives_through_everything() {
    if not_root("mount a disk") {
        return;
    }
    let mut world = world();
    let disk = Disk::mount(world.file("disk"), "size=16m,mode=700");
    world.state = disk.path().join("state");
    live_through_everything(&world, "in memory");
}

#[test]
fn a_state_directory_in_layers_lives_through_everything() {
    if not_root("mount layers") {
        return;
    }
    let mut world = world();
    let below = world.file("below");
    std::fs::create_dir(&below).expect("a directory");
    let layers = Disk::layers(&below, world.file("layers"));
    world.state = layers.path().join("state");
    live_through_everything(&world, "in layers");
}

/// Runs that were there when the layer was put on top: an image of a machine, for one.
#[test]
fn runs_of_the_layer_below_are_told_and_can_be_removed() {
    if not_root("mount layers") {
        return;
    }
    let mut world = world();
    let below = world.file("below");
    std::fs::create_dir(&below).expect("a directory");
    world.state = below.join("state");
    let [deleted, stored, resumed, cleaned] = [(); 4].map(|()| states::ended(&world).expect("a run"));
    let archived = states::archived(&world).expect("a run");
    let aside = states::quarantined(&world).expect("a run");
    for run in [&deleted, &stored, &resumed, &cleaned] {
        world.settled(run);
    }
    let layers = Disk::layers(&below, world.file("layers"));
    let tree = crate::harness::Tree::of(&below);
    world.state = layers.path().join("state");
    assert_eq!(crate::oracle::listed(&world).len(), 4);
    judge(&world, &CODES, "in the layer below");
    world.loopmux(["resume", &resumed]).exits(1);
    assert_eq!(world.status(&resumed)["run"]["attempt"], 2);
    // Directories of the layer below cannot be moved; the way out is said, and works.
    for act in [&deleted, &stored, &resumed, &cleaned]
        .map(|run| ["delete", run])
        .iter()
        .chain([&["restore", &*aside]])
    {
        let refused = world.loopmux(act).exits(1);
        let (_, way_out) = refused.err.split_once("for example with: ").expect("a way out");
        is_done(&world, way_out.lines().next().expect("a line"));
    }
    world.loopmux(["delete", &deleted]).exits(0);
    world.loopmux(["archive", &stored]).exits(0);
    world.loopmux(["restore", &stored]).exits(0);
    world.loopmux(["restore", &archived]).exits(0);
    world.loopmux(["restore", &aside]).exits(0);
    world.loopmux(["delete", "--unproven", &aside]).exits(0);
    world.loopmux(["clean", "--hard", "--retain", "0"]).exits(0);
    assert!(run_dir(&world, &cleaned).is_none());
    remove_all(&world, true, "in the layer below");
    crate::harness::Tree::of(&below).is(&tree, "the layer below");
}

#[track_caller]
fn is_done(world: &World, script: &str) {
    let mut shell = world.bare("sh");
    shell.args(["-c", script]);
    crate::harness::finish(shell).exits(0);
}
