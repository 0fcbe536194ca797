//! Hand-written attempt directories, and waiting by looking.

use loopmux::observe;
use loopmux::process::{self, Handle, Identity, Opened, Signal};
use loopmux::run::dir::{Dir, random_hex};
use loopmux::run::files::{
    EnvFile, ExitFile, KEEPER_PROTOCOL, LaunchFile, LeftoversFile, MuxRef, Role, SCHEMA, SpawnedFile,
    StartFile, name, now_ms,
};
use loopmux::run::id::RunId;
use loopmux::run::store::{AttemptRead, RunRead};
use loopmux::run::text::OsText;
use loopmux::verdict::{Lease, Observation, Verdict};
use loopmux_mux::{SessionName, Tags};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::windows::io::{FromRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use windows_sys::Win32::Foundation::INVALID_HANDLE_VALUE;
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::Threading::{OpenProcess, PROCESS_TERMINATE, TerminateProcess};

const KEEP: &str = env!("CARGO_BIN_EXE_loopmux-keep");
/// A hang guard, not a measure: far beyond anything that works.
const GUARD: Duration = Duration::from_secs(120);
/// Which part the program plays.
const PART: &str = "LOOPMUX_TEST_PART";
/// Where it tells what it was given.
const SHOWN: &str = "LOOPMUX_TEST_SHOWN";

/// Looks again and again until `look` gives something.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + GUARD;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The words of this very test program as a program that plays a part.
const WORDS: [&str; 4] = ["program", "--exact", "--ignored", "--nocapture"];

/// Plays the part that the environment names.
pub(crate) fn perform() {
    let part = std::env::var(PART).expect("a part to play");
    match part.split_once(':').unwrap_or((&part, "")) {
        ("exit", code) => std::process::exit(code.parse().unwrap()),
        ("wait", _) => loop {
            std::thread::sleep(Duration::from_secs(60));
        },
        ("show", _) => {
            let vars: BTreeMap<String, String> = std::env::vars().collect();
            let args: Vec<String> = std::env::args().collect();
            let shown =
                serde_json::json!({ "args": args, "vars": vars, "cwd": std::env::current_dir().unwrap() });
            std::fs::write(std::env::var_os(SHOWN).unwrap(), shown.to_string()).unwrap();
            std::process::exit(0);
        }
        ("family", _) => {
            child("wait");
            loop {
                std::thread::sleep(Duration::from_secs(60));
            }
        }
        ("orphan", _) => {
            child("wait");
            std::process::exit(5);
        }
        (other, _) => panic!("no part {other:?}"),
    }
}

fn child(part: &str) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(WORDS).env(PART, part).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap();
}

/// What the program was given.
pub(crate) struct Shown {
    pub(crate) args: Vec<String>,
    pub(crate) vars: BTreeMap<String, String>,
    pub(crate) cwd: PathBuf,
}

