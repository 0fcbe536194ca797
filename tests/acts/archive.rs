//! An archive is compared before its run goes, and a restore before its archive goes.

use crate::harness::World;
use crate::support::{ended, is_there, names, with_fault, yard};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Everything of a run, but what a restore adds to its journal.
pub(crate) fn content(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut left = vec![dir.to_owned()];
    while let Some(path) = left.pop() {
        let below = path.strip_prefix(dir).unwrap().to_owned();
        if path.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
            all.insert(below, Vec::new());
        } else if below == Path::new("journal.jsonl") {
            let text = std::fs::read_to_string(&path).unwrap();
            let own: Vec<_> = text.lines().filter(|l| !l.contains("\"restore\"")).collect();
            all.insert(below, own.join("\n").into_bytes());
        } else {
            all.insert(below, std::fs::read(&path).unwrap());
        }
    }
    all
}

fn archive_of(world: &World, run: &str) -> PathBuf {
    yard(world).join("archive").join(format!("{run}.tar.gz"))
}

#[test]
fn a_run_goes_into_its_archive_and_comes_back_as_it_was() {
    let world = World::new();
    let run = ended(&world, "echo hi; exit 3");
    let events = world.run_dir(&run).join("attempts/1/events");
    std::fs::create_dir(&events).unwrap();
    std::fs::write(events.join("x y\u{e9}"), vec![7; 70_000]).unwrap();
    let before = content(&world.run_dir(&run));
    let said = world.loopmux(["archive", "--json", &run]).exits(0).json();
    let told = &said["data"]["archived"][0];
    let file = archive_of(&world, &run);
    assert_eq!(told["file"], file.canonicalize().unwrap().to_str().unwrap(), "{said}");
    let meta = file.metadata().unwrap();
    assert_eq!(told["bytes"], meta.len(), "{said}");
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    let sum = std::process::Command::new("sha256sum").arg(&file).output().unwrap();
    assert!(String::from_utf8_lossy(&sum.stdout).starts_with(told["sha256"].as_str().unwrap()), "{said}");
    assert!(!is_there(&world, &run) && names(&world, "trash").is_empty());
    assert!(world.loopmux(["archive", "--list"]).exits(0).out.contains(&run));

    // Whoever has no loopmux reads it too: relative names below the id.
    let list = std::process::Command::new("tar").arg("tzf").arg(&file).output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    assert!(list.lines().count() >= before.len(), "{list}");
    assert!(list.lines().all(|l| l == run || l.starts_with(&format!("{run}/"))), "{list}");

    let said = world.loopmux(["restore", "--json", &run]).exits(0).json();
    assert_eq!(said["data"]["restored"][0]["from"], "archive", "{said}");
    assert_eq!(content(&world.run_dir(&run)), before);
    assert_eq!(names(&world, "archive"), Vec::<String>::new());
    assert_eq!(world.status(&run)["attempts"][0]["verdict"]["code"], 3);
    assert_eq!(world.loopmux(["logs", &run]).exits(0).out, "hi\n");
    world.loopmux(["restore", &run]).exits(3);
    world.loopmux(["archive", &run]).exits(0);
    world.loopmux(["restore", &run]).exits(0);
    world.loopmux(["delete", &run]).exits(0);
}

#[test]
fn no_environment_is_in_an_archive() {
    let world = World::new();
    let secret = "b0a5-SECRET-93cc";
    let mut dying = world.command(["run", "--env", &format!("KEY={secret}"), "--", "true"]);
    dying.env("LOOPMUX_FAULT", "die:launch.create.before");
    assert_eq!(crate::harness::finish(dying).code, None);
    let run = names(&world, "runs").pop().unwrap();
    let env = world.run_dir(&run).join("attempts/1/env.json");
    assert!(std::fs::read_to_string(&env).unwrap().contains(secret));
    // Giving the launch up removes it, so a copy stands for one that could not be removed.
    let copy = world.run_dir(&run).join("attempts/1/.env.json.0123456789abcdef.tmp");
    std::fs::copy(&env, &copy).unwrap();
    world.loopmux(["archive", &run]).exits(0);
    let shown = std::process::Command::new("tar").arg("xzOf").arg(archive_of(&world, &run)).output().unwrap();
    assert!(!shown.stdout.is_empty());
    assert!(!String::from_utf8_lossy(&shown.stdout).contains(secret));
}

#[test]
fn an_archive_is_never_overwritten() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    let file = archive_of(&world, &run);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    for content in [&b"not an archive"[..], b""] {
        std::fs::write(&file, content).unwrap();
        let said = world.loopmux(["archive", "--json", &run]).exits(1).json();
        assert_eq!(said["data"]["archived"], serde_json::json!([]), "{said}");
        assert_eq!(std::fs::read(&file).unwrap(), content);
        assert!(is_there(&world, &run));
    }
    // A sound one of the same run, which has changed since.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(with_fault(&world, "die:archive.publish.after", &["archive", &run]).code, None);
    std::fs::write(world.run_dir(&run).join("attempts/1/result.json"), "{}").unwrap();
    let good = std::fs::read(&file).unwrap();
    world.loopmux(["archive", &run]).exits(1);
    assert_eq!(std::fs::read(&file).unwrap(), good);
    assert!(is_there(&world, &run));
}

