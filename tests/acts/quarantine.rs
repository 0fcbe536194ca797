//! What cannot be read is unknown, and unknown is put aside at most.

use crate::harness::Tree;
use crate::harness::{World, alive};
use crate::support::{ended, is_there, kept, names, orphaned};
use serde_json::Value;
use std::os::unix::fs::chown;
use std::path::Path;

const NOBODY: u32 = 65534;

fn edit(path: &Path, change: impl Fn(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    change(&mut value);
    std::fs::write(path, serde_json::to_vec(&value).unwrap()).unwrap();
}

/// A way to spoil a file.
type Spoil = (&'static str, fn(&Path));

const SPOILS: [Spoil; 4] = [
    ("torn", |path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    }),
    ("empty", |path| std::fs::write(path, "").unwrap()),
    ("newer", |path| edit(path, |v| v["schema"] = 999.into())),
    ("another user's", |path| chown(path, Some(NOBODY), None).unwrap()),
];

#[test]
fn whatever_file_cannot_be_read_the_run_is_unknown_and_kept() {
    let world = World::new();
    let files = [
        "run.json",
        "state.json",
        "attempts/1/launch.json",
        "attempts/1/start.json",
        "attempts/1/exit.json",
        "attempts/1/created.json",
        "attempts/1/spawned.json",
        "attempts/1/emptied.json",
    ];
    for (n, file) in files.into_iter().enumerate() {
        let run = ended(&world, "exit 0");
        let path = world.run_dir(&run).join(file);
        let good = std::fs::read(&path).unwrap();
        // Every file in two ways, every way at some file.
        for (how, spoil) in [SPOILS[n % 4], SPOILS[(n + 1) % 4]] {
            spoil(&path);
            let before = Tree::of(&world.run_dir(&run));
            for act in ["delete", "archive"] {
                let said = kept(&world.loopmux([act, "--json", &run]), &run, "refused-unknown");
                assert!(said["error"]["hint"].is_string(), "{file} {how}: {said}");
                assert!(said.to_string().contains("--unproven"), "{file} {how}: {said}");
            }
            Tree::of(&world.run_dir(&run)).is(&before, &format!("{file} {how}"));
            chown(&path, Some(0), None).unwrap();
            std::fs::write(&path, &good).unwrap();
        }
        let clean = world.loopmux(["clean", "--hard", "--retain", "0"]);
        assert_eq!(clean.code, Some(0), "once it reads again: {clean:?}");
    }
}

#[test]
fn a_receipt_of_another_machine_is_unknown() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    for file in ["attempts/1/start.json", "attempts/1/launch.json"] {
        edit(&world.run_dir(&run).join(file), |v| {
            v["host"]["boot"] = "another-boot".into();
            v["host"]["machine"] = "another-machine".into();
        });
    }
    let said = kept(&world.loopmux(["delete", "--json", &run]), &run, "refused-unknown");
    assert!(said["data"]["kept"][0]["reason"].as_str().unwrap().contains("another machine"), "{said}");
    world.loopmux(["delete", "--unproven", &run]).exits(0);
    assert!(!is_there(&world, &run));
}

#[test]
fn another_boot_of_this_machine_is_no_obstacle() {
    let world = World::new();
    let run = crate::support::keeper_killed(&world, &["sleep", "600"]);
    for file in ["attempts/1/start.json", "attempts/1/launch.json"] {
        edit(&world.run_dir(&run).join(file), |v| v["host"]["boot"] = "another-boot".into());
    }
    edit(&world.run_dir(&run).join("attempts/1/start.json"), |v| v["keeper"]["boot"] = "another-boot".into());
    world.loopmux(["delete", &run]).exits(0);
}

#[test]
fn a_missing_attempt_is_unknown() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    std::fs::rename(world.run_dir(&run).join("attempts/1"), world.file("away")).unwrap();
    let said = kept(&world.loopmux(["delete", "--json", &run]), &run, "refused-unknown");
    assert!(said["data"]["kept"][0]["reason"].as_str().unwrap().contains("attempt 1"), "{said}");
}

