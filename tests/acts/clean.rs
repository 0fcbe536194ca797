//! Clean takes ended runs past the retention, one by one.

use crate::harness::World;
use crate::support::{ended, is_there, names, orphaned};
use serde_json::{Value, json};

fn runs(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|r| r["run"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_newest_stay_the_rest_is_archived_and_everything_kept_is_named() {
    let world = World::new();
    let (live, _) = world.launched(&["sleep", "600"]);
    let made: Vec<String> = (0..4).map(|n| ended(&world, &format!("exit {n}"))).collect();
    let dry = world.loopmux(["clean", "--retain", "2", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(runs(&dry["data"]["would_archive"]), made[..2], "{dry}");
    assert_eq!((&dry["data"]["removed"], &dry["data"]["archived"]), (&json!([]), &json!([])), "{dry}");
    assert_eq!((names(&world, "runs").len(), names(&world, "archive").len()), (5, 0));
    let said = world.loopmux(["clean", "--retain", "2", "--json"]).exits(0).json();
    assert_eq!(runs(&said["data"]["archived"]), made[..2], "the oldest first: {said}");
    let mut kept = runs(&said["data"]["kept"]);
    kept.sort();
    let mut expected = vec![live.clone(), made[2].clone(), made[3].clone()];
    expected.sort();
    assert_eq!(kept, expected, "{said}");
    assert!(said["data"]["kept"].as_array().unwrap().iter().all(|k| k["reason"].is_string()), "{said}");
    assert!(is_there(&world, &live), "the oldest of all is live");
    let text = world.loopmux(["clean", "--retain", "2"]).exits(0).out;
    assert!(expected.iter().all(|run| text.contains(run.as_str())), "{text}");
    let hard = world.loopmux(["clean", "--retain", "0", "--hard", "--json"]).exits(0).json();
    assert_eq!(runs(&hard["data"]["removed"]), made[2..], "{hard}");
    assert_eq!(names(&world, "archive").len(), 2);
    assert_eq!(names(&world, "runs"), [live]);
}

#[test]
fn twenty_stay_where_nothing_is_asked_and_an_age_alone_decides_by_itself() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    world.loopmux(["clean"]).exits(0);
    assert!(is_there(&world, &run));
    world.loopmux(["clean", "--older-than", "1h"]).exits(0);
    assert!(is_there(&world, &run));
    // As if it had ended long ago.
    let path = world.run_dir(&run).join("state.json");
    let mut record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    record["ended_ms"] = json!(1_000);
    std::fs::write(&path, record.to_string()).unwrap();
    world.loopmux(["clean", "--older-than", "1h", "--retain", "1"]).exits(0);
    assert!(is_there(&world, &run), "both must hold");
    world.loopmux(["clean", "--older-than", "1h"]).exits(0);
    assert!(!is_there(&world, &run));
    // One that ended in the future, by a clock that was set back, is young.
    let run = ended(&world, "exit 0");
    let path = world.run_dir(&run).join("state.json");
    let mut record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    record["ended_ms"] = json!(9_000_000_000_000_u64);
    std::fs::write(&path, record.to_string()).unwrap();
    world.loopmux(["clean", "--older-than", "1s"]).exits(0);
    assert!(is_there(&world, &run));
}

#[test]
fn one_that_cannot_go_does_not_stop_the_rest() {
    let world = World::new();
    let first = ended(&world, "exit 0");
    let (orphan, cli) = orphaned(&world, &["sleep", "600"]);
    let torn = ended(&world, "exit 0");
    std::fs::write(world.run_dir(&torn).join("attempts/1/exit.json"), "torn").unwrap();
    let last = ended(&world, "exit 0");
    for hard in [false, true] {
        let mut words = vec!["clean", "--retain", "0", "--json"];
        words.extend(hard.then_some("--hard"));
        let said = world.loopmux(&words).exits(4).json();
        assert_eq!(said["error"]["code"], "refused-alive", "{said}");
        let removed = runs(&said["data"]["removed"]);
        assert_eq!(removed, if hard { vec![] } else { vec![first.clone(), last.clone()] }, "{said}");
        let mut kept = runs(&said["data"]["kept"]);
        kept.sort();
        let mut expected = [orphan.clone(), torn.clone()];
        expected.sort();
        assert_eq!(kept, expected, "{said}");
        assert!(said.to_string().contains(&format!("pid {cli} ")), "{said}");
    }
    assert!(crate::harness::alive(cli));
}

#[test]
fn a_project_without_runs_has_nothing_to_clean() {
    let world = World::new();
    let said = world.loopmux(["clean", "--json"]).exits(0).json();
    assert_eq!(said["data"]["kept"], json!([]), "{said}");
    assert!(std::fs::read_dir(world.state()).unwrap().next().is_none(), "it made a state directory");
}
