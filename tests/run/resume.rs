//! Another attempt of a run that has ended.

use crate::harness::World;

#[test]
fn a_failed_run_is_resumed_as_its_next_attempt_and_keeps_its_first_end() {
    let world = World::new();
    let flag = world.file("flag");
    let script = format!("test -e {} || exit 3", flag.display());
    let first = world.loopmux(["run", "--json", "--", "sh", "-c", &script]).exits(1).json();
    let run = first["data"]["run"]["id"].as_str().unwrap().to_owned();
    let exit = world.read(&run, "attempts/1/exit.json");
    std::fs::write(&flag, "").unwrap();
    world.loopmux(["resume", &run]).exits(0);
    let status = world.status(&run);
    assert_eq!((&status["run"]["status"], &status["run"]["attempt"]), (&"succeeded".into(), &2.into()));
    assert_eq!(status["attempts"][0]["verdict"]["code"], 3);
    assert_eq!(status["attempts"][1]["verdict"]["code"], 0);
    assert_eq!(world.read(&run, "attempts/1/exit.json"), exit);
    let record = world.read(&run, "state.json");
    assert_eq!(record["earlier"][0]["status"], "failed", "{record}");
    let refused = world.loopmux(["resume", &run]);
    assert_eq!(refused.code, Some(4), "what succeeded is not resumed: {}", refused.err);
}

#[test]
fn a_stopped_run_is_resumed_in_a_window_of_its_own_and_does_not_obey_the_old_stop() {
    let world = World::new();
    let run = world.detach(["sleep", "600"]);
    world.until(&run, |s| s["run"]["status"] == "running");
    world.loopmux(["stop", &run]).exits(0);
    assert_eq!(world.status(&run)["run"]["status"], "stopped");
    world.loopmux(["resume", "-d", &run]).exits(0);
    world.until(&run, |s| s["attempts"][1]["verdict"]["kind"] == "running");
    let busy = world.loopmux(["resume", &run]);
    assert_eq!(busy.code, Some(4), "one engine, one attempt: {}", busy.err);
    world.loopmux(["stop", &run]).exits(0);
    let status = world.status(&run);
    assert_eq!((&status["run"]["status"], &status["run"]["attempt"]), (&"stopped".into(), &2.into()));
}

#[test]
fn two_resumes_at_once_make_one_attempt() {
    let world = World::new();
    let run = world.loopmux(["run", "--json", "--", "false"]).exits(1).json()["data"]["run"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let both = [world.start(["resume", &run]), world.start(["resume", &run])];
    let codes: Vec<_> = both.into_iter().map(|c| crate::harness::finish_child(c).code).collect();
    let attempts = world.status(&run)["attempts"].as_array().unwrap().len();
    // The second one may come after the first has failed again, and is then a resume of its own.
    assert_eq!(attempts - 1, codes.iter().filter(|c| **c == Some(1)).count(), "{codes:?}");
    assert!(codes.iter().all(|c| matches!(c, Some(1 | 4))), "{codes:?}");
}

#[test]
fn a_live_orphan_is_not_resumed() {
    let world = World::new();
    let run = world.detach(["sleep", "600"]);
    let status = world.until(&run, |s| s["run"]["status"] == "running");
    let engine = status["run"]["engine"]["pid"].as_u64().unwrap() as u32;
    let id = loopmux::process::identify(engine).unwrap().unwrap();
    let loopmux::process::Opened::Handle(handle) = loopmux::process::Handle::open(&id) else {
        panic!("{id:?}")
    };
    handle.signal(loopmux::process::Signal::Kill).unwrap();
    world.until(&run, |s| s["run"]["status"] == "orphaned");
    world.loopmux(["resume", &run]).exits(4);
    assert_eq!(world.status(&run)["attempts"].as_array().unwrap().len(), 1);
}