#[test]
fn what_was_put_aside_is_listed_comes_back_whole_and_is_erased_only_when_confirmed() {
    let world = World::new();
    let run = ended(&world, "echo hi");
    let path = world.run_dir(&run).join("state.json");
    let good = std::fs::read(&path).unwrap();
    std::fs::write(&path, "torn").unwrap();
    let said = world.loopmux(["delete", "--unproven", "--json", &run]).exits(0).json();
    assert_eq!(said["data"]["quarantined"][0]["run"], run.as_str(), "{said}");
    assert_eq!(said["data"]["removed"], serde_json::json!([]), "{said}");
    let dir = said["data"]["quarantined"][0]["dir"].as_str().unwrap().to_owned();
    assert_eq!(std::fs::read(Path::new(&dir).join("state.json")).unwrap(), b"torn");
    assert!(!is_there(&world, &run));
    let list = world.loopmux(["list", "--quarantined", "--json"]).exits(0).json();
    assert_eq!(list["data"]["quarantined"][0]["run"], run.as_str(), "{list}");
    assert!(world.loopmux(["list", "--quarantined"]).exits(0).out.contains(&run));

    let said = world.loopmux(["restore", "--json", &run]).exits(0).json();
    assert_eq!(said["data"]["restored"][0]["from"], "quarantine", "{said}");
    assert_eq!(std::fs::read(&path).unwrap(), b"torn");
    assert_eq!(names(&world, "quarantine"), Vec::<String>::new());
    world.loopmux(["delete", &run]).exits(4);
    std::fs::write(&path, &good).unwrap();
    assert_eq!(world.loopmux(["logs", &run]).exits(0).out, "hi\n");

    std::fs::write(&path, "torn").unwrap();
    world.loopmux(["delete", "--unproven", &run]).exits(0);
    world.loopmux(["clean", "--quarantine", &run]).exits(2);
    world.loopmux(["clean", "--quarantine", &run, "--json"]).exits(2);
    assert_eq!(names(&world, "quarantine").len(), 1, "without a confirmation");
    world.loopmux(["clean", "--hard", "--retain", "0"]).exits(0);
    assert_eq!(names(&world, "quarantine").len(), 1, "a clean of runs does not touch it");
    let said = world.loopmux(["clean", "--quarantine", &run, "--yes", "--json"]).exits(0).json();
    assert_eq!(said["data"]["removed"][0]["run"], run.as_str(), "{said}");
    assert_eq!((names(&world, "quarantine"), names(&world, "trash")), (Vec::new(), Vec::new()));
    world.loopmux(["clean", "--quarantine", &run, "--yes"]).exits(3);
    world.loopmux(["restore", &run]).exits(3);
}

#[test]
fn what_is_alive_is_not_put_aside_and_not_erased_in_quarantine() {
    let world = World::new();
    let (run, cli) = orphaned(&world, &["sleep", "600"]);
    kept(&world.loopmux(["delete", "--unproven", "--json", &run]), &run, "refused-alive");
    // Nothing of its evidence can be read any more, and the lease is held all the same.
    for file in ["state.json", "attempts/1/start.json", "attempts/1/launch.json"] {
        std::fs::write(world.run_dir(&run).join(file), "torn").unwrap();
    }
    kept(&world.loopmux(["delete", "--unproven", "--json", &run]), &run, "refused-alive");
    // As if it had been put aside while that could not be seen.
    let yard = crate::support::yard(&world);
    std::fs::create_dir_all(yard.join("quarantine")).unwrap();
    std::fs::rename(yard.join("runs").join(&run), yard.join("quarantine").join(format!("{run}.0a0b")))
        .unwrap();
    let said = world.loopmux(["clean", "--quarantine", &run, "--yes", "--json"]).exits(4).json();
    assert_eq!(said["error"]["code"], "refused-alive", "{said}");
    assert!(alive(cli) && names(&world, "quarantine").len() == 1);
    world.loopmux(["restore", &run]).exits(0);
    assert!(alive(cli) && is_there(&world, &run));
}

#[test]
fn what_is_proven_is_deleted_and_not_put_aside() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    let said = world.loopmux(["delete", "--unproven", "--json", &run]).exits(0).json();
    assert_eq!(said["data"]["removed"][0]["run"], run.as_str(), "{said}");
    assert_eq!(names(&world, "quarantine"), Vec::<String>::new());
}
