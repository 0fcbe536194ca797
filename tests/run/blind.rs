//! A multiplexer that cannot be asked: its runs run, everybody says why it could not be asked, and nothing changes.

use crate::harness::{HANG, Ran, Tree, World, alive, eventually, is_root, signal};
use loopmux::process::Signal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::time::Instant;

/// A world with one run that goes on quietly.
struct Quiet {
    world: World,
    run: String,
    server: u32,
}

impl Quiet {
    #[track_caller]
    fn new(world: World) -> Self {
        let (run, _) = world.launched(&["sleep", "600"]);
        world.until(&run, |s| s["run"]["status"] == "running");
        let server = world.server();
        Self { world, run, server }
    }

    /// Asks `list` and `status`, in both languages, and holds them to what the disk and the kernel say. `class` is
    /// the class of the multiplexer's reply, and `reason` is what a person reads.
    #[track_caller]
    fn look(&self, class: &str, reason: &str) {
        let before = Tree::of(&self.world.state());
        let began = Instant::now();
        let list = self.world.loopmux(["list", "--json"]).exits(0).json()["data"].clone();
        let run = &list["runs"][0];
        assert_eq!(
            (&run["status"], &run["window"]["state"]),
            (&"running".into(), &"unknown".into()),
            "{list}"
        );
        assert_eq!(list["parked"], Value::Null, "{list}");
        self.trouble(&list["mux"], class, reason);

        let status = self.world.status(&self.run);
        assert_eq!(status["run"]["status"], "running", "{status}");
        let attempt = &status["attempts"][0];
        assert_eq!(attempt["verdict"]["kind"], "running", "{status}");
        assert_eq!(attempt["evidence"]["lease"], "held", "{status}");
        let unseen = |what: &Value| matches!(what.as_str(), Some("unknown" | "not-served"));
        assert!(
            unseen(&attempt["evidence"]["session"]) && unseen(&attempt["evidence"]["window"]),
            "{status}"
        );
        self.trouble(&status["mux"], class, reason);

        for page in [self.world.loopmux(["list"]), self.world.loopmux(["status", &self.run])] {
            let page = page.exits(0).out;
            assert!(
                page.contains("running") && page.contains("could not be asked") && page.contains(reason),
                "{page}"
            );
        }
        assert!(began.elapsed() < HANG, "four answers took {:?}", began.elapsed());
        Tree::of(&self.world.state()).is(&before, "the state directory");
        assert!(alive(self.server) && alive(self.world.cli(&self.run, 1)));
    }

    #[track_caller]
    fn trouble(&self, looks: &Value, class: &str, reason: &str) {
        let look = &looks[0];
        assert_eq!(look["class"], class, "{looks}");
        assert!(look["trouble"].as_str().is_some_and(|t| t.contains(reason)), "{reason:?} in {looks}");
    }

    /// Every session, window and pane of the server, with what belongs to it.
    #[track_caller]
    fn objects(&self) -> String {
        let format = "#{pid} #{session_id} #{session_name} #{window_id} #{window_name} #{pane_id} #{pane_pid} \
                      #{@loopmux_s_token} #{@loopmux_w_token} #{@loopmux_p_token}";
        self.world.tmux(["list-panes", "-a", "-F", format]).exits(0).out
    }

    /// The lease needs no multiplexer: the run is stopped all the same, and the proof is the same.
    #[track_caller]
    fn stops(&self) {
        let cli = self.world.cli(&self.run, 1);
        let report = self.world.loopmux(["stop", "--json", &self.run]).exits(0).json()["data"].clone();
        assert!(!alive(cli), "{report}");
        assert_eq!(report["runs"][0]["status"], "stopped", "{report}");
    }

    /// A launch is refused, and leaves nothing.
    #[track_caller]
    fn refuses_a_launch(&self, code: i32) -> Ran {
        let runs = self.world.run_dir(&self.run).join("..");
        let before = std::fs::read_dir(&runs).unwrap().count();
        let ran = self.world.loopmux(["run", "-d", "--", "sleep", "600"]).exits(code);
        assert_eq!(std::fs::read_dir(&runs).unwrap().count(), before, "{ran:?}");
        assert_eq!(std::fs::read_dir(runs.join("../staging")).unwrap().count(), 0, "{ran:?}");
        ran
    }

    /// Puts the real socket aside while something else has its name.
    #[track_caller]
    fn in_its_place(&self, put: impl FnOnce(), class: &str, reason: &str) {
        let before = self.objects();
        let (socket, aside) = (self.world.socket(), self.world.file("tmux/aside"));
        std::fs::rename(&socket, &aside).unwrap();
        put();
        self.look(class, reason);
        let _ = std::fs::remove_file(&socket);
        std::fs::rename(&aside, &socket).unwrap();
        assert_eq!(self.objects(), before);
    }

    /// Puts another program first on PATH.
    #[track_caller]
    fn with_a_tmux(&self, script: &str, class: &str, reason: &str) {
        let before = self.objects();
        let fake = self.world.script("tmux", &format!("#!/bin/sh\n{script}\n"));
        self.look(class, reason);
        self.refuses_a_launch(5);
        std::fs::remove_file(fake).unwrap();
        assert_eq!(self.objects(), before);
    }
}

