//! Who executes the commands of a world.

use super::World;
use std::ffi::OsString;

/// A user without rights, of no test's own.
pub const STRANGER: u32 = 65534;

/// Whether this test is executed by root, who alone can become somebody else.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Tells something beside the name of the test; a test that passes shows it with `--no-capture`.
#[allow(clippy::print_stderr)]
pub fn say(text: &str) {
    eprintln!("{text}");
}

/// Says that a test is skipped because it needs root. `true` where it is to be left.
pub fn not_root(what: &str) -> bool {
    if is_root() {
        return false;
    }
    say(&format!("skipped: only root can {what}"));
    true
}

impl World {
    /// A world whose every command is executed by a user without rights, where the test itself is root's: root may
    /// do whatever a file's mode forbids. Where it is not, the user of the test is such a one.
    pub fn unprivileged() -> Self {
        let mut world = Self::new();
        if is_root() {
            world.give_to(STRANGER);
            let ids =
                [format!("--reuid={STRANGER}"), format!("--regid={STRANGER}"), "--clear-groups".to_owned()];
            world.prefix = ["setpriv".to_owned()].into_iter().chain(ids).map(OsString::from).collect();
        }
        world
    }

    /// A world of root's without the right to signal another user's process.
    pub fn without_kill() -> Self {
        let mut world = Self::new();
        world.prefix = ["setpriv", "--bounding-set", "-kill"].map(OsString::from).to_vec();
        world
    }

    /// Makes a user the owner of everything in the world.
    pub fn give_to(&self, uid: u32) {
        let mut dirs = vec![self.path().to_owned()];
        while let Some(path) = dirs.pop() {
            std::os::unix::fs::lchown(&path, Some(uid), Some(uid)).expect("chown");
            if path.is_dir() && !path.is_symlink() {
                dirs.extend(std::fs::read_dir(&path).expect("a directory").flatten().map(|e| e.path()));
            }
        }
    }
}

/// The script of a misbehaving program.
pub fn fixture(file: &str) -> String {
    format!("{}/fixtures/agents/{file}", env!("CARGO_MANIFEST_DIR"))
}

/// The interpreter itself: a shim in front of it would change the environment and be a process of its own.
pub fn python() -> &'static str {
    static PYTHON: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    PYTHON.get_or_init(|| {
        let mut command = std::process::Command::new("python3");
        let out = command.args(["-c", "import sys; print(sys.executable)"]).output().expect("python3");
        String::from_utf8(out.stdout).expect("a path").trim().to_owned()
    })
}
