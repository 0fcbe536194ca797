//! Run directories as engines and keepers leave them, made through the public writing side of the store.

use crate::harness::World;
use loopmux::process::{self, HostId, Identity};
use loopmux::run::dir::Dir;
use loopmux::run::files::{
    CreatedFile, EmptiedFile, ExitFile, HangupFile, KEEPER_PROTOCOL, LaunchFile, LeftoversFile, MuxRef,
    ProcessNote, RefusedFile, Role, RunFile, SCHEMA, SpawnedFile, StartFile, Work, name, now_ms,
};
use loopmux::run::id::RunId;
use loopmux::run::locks;
use loopmux::run::record::{Change, Outcome};
use loopmux::run::write::{EngineRun, ProjectWrite, WriteStore};
use loopmux::verdict::{Cause, End, Status};
use loopmux_mux::{PaneId, SessionId, SessionName, Tags, WindowId};
use std::fs::File;
use std::path::{Path, PathBuf};

/// 2026-11-29T16:00:42Z.
pub(crate) const THEN: u64 = 1_795_968_042_000;

/// A project's runs.
pub(crate) struct Samples {
    /// For writing.
    pub(crate) project: ProjectWrite,
    state: String,
    root: PathBuf,
    socket: PathBuf,
}

/// One run that is being made.
pub(crate) struct Sample<'s> {
    samples: &'s Samples,
    engine: EngineRun,
    id: RunId,
}

/// An attempt that is being made.
pub(crate) struct Attempt {
    /// Its directory.
    pub(crate) dir: Dir,
    token: String,
}

/// A process that ended long ago: this boot, and a start that no process has.
pub(crate) fn gone() -> Identity {
    Identity { start: 1, ..process::current() }
}

impl Samples {
    /// Of the world's project.
    pub(crate) fn new(world: &World) -> Self {
        Self::of(world, &world.project())
    }

    /// Of another project in the world's state directory.
    pub(crate) fn of(world: &World, root: &Path) -> Self {
        let store = WriteStore::open(&world.state(), true).expect("a state directory");
        let root = root.canonicalize().expect("a project");
        let project = store.project(&root).expect("a project");
        Self { project, state: store.state_id().to_owned(), root, socket: world.socket() }
    }

    /// A run of that id, as its engine begins it. The engine lives as long as the sample.
    pub(crate) fn run(&self, id: &str, name: Option<&str>, argv: &[&str], created_ms: u64) -> Sample<'_> {
        let id = RunId::parse(id).expect("an id");
        let file = RunFile {
            schema: SCHEMA,
            id: id.clone(),
            name: name.map(str::to_owned),
            project: self.root.as_os_str().into(),
            state: self.state.clone(),
            created_ms,
            host: process::host().clone(),
            work: Work::Command {
                argv: argv.iter().map(|w| (*w).into()).collect(),
                cwd: self.root.as_os_str().into(),
            },
            mux: self.mux(),
            size: (200, 50),
            park: false,
            timeout_ms: None,
            grace_ms: 5000,
        };
        self.project
            .dir()
            .sub("locks")
            .and_then(|d| d.create_empty(&format!("{id}.lock")).map_err(std::io::Error::other))
            .expect("a run lock");
        let staged = self.project.stage(&file).expect("a staged run");
        let engine = self.project.publish(staged, loopmux::process::current()).expect("a run");
        Sample { samples: self, engine, id }
    }

    /// A run that is over: one attempt, its receipts, its record. `end` fills the attempt and says how it ended.
    pub(crate) fn over(
        &self,
        id: &str,
        name: Option<&str>,
        status: Status,
        end: impl FnOnce(&Attempt) -> Option<Outcome>,
    ) -> PathBuf {
        let run = self.run(id, name, &["sh", "-c", "exit 3"], THEN);
        let attempt = run.attempt(1);
        let outcome = end(&attempt);
        run.end(status, outcome);
        run.dir()
    }

    fn mux(&self) -> MuxRef {
        MuxRef {
            backend: "tmux".to_owned(),
            binary: "/usr/bin/tmux".into(),
            socket: self.socket.as_os_str().into(),
            version: Some("3.3a".to_owned()),
        }
    }
}