#[test]
fn a_stopped_server() {
    let quiet = Quiet::new(World::new());
    let before = quiet.objects();
    signal(quiet.server, Signal::Stop);
    quiet.look("timed-out", "no reply within the deadline");
    quiet.refuses_a_launch(5);
    signal(quiet.server, Signal::Cont);
    // The launch that was given up may still be carried out: nothing of it stays.
    eventually("the end of the given up launch", || {
        let now = quiet.objects();
        if now == before { Ok(()) } else { Err(now) }
    });
    signal(quiet.server, Signal::Stop);
    quiet.stops();
    signal(quiet.server, Signal::Cont);
}

#[test]
fn a_removed_socket() {
    let quiet = Quiet::new(World::new());
    quiet.in_its_place(|| {}, "no-socket", "No such file");
    std::fs::remove_file(quiet.world.socket()).unwrap();
    quiet.look("no-socket", "No such file");
    quiet.stops();
}

#[test]
fn a_socket_without_permissions() {
    let quiet = Quiet::new(World::unprivileged());
    let socket = quiet.world.socket();
    let mode = |mode| std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o000);
    quiet.look("denied", "Permission denied");
    quiet.refuses_a_launch(5);
    quiet.stops();
    mode(0o600);
    quiet.objects();
}

#[test]
fn a_directory_of_sockets_without_permissions() {
    let quiet = Quiet::new(World::unprivileged());
    let dir = quiet.world.file("tmux");
    let mode = |mode| std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o000);
    quiet.look("denied", "Permission denied");
    quiet.stops();
    mode(0o700);
}

#[test]
fn a_file_in_the_place_of_the_socket() {
    let quiet = Quiet::new(World::new());
    let socket = quiet.world.socket();
    quiet.in_its_place(|| std::fs::write(&socket, "no socket").unwrap(), "no-listener", "no server running");
    quiet.stops();
}

#[test]
fn a_deaf_listener_in_the_place_of_the_socket() {
    let quiet = Quiet::new(World::new());
    let socket = quiet.world.socket();
    let mut deaf = None;
    quiet.in_its_place(
        || deaf = Some(UnixListener::bind(&socket).unwrap()),
        "timed-out",
        "no reply within the deadline",
    );
    quiet.stops();
}

#[test]
fn a_listener_that_hangs_up_in_the_place_of_the_socket() {
    let quiet = Quiet::new(World::new());
    let socket = quiet.world.socket();
    let put = || {
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::spawn(move || while listener.accept().is_ok() {});
    };
    quiet.in_its_place(put, "server-lost", "server exited unexpectedly");
    quiet.stops();
}

#[test]
fn another_server_in_the_place_of_the_socket() {
    let quiet = Quiet::new(World::new());
    let before = quiet.objects();
    let (socket, aside) = (quiet.world.socket(), quiet.world.file("tmux/aside"));
    std::fs::rename(&socket, &aside).unwrap();
    // The same ids, and even a session of the same name.
    for name in ["other", "another"] {
        quiet.world.tmux(["-f", "/dev/null", "new-session", "-d", "-s", name, "sleep", "600"]).exits(0);
    }
    let tree = Tree::of(&quiet.world.state());
    let status = quiet.world.status(&quiet.run);
    assert_eq!(status["run"]["status"], "running", "{status}");
    let evidence = &status["attempts"][0]["evidence"];
    assert_eq!((&evidence["server"], &evidence["session"]), (&"other".into(), &"unknown".into()), "{status}");
    let page = quiet.world.loopmux(["status", &quiet.run]).exits(0).out;
    assert!(page.contains("another server answers at this socket"), "{page}");
    Tree::of(&quiet.world.state()).is(&tree, "the state directory");
    quiet.stops();
    // Nothing of the other one was touched.
    let theirs = quiet.world.tmux(["list-sessions", "-F", "#{session_name}"]).exits(0).out;
    assert_eq!(theirs, "another\nother\n");
    quiet.world.tmux(["kill-server"]).exits(0);
    std::fs::rename(&aside, &socket).unwrap();
    assert!(before.lines().count() > quiet.objects().lines().count(), "the run's own window is gone");
}

#[test]
fn a_tmux_that_fails_silently() {
    Quiet::new(World::new()).with_a_tmux("exit 1", "failed", "exit 1, it said nothing");
}

#[test]
fn a_tmux_that_says_what_another_version_says() {
    let said = "server version is too old for client";
    for code in [0, 1] {
        let quiet = Quiet::new(World::new());
        quiet.with_a_tmux(&format!("echo '{said}' >&2; exit {code}"), "incompatible", said);
    }
}

#[test]
fn a_tmux_that_lists_nothing_successfully() {
    let quiet = Quiet::new(World::new());
    quiet.with_a_tmux("exit 0", "empty", "exit 0, it said nothing");
    // Believable to the last line but one.
    let begin = format!("printf 'loopmux-begin\\t{}\\t3.3a\\n'", quiet.server);
    quiet.with_a_tmux(&begin, "failed", "exit 0, it printed");
    quiet.stops();
}

#[test]
fn a_tmux_that_cannot_be_executed() {
    let quiet = Quiet::new(World::unprivileged());
    let fake = quiet.world.script("tmux", "#!/no/such/interpreter\n");
    quiet.look("failed", "no program at");
    std::fs::remove_file(fake).unwrap();
    quiet.stops();
    assert!(!is_root() || !quiet.world.prefix.is_empty(), "executed without rights");
}