#[test]
fn a_damaged_archive_is_not_restored_and_not_removed() {
    let world = World::new();
    let run = ended(&world, "echo hi");
    world.loopmux(["archive", &run]).exits(0);
    let file = archive_of(&world, &run);
    let good = std::fs::read(&file).unwrap();
    for cut in [0, 10, good.len() / 2, good.len() - 1] {
        std::fs::write(&file, &good[..cut]).unwrap();
        world.loopmux(["restore", &run]).exits(1);
        assert!(!is_there(&world, &run), "cut at {cut}");
        assert_eq!(std::fs::read(&file).unwrap(), &good[..cut]);
    }
    std::fs::write(&file, &good).unwrap();
    world.loopmux(["restore", &run]).exits(0);
    assert_eq!(names(&world, "archive"), Vec::<String>::new(), "leftovers of the tries were swept");
}

#[test]
fn a_run_that_is_there_is_not_restored_over() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    world.loopmux(["archive", &run]).exits(0);
    let file = archive_of(&world, &run);
    let copy = std::fs::read(&file).unwrap();
    world.loopmux(["restore", &run]).exits(0);
    std::fs::write(&file, &copy).unwrap();
    world.loopmux(["restore", &run]).exits(4);
    assert!(is_there(&world, &run));
    assert_eq!(std::fs::read(&file).unwrap(), copy);
}

#[test]
fn what_changes_while_it_is_archived_stays_and_leaves_no_stale_archive() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    let gate = world.file("gate");
    let fault = format!("hold:archive.publish.after:{}", gate.display());
    let held = crate::support::faulty(&world, &fault, &["archive", "--json", &run])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    crate::support::reached(&gate);
    std::fs::write(world.run_dir(&run).join("attempts/1/result.json"), "{}").unwrap();
    crate::support::go(&gate);
    let ran = crate::harness::finish_child(held);
    crate::support::kept(&ran, &run, "refused-unknown");
    assert!(is_there(&world, &run));
    assert_eq!((names(&world, "archive"), names(&world, "trash")), (Vec::new(), Vec::new()));
    world.loopmux(["archive", &run]).exits(0);
}

/// A stop beside an archive: one of them has the run, the other says so, and it is whole where it then is.
#[test]
fn an_archive_and_a_stop_do_not_both_have_it() {
    let world = World::new();
    // Of a dead one: the stop has nothing to do, before the archive or after it.
    for step in ["archive.stage.after", "archive.publish.before", "remove.trash.after", "remove.commit.after"]
    {
        let run = ended(&world, "echo hi; exit 3");
        let was = content(&world.run_dir(&run));
        let gate = world.file(&format!("gate-{step}"));
        let archive =
            crate::support::faulty(&world, &format!("hold:{step}:{}", gate.display()), &["archive", &run])
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap();
        crate::support::reached(&gate);
        let stop = world.loopmux(["stop", &run]);
        assert!(matches!(stop.code, Some(0 | 3 | 4)), "{step}: {stop:?}");
        crate::support::go(&gate);
        let archive = crate::harness::finish_child(archive);
        assert_eq!(archive.code, Some(0), "{step}: {archive:?} beside {stop:?}");
        assert!(!is_there(&world, &run), "{step}");
        world.loopmux(["restore", &run]).exits(0);
        assert_eq!(content(&world.run_dir(&run)), was, "{step}");
        world.loopmux(["delete", &run]).exits(0);
    }
    // Of a live one: without force the archive is refused or comes after the end, and with it both end the same agent.
    for force in [false, true] {
        for turn in 0..3 {
            let (run, _) = world.launched(&["sleep", "600"]);
            let cli = world.cli(&run, 1);
            let words: &[&str] = if force { &["archive", "--force", &run] } else { &["archive", &run] };
            let (stop, archive) = (world.start(["stop", &run]), world.start(words));
            let stop = crate::harness::finish_child(stop);
            let archive = crate::harness::finish_child(archive);
            let when = format!("turn {turn}, force {force}: {stop:?} beside {archive:?}");
            assert!(matches!(stop.code, Some(0 | 3)), "{when}");
            assert!(matches!(archive.code, Some(0 | 4)), "{when}");
            assert!(!crate::harness::alive(cli), "{when}");
            let archived = names(&world, "archive").contains(&format!("{run}.tar.gz"));
            assert_eq!((archive.code == Some(0), is_there(&world, &run)), (archived, !archived), "{when}");
            if !archived {
                world.loopmux(["archive", &run]).exits(0);
            }
            world.loopmux(["restore", &run]).exits(0);
            assert_eq!(world.status(&run)["run"]["status"], "stopped", "{when}");
            world.loopmux(["delete", &run]).exits(0);
        }
    }
}