impl Sample<'_> {
    /// Its directory.
    pub(crate) fn dir(&self) -> PathBuf {
        self.engine.run().dir().path().to_owned()
    }

    /// A launched attempt: directory, lease, launch file, record.
    pub(crate) fn attempt(&self, n: u32) -> Attempt {
        self.change(Change::Launch { attempt: n, engine: process::current() });
        let dir = self.engine.make_attempt(n).expect("an attempt");
        let token = format!("{n:032x}");
        let tags = Tags {
            token: token.clone(),
            project: self.samples.project.key().to_owned(),
            run: self.id.to_string(),
            state: self.samples.state.clone(),
        };
        let name_of = |text: &str| SessionName::new(text).expect("a name");
        let launch = LaunchFile {
            schema: SCHEMA,
            protocol: KEEPER_PROTOCOL,
            role: Role::Attempt,
            run: self.id.to_string(),
            attempt: n,
            tags,
            title: "t".to_owned(),
            argv: vec!["sh".into()],
            cwd: "/".into(),
            mux: self.samples.mux(),
            session: name_of("lm-sample"),
            window: name_of("sample"),
            host: process::host().clone(),
            park: false,
            poke: None,
            run_dir: self.engine.run().dir().identity().expect("an identity"),
            at_ms: THEN,
        };
        dir.create_empty(name::LEASE).expect("a lease");
        dir.write_once(name::LAUNCH, &launch).expect("a launch file");
        Attempt { dir, token }
    }

    /// The record changes.
    pub(crate) fn change(&self, change: Change) {
        self.engine.change_record(&self.samples.project, change).expect("a permitted change");
    }

    /// The run is over.
    pub(crate) fn end(&self, status: Status, outcome: Option<Outcome>) {
        self.change(Change::End { status, outcome, reason: None, at_ms: THEN + 148_000 });
    }
}

impl Attempt {
    /// The start receipt, of a keeper that is gone.
    pub(crate) fn started(&self) -> &Self {
        self.started_by(&gone(), &gone(), process::host())
    }

    /// The start receipt of that keeper in that server on that machine, and what follows it.
    pub(crate) fn started_by(&self, keeper: &Identity, server: &Identity, host: &HostId) -> &Self {
        let start = StartFile {
            schema: SCHEMA,
            token: self.token.clone(),
            keeper: keeper.clone(),
            host: host.clone(),
            server: Some(server.clone()),
            session: Some(SessionId::from_backend("$1")),
            pane: Some(PaneId::from_backend("%3")),
            at_ms: THEN,
        };
        let created = CreatedFile {
            schema: SCHEMA,
            server: Some(server.clone()),
            version: "3.3a".to_owned(),
            session: SessionId::from_backend("$1"),
            window: WindowId::from_backend("@3"),
            pane: PaneId::from_backend("%3"),
            pane_pid: Some(keeper.pid),
            at_ms: THEN,
        };
        let spawned =
            SpawnedFile { schema: SCHEMA, cli: gone(), group: 1, session: 1, autogroup: None, at_ms: THEN };
        self.dir.write_once(name::START, &start).expect("a start receipt");
        self.dir.write_once(name::CREATED, &created).expect("a read-back");
        self.dir.write_once(name::SPAWNED, &spawned).expect("a spawn note");
        self
    }

    /// The exit receipt, and the one that nothing is left.
    pub(crate) fn exited(&self, end: End, hangup: bool) -> &Self {
        let exit = ExitFile { schema: SCHEMA, token: self.token.clone(), end, hangup, at_ms: THEN + 148_000 };
        self.dir.write_once(name::EXIT, &exit).expect("an exit receipt");
        self
    }

    /// The receipt that nothing is left.
    pub(crate) fn emptied(&self) -> &Self {
        self.dir
            .write_once(name::EMPTIED, &EmptiedFile { schema: SCHEMA, at_ms: THEN + 148_000 })
            .expect("a receipt");
        self
    }

    /// The keeper's word on a hang-up.
    pub(crate) fn hung_up(&self, cause: Option<Cause>) -> &Self {
        let hangup = HangupFile {
            schema: SCHEMA,
            cause,
            class: "answered".to_owned(),
            said: "the session is not listed".to_owned(),
            at_ms: THEN + 147_000,
        };
        self.dir.write_once(name::HANGUP, &hangup).expect("a hang-up note");
        self
    }

    /// The keeper would not start.
    pub(crate) fn refused(&self, why: &str) -> &Self {
        let refused = RefusedFile { schema: SCHEMA, why: why.to_owned(), at_ms: THEN };
        self.dir.write_once(name::REFUSED, &refused).expect("a refusal");
        self
    }

    /// What still ran after the end.
    pub(crate) fn left(&self, command: &str) -> &Self {
        let note = ProcessNote { id: gone(), command: command.to_owned(), started_ms: THEN + 30_000 };
        let left = LeftoversFile { schema: SCHEMA, processes: vec![note], at_ms: THEN + 148_000 };
        self.dir.replace(name::LEFTOVERS, &left).expect("a list");
        self
    }

    /// The output log.
    pub(crate) fn wrote(&self, bytes: &[u8]) -> &Self {
        std::fs::write(self.dir.path().join(name::OUTPUT), bytes).expect("a log");
        self
    }

    /// Holds the lease, as a living keeper does.
    pub(crate) fn hold(&self) -> File {
        let file = self.dir.open_lock(name::LEASE).expect("a lease");
        locks::take(&file).expect("a free lease");
        file
    }
}

/// Overwrites a file with something else.
pub(crate) fn spoil(run: &Path, file: &str, text: &str) {
    let path = run.join(file);
    assert!(path.is_file(), "{}", path.display());
    std::fs::write(path, text).expect("a file");
}

/// One run of each state, newest first by their ids. What is held is held as long as the result lives.
pub(crate) struct Zoo {
    /// Ids and the status that each must read.
    pub(crate) expected: Vec<(&'static str, &'static str)>,
    _held: Vec<File>,
    _engine: EngineRun,
}

