//! A private machine under Wine for one test: own Wine prefix, own data directory, ended with the test.

#![allow(dead_code, reason = "each test binary uses its own part")]

use loopmux_mux::{Answered, CreateSpec, Multiplexer, Placement, Scope, SessionName, Snapshot, Tags};
use loopmux_psmux::Psmux;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A guard against hanging, far beyond what anything here takes.
pub(crate) const HANG: Duration = Duration::from_secs(120);

/// The directory with the real `psmux.exe`, `VERSION/psmux.exe` and a Wine prefix to copy. Without the variable there
/// is nothing to test with; with it everything has to work.
pub(crate) const VARIABLE: &str = "LOOPMUX_PSMUX_WINE";

/// The version under test.
pub(crate) const VERSION: &str = "3.4.0";

pub(crate) fn tools() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// The program for panes, built once for each test binary.
fn pane_program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/psmux/pane.c");
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pane-{}.exe", std::process::id()));
        let built = Command::new("x86_64-w64-mingw32-gcc")
            .args(["-municode", "-O1", "-o"])
            .args([out.as_os_str(), source.as_ref()])
            .output()
            .expect("the compiler for Windows");
        assert!(built.status.success(), "{built:?}");
        out
    })
}

pub(crate) struct Lab {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) psmux: Psmux,
}

impl Lab {
    pub(crate) fn new(tools: &Path) -> Self {
        Self::with_version(tools, VERSION)
    }

    pub(crate) fn with_version(tools: &Path, version: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("lab").tempdir().unwrap();
        let exe = tools.join(version).join("psmux.exe");
        assert!(exe.is_file(), "{} is not there", exe.display());
        let prefix = dir.path().join("prefix");
        let copied = Command::new("cp").arg("-a").arg(tools.join("prefix")).arg(&prefix).status().unwrap();
        assert!(copied.success(), "a Wine prefix cannot be copied from {}", tools.display());
        std::fs::copy(pane_program(), dir.path().join("pane.exe")).unwrap();
        // What a Windows program is, for who executes programs of this system: paths in its environment become its own.
        let script = format!(
            "#!/bin/bash\n\
             export WINEPREFIX='{}' WINEDEBUG=-all LC_ALL=C.UTF-8 XDG_RUNTIME_DIR='{}'\n\
             export PSMUX_DATA_DIR=\"${{PSMUX_DATA_DIR//\\//\\\\}}\"\n\
             case $PSMUX_DATA_DIR in \\\\*) PSMUX_DATA_DIR=\"Z:$PSMUX_DATA_DIR\";; esac\n\
             exec wine '{}' \"$@\"\n",
            prefix.display(),
            dir.path().display(),
            exe.display(),
        );
        let client = dir.path().join("psmux");
        std::fs::write(&client, script).unwrap();
        std::fs::set_permissions(&client, std::fs::Permissions::from_mode(0o700)).unwrap();
        // A busy machine is no fault of the server's.
        let psmux = Psmux::new(client, &dir.path().join("data")).unwrap().with_deadlines(HANG, HANG);
        let lab = Self { dir, psmux };
        let version = lab.by_hand(&["-V"]);
        assert!(version.status.success(), "psmux does not run under Wine: {version:?}");
        lab
    }

    /// Executes psmux as a person would, in this lab's data directory.
    pub(crate) fn by_hand(&self, args: &[&str]) -> Output {
        self.by_hand_in(self.psmux.socket(), args)
    }

    pub(crate) fn by_hand_in(&self, data: &Path, args: &[&str]) -> Output {
        // Files and not pipes: a server keeps what its client was given.
        let (out, err) = (self.path("out"), self.path("err"));
        let open = |path: &Path| Stdio::from(std::fs::File::create(path).unwrap());
        let status = Command::new(self.psmux.binary())
            .args(args)
            .env("PSMUX_DATA_DIR", data)
            .env("PSMUX_NO_WARM", "1")
            .env_remove("TMUX")
            .env_remove("TMUX_PANE")
            .stdin(Stdio::null())
            .stdout(open(&out))
            .stderr(open(&err))
            .status()
            .unwrap();
        Output { status, stdout: std::fs::read(out).unwrap(), stderr: std::fs::read(err).unwrap() }
    }

    /// The same, and it has to succeed.
    pub(crate) fn said(&self, args: &[&str]) -> String {
        let out = self.by_hand(args);
        assert!(out.status.success(), "{args:?}: {out:?}");
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn answered(&self) -> Answered {
        match self.psmux.snapshot(Scope::Everything) {
            Snapshot::Answered(answered) => answered,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A path of this lab as a Windows program names it.
    pub(crate) fn windows(&self, name: &str) -> String {
        let path = if name.is_empty() { self.dir.path().to_owned() } else { self.path(name) };
        format!("Z:{}", path.to_str().unwrap().replace('/', "\\"))
    }

    /// Words for the program of a pane.
    pub(crate) fn pane(&self, args: &[&str]) -> Vec<OsString> {
        let program = OsString::from(self.windows("pane.exe"));
        [program].into_iter().chain(args.iter().map(OsString::from)).collect()
    }

    pub(crate) fn registered(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.psmux.socket()).unwrap();
        let mut names: Vec<_> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter(|n| n.contains('.'))
            .collect();
        names.sort();
        names
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // The whole machine, by its prefix: every process in it is this test's.
        let prefix = self.path("prefix");
        let _ = Command::new("wineserver").arg("-k").env("WINEPREFIX", &prefix).status();
        let _ = Command::new("wineserver").arg("-w").env("WINEPREFIX", &prefix).status();
    }
}

pub(crate) fn tags(n: u32) -> Tags {
    loopmux_mux::conformance::tags(n)
}

pub(crate) fn session(lab: &Lab, name: &str, n: u32, command: Vec<OsString>) -> CreateSpec {
    CreateSpec {
        placement: Placement::NewSession {
            name: SessionName::new(name).unwrap(),
            tags: tags(n),
            size: (100, 30),
        },
        window: SessionName::new("agent").unwrap(),
        tags: tags(n),
        command,
        cwd: lab.windows("").into(),
    }
}

/// Waits for what must come.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < HANG, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