pub(crate) fn shown(attempt: &Attempt) -> Shown {
    let text = std::fs::read_to_string(attempt.root.path().join("shown.json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let field = |name: &str| value[name].clone();
    Shown {
        args: serde_json::from_value(field("args")).unwrap(),
        vars: serde_json::from_value(field("vars")).unwrap(),
        cwd: serde_json::from_value(field("cwd")).unwrap(),
    }
}

/// What to launch.
pub(crate) struct Spec {
    pub(crate) argv: Vec<OsString>,
    pub(crate) vars: Vec<(OsString, OsString)>,
}

impl Spec {
    /// This very test program, which plays a part.
    pub(crate) fn play(part: &str) -> Self {
        let me = std::env::current_exe().unwrap().into_os_string();
        let argv = [me].into_iter().chain(WORDS.map(OsString::from)).collect();
        let vars = std::env::vars_os().chain([(OsString::from(PART), OsString::from(part))]).collect();
        Self { argv, vars }
    }

    /// Writes the directories and files that a launch makes.
    pub(crate) fn write(mut self) -> Attempt {
        let root = tempfile::tempdir().unwrap();
        let token = random_hex(16);
        let run_dir = root.path().join("run");
        let dir = run_dir.join(name::ATTEMPTS).join("1");
        std::fs::create_dir_all(&dir).unwrap();
        let cwd = root.path().join("a directory");
        std::fs::create_dir(&cwd).unwrap();
        self.vars.push((SHOWN.into(), root.path().join("shown.json").into()));
        self.vars.push(("LOOPMUX_TOKEN".into(), (&token).into()));
        let home = Dir::open(&dir).unwrap();
        let launch = LaunchFile {
            schema: SCHEMA,
            protocol: KEEPER_PROTOCOL,
            role: Role::Attempt,
            run: "20261129-160042-0001".to_owned(),
            attempt: 1,
            tags: Tags {
                token: token.clone(),
                project: "0123456789abcdef".to_owned(),
                run: "r".to_owned(),
                state: "fedcba9876543210".to_owned(),
            },
            title: "test".to_owned(),
            argv: self.argv.into_iter().map(OsText).collect(),
            cwd: OsText::from(cwd.as_os_str()),
            mux: MuxRef {
                backend: "none".to_owned(),
                binary: OsText::from("none"),
                socket: OsText::from("none"),
                version: None,
            },
            session: SessionName::new("t").unwrap(),
            window: SessionName::new("w").unwrap(),
            host: process::host().clone(),
            park: false,
            poke: None,
            run_dir: home.above(2).unwrap(),
            at_ms: now_ms(),
        };
        home.write_once(name::LAUNCH, &launch).unwrap();
        let vars = self.vars.into_iter().map(|(n, v)| (OsText(n), OsText(v))).collect();
        home.write_once(name::ENV, &EnvFile { schema: SCHEMA, vars }).unwrap();
        Attempt { root, run_dir, dir, cwd, token }
    }
}

/// One attempt's directory. Whatever is in its job is ended with the test.
pub(crate) struct Attempt {
    root: tempfile::TempDir,
    run_dir: PathBuf,
    dir: PathBuf,
    pub(crate) cwd: PathBuf,
    pub(crate) token: String,
}

/// A running keeper, which is ended with the test.
pub(crate) struct Keeper(RefCell<Child>);

impl Keeper {
    pub(crate) fn has_ended(&self) -> bool {
        self.0.borrow_mut().try_wait().unwrap().is_some()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let child = self.0.get_mut();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Starts a keeper for a directory, as a window would.
pub(crate) fn keep(dir: &Path) -> Keeper {
    Keeper(RefCell::new(Command::new(KEEP).arg("keep").arg(dir).stdin(Stdio::null()).spawn().unwrap()))
}

impl Attempt {
    pub(crate) fn keep(&self) -> Keeper {
        keep(&self.dir)
    }

    pub(crate) fn open(&self) -> Dir {
        Dir::open(&self.dir).unwrap()
    }

    pub(crate) fn read(&self) -> AttemptRead {
        let id = RunId::parse("20261129-160042-0001").unwrap();
        match RunRead::at(id, Dir::open(&self.run_dir).unwrap()).attempt(1) {
            Observation::Known(read) => read,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        observe::attempt_on_disk(&self.read()).verdict
    }

    pub(crate) fn lease(&self) -> Lease {
        self.read().lease()
    }

    pub(crate) fn has(&self, file: &str) -> bool {
        match self.open().has(file) {
            Observation::Known(()) => true,
            Observation::Absent => false,
            Observation::Unknown(why) => panic!("{why}"),
        }
    }

    fn known<T>(seen: Observation<T>) -> Option<T> {
        match seen {
            Observation::Known(file) => Some(file),
            Observation::Absent => None,
            Observation::Unknown(why) => panic!("{why}"),
        }
    }

    #[track_caller]
    pub(crate) fn start(&self) -> StartFile {
        until("the start receipt is there", || Self::known(self.read().start()))
    }

    #[track_caller]
    pub(crate) fn program(&self) -> Identity {
        let spawned: SpawnedFile = until("the program is spawned", || Self::known(self.read().spawned()));
        spawned.cli
    }

    #[track_caller]
    pub(crate) fn ended(&self) -> ExitFile {
        until("the exit receipt is there", || Self::known(self.read().exit()))
    }

    pub(crate) fn leftovers(&self) -> Option<LeftoversFile> {
        Self::known(self.read().leftovers())
    }

    #[track_caller]
    pub(crate) fn exits(&self, code: i32) {
        let exit = self.ended();
        assert_eq!((exit.end, exit.hangup), (loopmux::verdict::End::Code(code), false));
        assert_eq!(exit.token, self.token);
        until("nothing is left", || self.has(name::EMPTIED).then_some(()));
        until("the lease is free", || (self.lease() == Lease::Free).then_some(()));
    }

    /// The same files in another place.
    pub(crate) fn copy(&self) -> PathBuf {
        let copy = self.root.path().join("copy").join(name::ATTEMPTS).join("1");
        std::fs::create_dir_all(&copy).unwrap();
        for file in [name::LAUNCH, name::ENV] {
            std::fs::copy(self.dir.join(file), copy.join(file)).unwrap();
        }
        copy
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        for member in process::with_token(&self.token).found {
            if let Opened::Handle(handle) = Handle::open(&member.id) {
                let _ = handle.signal(Signal::Kill);
            }
        }
    }
}

#[track_caller]
pub(crate) fn signal(id: &Identity, signal: Signal) {
    match Handle::open(id) {
        Opened::Handle(handle) => handle.signal(signal).unwrap(),
        Opened::Gone => {}
        Opened::Unknown(why) => panic!("{why}"),
    }
}

/// Ends a process that must run.
#[track_caller]
pub(crate) fn end(id: &Identity) {
    match Handle::open(id) {
        Opened::Handle(handle) => handle.signal(Signal::Kill).unwrap(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn is_gone(id: &Identity) -> bool {
    matches!(process::life(id), process::Life::Gone)
}

/// All descendants of a process as a multiplexer finds them: by their parents' numbers, parents first.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let all = parents();
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        found.extend(all.iter().filter(|(_, p)| *p == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    found.split_off(1)
}

#[allow(unsafe_code)]
fn parents() -> Vec<(u32, u32)> {
    let mut rows = Vec::new();
    // SAFETY: the snapshot is this function's, and the entry is as large as it says.
    unsafe {
        let snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
        assert_ne!(snapshot, INVALID_HANDLE_VALUE);
        let _closed = OwnedHandle::from_raw_handle(snapshot);
        let mut entry: PROCESSENTRY32W = std::mem::zeroed();
        entry.dwSize = u32::try_from(size_of::<PROCESSENTRY32W>()).unwrap();
        let mut more = Process32FirstW(snapshot, &raw mut entry) != 0;
        while more {
            rows.push((entry.th32ProcessID, entry.th32ParentProcessID));
            more = Process32NextW(snapshot, &raw mut entry) != 0;
        }
    }
    rows
}

/// Ends a process by its number, as a multiplexer does.
#[allow(unsafe_code)]
pub(crate) fn terminate(pid: u32, code: u32) {
    // SAFETY: the calls take numbers and a handle that is open between them.
    unsafe {
        let process = OpenProcess(PROCESS_TERMINATE, 0, pid);
        if !process.is_null() {
            TerminateProcess(process, code);
            drop(OwnedHandle::from_raw_handle(process));
        }
    }
}