impl Zoo {
    /// Makes all of them.
    pub(crate) fn new(samples: &Samples) -> Self {
        let lost = |cause| Some(Outcome::Lost { cause, end: None });
        let code = |n| Some(Outcome::Exited { end: End::Code(n) });
        samples.over("20261129-160042-0001", Some("fine"), Status::Succeeded, |a| {
            a.started().exited(End::Code(0), false).emptied().wrote(b"hello\r\n");
            code(0)
        });
        samples.over("20261129-160042-0002", None, Status::Failed, |a| {
            a.started().exited(End::Code(3), false).emptied();
            code(3)
        });
        samples.over("20261129-160042-0003", None, Status::Failed, |a| {
            a.started().exited(End::SpawnError("no such file".to_owned()), false).emptied();
            Some(Outcome::Exited { end: End::SpawnError("no such file".to_owned()) })
        });
        samples.over("20261129-160042-0004", Some("fix-login"), Status::Lost, |a| {
            a.started().hung_up(Some(Cause::SessionKilled));
            lost(Cause::SessionKilled)
        });
        samples.over("20261129-160042-0005", None, Status::Lost, |a| {
            a.started();
            lost(Cause::ServerGone)
        });
        samples.over("20261129-160042-0006", None, Status::Lost, |a| {
            a.started_by(&gone(), &process::current(), process::host());
            lost(Cause::KeeperKilled)
        });
        samples.over("20261129-160042-0007", None, Status::Lost, |a| {
            let other = HostId { boot: "another".to_owned(), ..process::host().clone() };
            a.started_by(&gone(), &gone(), &other);
            lost(Cause::HostRestarted)
        });
        samples.over("20261129-160042-0008", None, Status::Failed, |a| {
            a.refused("the directory is another one");
            Some(Outcome::NeverStarted { why: "the directory is another one".to_owned() })
        });
        let mut held = Vec::new();
        samples.over("20261129-160042-0009", None, Status::Succeeded, |a| {
            a.started().exited(End::Code(0), false).left("node build-server.js");
            held.push(a.hold());
            code(0)
        });
        // Its engine is gone, and its agent CLI is alive.
        let orphan = samples.run("20261129-160042-0010", Some("orphan"), &["sleep", "600"], THEN);
        let attempt = orphan.attempt(1);
        attempt.started_by(&process::current(), &gone(), process::host());
        held.push(attempt.hold());
        orphan.change(Change::Started);
        drop(orphan);
        // Made, and given up by nobody.
        let bare = samples.run("20261129-160042-0011", None, &["true"], THEN);
        drop(bare);
        let torn = samples.over("20261129-160042-0012", None, Status::Failed, |a| {
            a.started().exited(End::Code(1), false).emptied();
            code(1)
        });
        spoil(&torn, "run.json", "{\"schema\":1,\"id\":");
        let newer = samples.over("20261129-160042-0013", None, Status::Failed, |a| {
            a.started().exited(End::Code(1), false).emptied();
            code(1)
        });
        spoil(&newer, "state.json", "{\"schema\":2,\"news\":true}");
        let file = samples.project.dir().path().join("runs/20261129-160042-0014");
        std::fs::write(&file, "a file where a run should be").expect("a file");
        let long = "x".repeat(300);
        samples.over("20261129-160042-0015", Some(&long), Status::Stopped, |a| {
            a.started().exited(End::Signal(15), false).emptied();
            Some(Outcome::Exited { end: End::Signal(15) })
        });
        samples.over(
            "20261129-160042-0016",
            Some("caf\u{e9} \u{1f980} \u{8a9e}\x1b[31m\n#{pid}"),
            Status::Succeeded,
            |a| {
                a.started().exited(End::Code(0), false).emptied();
                code(0)
            },
        );
        let running = samples.run("20261129-160042-0017", Some("busy"), &["sleep", "600"], now_ms());
        let attempt = running.attempt(1);
        attempt.started_by(&process::current(), &gone(), process::host());
        held.push(attempt.hold());
        running.change(Change::Started);
        let Sample { engine, .. } = running;
        Self {
            expected: vec![
                ("20261129-160042-0017", "running"),
                ("20261129-160042-0016", "succeeded"),
                ("20261129-160042-0015", "stopped"),
                ("20261129-160042-0014", "unknown"),
                ("20261129-160042-0013", "unknown"),
                // Its record is final; what was asked is not needed for that.
                ("20261129-160042-0012", "failed"),
                ("20261129-160042-0011", "interrupted"),
                ("20261129-160042-0010", "orphaned"),
                ("20261129-160042-0009", "succeeded"),
                ("20261129-160042-0008", "failed"),
                ("20261129-160042-0007", "lost"),
                ("20261129-160042-0006", "lost"),
                ("20261129-160042-0005", "lost"),
                ("20261129-160042-0004", "lost"),
                ("20261129-160042-0003", "failed"),
                ("20261129-160042-0002", "failed"),
                ("20261129-160042-0001", "succeeded"),
            ],
            _held: held,
            _engine: engine,
        }
    }
}
