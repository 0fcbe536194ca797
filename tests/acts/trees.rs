//! What lies in a run directory and is not the run's: never followed, never crossed, reported.

use crate::harness::World;
use crate::support::{ended, is_there, kept, names};
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Something mounted, until the test ends.
struct Mounted(PathBuf);

impl Mounted {
    fn new(args: &[&str], at: &Path) -> Self {
        let done = Command::new("mount").args(args).arg(at).status().unwrap();
        assert!(done.success(), "mount {args:?} {}: the tests need root", at.display());
        Self(at.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn symbolic_links_are_removed_and_not_followed() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    let outside = world.file("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("kept"), "kept").unwrap();
    let dir = world.run_dir(&run).join("attempts/1");
    symlink(&outside, dir.join("dir")).unwrap();
    symlink(outside.join("kept"), dir.join("file")).unwrap();
    symlink("/no/such/place", dir.join("dangling")).unwrap();
    world.loopmux(["delete", &run]).exits(0);
    assert!(!is_there(&world, &run));
    assert_eq!(std::fs::read_to_string(outside.join("kept")).unwrap(), "kept");
}

#[test]
fn an_archive_holds_links_as_links() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    let outside = world.file("outside");
    std::fs::write(&outside, "SECRET").unwrap();
    symlink(&outside, world.run_dir(&run).join("attempts/1/link")).unwrap();
    world.loopmux(["archive", &run]).exits(0);
    world.loopmux(["restore", &run]).exits(0);
    assert_eq!(std::fs::read_link(world.run_dir(&run).join("attempts/1/link")).unwrap(), outside);
    std::fs::write(&outside, "changed").unwrap();
    world.loopmux(["archive", &run]).exits(0);
}

#[test]
fn a_mount_point_inside_is_reported_and_not_crossed() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    let at = world.run_dir(&run).join("attempts/1/mnt");
    std::fs::create_dir(&at).unwrap();
    let mounted = Mounted::new(&["-t", "tmpfs", "none"], &at);
    std::fs::write(at.join("kept"), "kept").unwrap();
    for act in ["delete", "archive"] {
        let said = kept(&world.loopmux([act, "--json", &run]), &run, "refused-unknown");
        assert!(said["data"]["kept"][0]["reason"].as_str().unwrap().contains("mount point"), "{said}");
    }
    assert_eq!(std::fs::read_to_string(at.join("kept")).unwrap(), "kept");
    drop(mounted);
    // The same file system once more is told apart as well.
    let other = world.file("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("kept"), "kept").unwrap();
    let bound = Mounted::new(&["--bind", other.to_str().unwrap()], &at);
    let said = kept(&world.loopmux(["delete", "--json", &run]), &run, "refused-unknown");
    assert!(said["data"]["kept"][0]["reason"].as_str().unwrap().contains("mount point"), "{said}");
    drop(bound);
    assert_eq!(std::fs::read_to_string(other.join("kept")).unwrap(), "kept");
    world.loopmux(["delete", &run]).exits(0);
}

#[test]
fn what_is_mounted_after_the_looks_is_not_erased_and_the_rest_goes_later() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    let at = world.run_dir(&run).join("attempts/1/mnt");
    std::fs::create_dir(&at).unwrap();
    let gate = world.file("gate");
    let fault = format!("hold:remove.commit.after:{}", gate.display());
    let held = crate::support::faulty(&world, &fault, &["delete", "--json", &run])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    crate::support::reached(&gate);
    let entry = names(&world, "trash").pop().unwrap();
    let now = crate::support::yard(&world).join("trash").join(&entry).join("attempts/1/mnt");
    let mounted = Mounted::new(&["-t", "tmpfs", "none"], &now);
    std::fs::write(now.join("kept"), "kept").unwrap();
    crate::support::go(&gate);
    let said = crate::harness::finish_child(held).exits(1).json();
    assert!(said["error"]["message"].as_str().unwrap().contains("mount point"), "{said}");
    assert_eq!(std::fs::read_to_string(now.join("kept")).unwrap(), "kept");
    drop(mounted);
    world.loopmux(["delete", &run]).exits(0);
    assert_eq!(names(&world, "trash"), Vec::<String>::new());
}

#[test]
fn another_users_file_inside_is_reported_and_the_run_can_be_put_aside_and_erased() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    let foreign = world.run_dir(&run).join("attempts/1/foreign");
    std::fs::write(&foreign, "x").unwrap();
    chown(&foreign, Some(65534), None).unwrap();
    for act in ["delete", "archive"] {
        let said = kept(&world.loopmux([act, "--json", &run]), &run, "refused-unknown");
        assert!(
            said["data"]["kept"][0]["reason"].as_str().unwrap().contains("belongs to user 65534"),
            "{said}"
        );
    }
    world.loopmux(["delete", "--unproven", &run]).exits(0);
    world.loopmux(["clean", "--quarantine", &run, "--yes"]).exits(0);
    assert_eq!(names(&world, "quarantine"), Vec::<String>::new());
}

#[test]
fn a_pipe_or_a_socket_is_deleted_and_not_archived() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    let _socket =
        std::os::unix::net::UnixListener::bind(world.run_dir(&run).join("attempts/1/socket")).unwrap();
    let said = world.loopmux(["archive", "--json", &run]).exits(1).json();
    assert!(said["error"]["message"].as_str().unwrap().contains("socket"), "{said}");
    assert!(is_there(&world, &run));
    assert_eq!(names(&world, "archive"), Vec::<String>::new());
    world.loopmux(["delete", &run]).exits(0);
}

#[test]
fn a_link_in_the_place_of_a_run_is_not_entered() {
    let world = World::new();
    let run = ended(&world, "exit 0");
    let runs = crate::support::yard(&world).join("runs");
    let moved = world.file("moved");
    std::fs::rename(runs.join(&run), &moved).unwrap();
    symlink(&moved, runs.join(&run)).unwrap();
    for act in ["delete", "archive"] {
        world.loopmux([act, &run]).exits(4);
    }
    assert!(moved.join("run.json").is_file());
}

#[test]
fn a_directory_without_permissions_goes_all_the_same() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let run = ended(&world, "exit 0");
    let dir = world.run_dir(&run).join("attempts/1/locked");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("x"), "x").unwrap();
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o000)).unwrap();
    world.loopmux(["delete", &run]).exits(0);
    assert!(!is_there(&world, &run));
}
