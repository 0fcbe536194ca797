//! A listing reads less than a status, and says the same.

use crate::harness::World;
use loopmux::observe::{self, Looks};
use loopmux::run::id::RunId;
use loopmux::run::store::ReadStore;
use loopmux::verdict::Observation;

#[track_caller]
fn says_the_same(world: &World, run: &str, kind: &str) {
    let store = ReadStore::new(&world.state());
    let Observation::Known(keys) = store.project_keys() else { panic!("no projects") };
    let Observation::Known(project) = store.project(&keys[0]) else { panic!("no project") };
    let Observation::Known(read) = project.run(&RunId::parse(run).unwrap()) else { panic!("no run {run}") };
    let (full, brief) = (observe::run(&read, &mut Looks::none()), observe::run_in_brief(&read));
    assert_eq!(full.verdict().map(|v| v.kind()), Some(kind));
    assert_eq!((full.status, full.verdict()), (brief.status, brief.verdict()));
    assert_eq!(full.has_leftovers(), brief.has_leftovers());
    assert_eq!(full.latest().unwrap().token(), brief.latest().unwrap().token());
}

#[test]
fn a_listing_and_a_status_agree_on_every_kind_of_end() {
    let world = World::new();
    let done = |argv: &[&str]| {
        let words = ["run", "--json", "--"].iter().chain(argv).copied();
        let json = world.loopmux(words).json();
        json["data"]["run"]["id"].as_str().unwrap().to_owned()
    };
    says_the_same(&world, &done(&["true"]), "exited");
    says_the_same(&world, &done(&["sh", "-c", "kill -9 $$"]), "exited");
    says_the_same(&world, &done(&["/no/such/program"]), "exited");
    says_the_same(&world, &done(&["sh", "-c", "sleep 600 & exit 0"]), "exited");
    let live = world.detach(["sleep", "600"]);
    let running = world.until(&live, |s| s["run"]["status"] == "running");
    says_the_same(&world, &live, "running");
    let session = running["attempts"][0]["mux"]["session_id"].as_str().unwrap();
    world.tmux(["kill-session", "-t", session]).exits(0);
    world.loopmux(["wait", &live]).exits(6);
    says_the_same(&world, &live, "lost");
    let cancelled = world.run_dir(&live).join("attempts/1");
    for file in ["start.json", "exit.json"] {
        std::fs::remove_file(cancelled.join(file)).unwrap();
    }
    says_the_same(&world, &live, "launching");
    std::fs::write(cancelled.join("cancelled"), "").unwrap();
    says_the_same(&world, &live, "never-started");
    std::fs::write(cancelled.join("start.json"), "{\"schema\":").unwrap();
    says_the_same(&world, &live, "unknown");
}
