//! File systems of a test's own, with faults.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A small file system in memory. Only root can have one. It goes when it is dropped, whoever still uses it.
pub struct Disk {
    path: PathBuf,
}

impl Disk {
    /// Mounts one at `path`, which it makes, with these options of `mount`.
    #[track_caller]
    pub fn mount(path: PathBuf, options: &str) -> Self {
        std::fs::create_dir(&path).expect("a directory to mount at");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(&path));
        Self { path }
    }

    /// A view at `path` of the directory `of`, which is what it is and cannot be written through the view.
    #[track_caller]
    pub fn read_only_view(of: &Path, path: PathBuf) -> Self {
        std::fs::create_dir(&path).expect("a directory to mount at");
        run(Command::new("mount").arg("--bind").arg(of).arg(&path));
        let view = Self { path };
        run(Command::new("mount").args(["-o", "remount,bind,ro"]).arg(&view.path));
        let tried = std::fs::write(view.path.join("tried"), "").expect_err("a read-only view");
        assert_eq!(tried.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
        view
    }

    /// A directory at `path` in two layers: what is in `below`, which stays as it is, and what is changed on top of it.
    #[track_caller]
    pub fn layers(below: &Path, path: PathBuf) -> Self {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let beside = |what: &str| path.with_file_name(format!("{name}-{what}"));
        for dir in [&path, &beside("changes"), &beside("work")] {
            std::fs::create_dir(dir).expect("a directory of a layer");
        }
        let (upper, work) = (beside("changes"), beside("work"));
        let options =
            format!("lowerdir={},upperdir={},workdir={}", below.display(), upper.display(), work.display());
        run(Command::new("mount").args(["-t", "overlay", "-o", &options, "none"]).arg(&path));
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes all its room, and asserts that nothing more fits.
    #[track_caller]
    pub fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.path.join("filler")).expect("a file");
        let end = loop {
            if let Err(e) = file.write_all(&[0; 512]) {
                break e;
            }
        };
        assert_eq!(end.kind(), std::io::ErrorKind::StorageFull, "{end}");
        let more = std::fs::write(self.path.join("more"), "x").expect_err("a full disk");
        assert_eq!(more.kind(), std::io::ErrorKind::StorageFull, "{more}");
        // Where the file itself could be made.
        let _ = std::fs::remove_file(self.path.join("more"));
    }

    /// Takes all its room but so many pages of memory.
    #[track_caller]
    pub fn fill_but(&self, pages: u32) {
        self.fill();
        let file = std::fs::File::options().write(true).open(self.path.join("filler")).expect("the filler");
        let len = file.metadata().expect("its length").len();
        let page = rustix::param::page_size() as u64;
        file.set_len(len / page * page - u64::from(pages) * page).expect("a shorter filler");
    }

    /// Gives the room back.
    #[track_caller]
    pub fn empty(&self) {
        std::fs::remove_file(self.path.join("filler")).expect("the filler");
    }

    /// Takes all its inodes, and asserts that no file can be made.
    #[track_caller]
    pub fn take_inodes(&self) {
        let dir = self.path.join("fillers");
        std::fs::create_dir(&dir).expect("a directory");
        let end = (0..100_000).find_map(|n| std::fs::write(dir.join(n.to_string()), "").err());
        assert_eq!(end.expect("a limit").kind(), std::io::ErrorKind::StorageFull);
    }

    /// Takes all its inodes but some.
    #[track_caller]
    pub fn take_inodes_but(&self, files: u32) {
        self.take_inodes();
        for n in 0..files {
            std::fs::remove_file(self.path.join("fillers").join(n.to_string())).expect("a filler");
        }
    }

    /// Gives the inodes back.
    #[track_caller]
    pub fn give_inodes(&self) {
        std::fs::remove_dir_all(self.path.join("fillers")).expect("the fillers");
    }

    /// Forbids writes, or allows them again.
    #[track_caller]
    pub fn read_only(&self, yes: bool) {
        let mode = if yes { "remount,ro" } else { "remount,rw" };
        // A process of the run before may still have a file open to write.
        super::eventually("the remount", || {
            let done = Command::new("mount").args(["-o", mode]).arg(&self.path).output().expect("mount");
            if done.status.success() {
                Ok(())
            } else {
                Err(String::from_utf8_lossy(&done.stderr).into_owned())
            }
        });
        let tried = std::fs::write(self.path.join("tried"), "");
        let refused = tried.is_err_and(|e| e.kind() == std::io::ErrorKind::ReadOnlyFilesystem);
        assert_eq!(refused, yes);
        let _ = std::fs::remove_file(self.path.join("tried"));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.path).status();
    }
}

#[track_caller]
fn run(command: &mut Command) {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(out.status.success(), "{command:?}: {out:?}");
}

/// A library that takes the place of a function of the system in every program that is started with it.
#[track_caller]
pub fn interpose(dir: &Path, code: &str) -> PathBuf {
    let (source, library) = (dir.join("interposed.c"), dir.join("interposed.so"));
    std::fs::write(&source, code).expect("a source");
    run(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source));
    library
}
