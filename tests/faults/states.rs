//! States in which a command may find a run.

use crate::harness::{World, eventually, finish_child, pid, signal};
use crate::oracle::{entries, run_dir};
use crate::support::{heal, start_with};
use loopmux::process::Signal;
use std::path::{Path, PathBuf};

/// Exited 7, under an engine in the foreground.
#[track_caller]
pub(crate) fn ended(world: &World) -> Option<String> {
    let ran = world.loopmux(["run", "--json", "--", "agent", "exit", "7"]).exits(1);
    Some(ran.json()["data"]["run"]["id"].as_str().expect("an id").to_owned())
}

/// The same, under an engine whose window is parked.
#[track_caller]
pub(crate) fn ended_in_a_window(world: &World) -> Option<String> {
    let run = world.detach(["agent", "exit", "7"]);
    world.loopmux(["wait", &run]).exits(1);
    await_file(&engine_dir(world, &run).join("exit.json"));
    Some(run)
}

/// An agent that ends when it is asked.
#[track_caller]
pub(crate) fn running(world: &World) -> Option<String> {
    Some(started(world, "stay"))
}

/// An agent that does not end when it is asked.
#[track_caller]
pub(crate) fn deaf(world: &World) -> Option<String> {
    Some(started(world, "deaf"))
}

#[track_caller]
pub(crate) fn started(world: &World, agent: &str) -> String {
    let run = world.detach(["agent", agent]);
    await_start(world, &run);
    run
}

/// Waits until the agent of a run's first attempt runs, and its engine knows it.
#[track_caller]
pub(crate) fn await_start(world: &World, run: &str) {
    world.until(run, |s| s["run"]["status"] == "running");
    world.cli(run, 1);
}

/// Running, and its engine was killed.
#[track_caller]
pub(crate) fn orphan(world: &World) -> Option<String> {
    let run = running(world).expect("a run");
    kill_engine(world, &run);
    Some(run)
}

/// The same with an agent that does not end when it is asked.
#[track_caller]
pub(crate) fn deaf_orphan(world: &World) -> Option<String> {
    let run = deaf(world).expect("a run");
    kill_engine(world, &run);
    Some(run)
}

#[track_caller]
pub(crate) fn kill_engine(world: &World, run: &str) {
    signal(pid(&world.read(run, "state.json")["engine"]), Signal::Kill);
    world.until(run, |s| s["run"]["engine"]["state"] == "gone");
}

/// Its engine died right before it asked for the window.
#[track_caller]
pub(crate) fn unlaunched(world: &World) -> Option<String> {
    died(world, &["run", "--", "agent", "stay"], "die:launch.create.before");
    only(world, "runs")
}

/// Moved to trash by a removal that died over it.
#[track_caller]
pub(crate) fn trashed(world: &World) -> Option<String> {
    interrupted(world, &["delete"], "die:remove.trash.after")
}

/// Its erasure was decided, by a removal that died over it.
#[track_caller]
pub(crate) fn doomed(world: &World) -> Option<String> {
    interrupted(world, &["delete"], "die:remove.commit.after")
}

/// In `runs/` and in a good archive.
#[track_caller]
pub(crate) fn half_archived(world: &World) -> Option<String> {
    interrupted(world, &["archive"], "die:archive.publish.after")
}

/// An archive of it was begun.
#[track_caller]
pub(crate) fn hardly_archived(world: &World) -> Option<String> {
    interrupted(world, &["archive"], "die:archive.stage.after")
}

#[track_caller]
fn interrupted(world: &World, act: &[&str], fault: &str) -> Option<String> {
    let run = ended(world);
    let words: Vec<&str> = act.iter().copied().chain(run.as_deref()).collect();
    died(world, &words, fault);
    run
}

/// In an archive, and nowhere else.
#[track_caller]
pub(crate) fn archived(world: &World) -> Option<String> {
    let run = ended(world);
    world.loopmux(["archive", run.as_deref().expect("a run")]).exits(0);
    run
}

/// Ended, and its exit receipt cannot be read.
#[track_caller]
pub(crate) fn torn(world: &World) -> Option<String> {
    let run = ended(world);
    let receipt = world.run_dir(run.as_deref().expect("a run")).join("attempts/1/exit.json");
    std::fs::write(receipt, "{\"schema\":1,").expect("a torn receipt");
    run
}

/// Put aside for that.
#[track_caller]
pub(crate) fn quarantined(world: &World) -> Option<String> {
    let run = torn(world);
    world.loopmux(["delete", "--unproven", run.as_deref().expect("a run")]).exits(0);
    run
}

/// Removed, and the window of its engine is open.
#[track_caller]
pub(crate) fn removed_with_a_window(world: &World) -> Option<String> {
    let run = ended_in_a_window(world);
    world.loopmux(["delete", run.as_deref().expect("a run")]).exits(0);
    run
}

/// A command dies of a fault.
#[track_caller]
pub(crate) fn died(world: &World, words: &[&str], fault: &str) {
    let ran = finish_child(start_with(world, words, fault));
    assert_eq!(ran.code, None, "{words:?} was to die of {fault}\n{}{}", ran.out, ran.err);
    heal(world);
}

/// The one run that is in a place.
#[track_caller]
pub(crate) fn only(world: &World, place: &str) -> Option<String> {
    let there = entries(world, place);
    assert_eq!(there.len(), 1, "{place}: {there:?}");
    there[0].file_name().map(|n| n.to_string_lossy().into_owned())
}

/// The directory of a run's first engine.
#[track_caller]
pub(crate) fn engine_dir(world: &World, run: &str) -> PathBuf {
    world.run_dir(run).join("engine/1")
}

#[track_caller]
pub(crate) fn await_file(path: &Path) {
    eventually("a file", || path.exists().then_some(()).ok_or_else(|| format!("no {}", path.display())));
}

/// The run is whole somewhere: among the runs, on its way to trash and back, or in an archive that has its name.
#[track_caller]
pub(crate) fn is_somewhere(world: &World, run: Option<&str>, when: &str) {
    let run = run.expect("a run");
    let of_run = |p: &PathBuf| {
        let name = p.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(run) && !name.ends_with(".erasing")
    };
    let there = run_dir(world, run).is_some()
        || ["trash", "archive"].iter().any(|place| entries(world, place).iter().any(of_run));
    assert!(there, "{when}: neither the run nor its archive is there");
}
