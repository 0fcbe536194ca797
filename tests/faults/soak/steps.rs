//! What can happen in a step.

use super::Soak;
use crate::harness::World;
use crate::oracle::entries;
use crate::support::{server, start_with};
use loopmux::fault::POINTS;
use loopmux::process::{Handle, Signal};
use serde_json::Value;

/// Agents, and what they are told.
const AGENTS: [&[&str]; 6] =
    [&["stay"], &["deaf"], &["exit", "0"], &["exit", "3"], &["leave"], &["nap", "7"]];

/// A tmux before the real one, whose listings lie as the file `mood` says. Windows are made and ended by the real one.
const LIAR: &str = r#"#!/bin/sh
real=/usr/bin/tmux
mood=$(cat "${0%/*}/mood")
case " $* " in
*" list-panes "*|*" list-sessions "*|*" has-session "*) ;;
*) exec $real "$@" ;;
esac
case $mood in
omits) $real "$@" | grep '^loopmux-' ;;
fails) exit 1 ;;
hangs) sleep 5 ;;
halves) $real "$@" | head -n 1 ;;
denies) echo "no server running on $3" >&2; exit 1 ;;
*) exec $real "$@" ;;
esac
"#;

/// Steps that a command may come to.
fn steps_of(command: &str) -> Vec<&'static str> {
    let prefixes: &[&str] = match command {
        "run" => &["create.", "make.", "write.", "lock.", "launch.", "replace."],
        "engine" => {
            &["lock.", "launch.", "replace.", "make.attempt", "write.", "create.lease", "stop.", "unlink."]
        }
        "stop" => &["lock.run", "write.stop", "stop.", "create.cancelled", "replace.state", "unlink."],
        "delete" => {
            &["lock.", "remove.", "quarantine.", "make.", "replace.", "stop.", "write.stop", "cleanup."]
        }
        "archive" => &["lock.run", "remove.", "archive.", "make.archive", "stop.", "write.stop"],
        "restore" => &["lock.run", "restore.", "archive.", "quarantine.restore"],
        "clean" => &["lock.run", "remove.", "archive."],
        "resume" => &["lock.", "make.attempt", "write.", "launch.", "replace.control"],
        _ => &["lock.", "cleanup.", "replace.control"],
    };
    POINTS.iter().copied().filter(|p| prefixes.iter().any(|prefix| p.starts_with(prefix))).collect()
}

/// Moods of the liar; the first one is no lie.
const MOODS: [&str; 6] = ["honest", "omits", "fails", "halves", "denies", "hangs"];

/// Sets the stage: a liar for a tmux, a clock that can be set, a server that is there.
pub(super) fn prepare(world: &mut World) {
    world.script("tmux", LIAR);
    mood(world, "honest");
    let clock = format!("clock:{}", world.file("clock").display());
    world.env.push(("LOOPMUX_FAULT".into(), clock.into()));
    server(world);
}

/// What the liar does from now on.
pub(super) fn mood(world: &World, mood: &str) {
    std::fs::write(world.bin().join("mood"), mood).expect("a mood");
}

impl Soak {
    /// One step; says what it was.
    #[track_caller]
    pub(super) fn step(&mut self) -> String {
        self.thaw();
        self.reap();
        match self.dice.below(100) {
            0..25 => self.launch(),
            25..45 => self.act(),
            45..65 => self.act_behind(),
            65..80 => self.kill_process(),
            80..86 => self.kill_in_the_multiplexer(),
            86..88 => self.kill_the_server(),
            88..90 => self.freeze(),
            90..96 => {
                // Half of the time it tells the truth.
                let mood =
                    if self.dice.below(2) == 0 { MOODS[0] } else { *self.dice.pick(&MOODS).expect("a mood") };
                self::mood(&self.world, mood);
                format!("tmux {mood}")
            }
            _ => {
                let off = [-86_400_000i64, -1_000, 0, 3_600_000, 400 * 86_400_000][self.dice.below(5)];
                std::fs::write(self.world.file("clock"), off.to_string()).expect("a clock");
                format!("the clock is off by {off} ms")
            }
        }
    }

    /// A run, in the foreground or not; in the foreground it is left to itself.
    fn launch(&mut self) -> String {
        let agent = *self.dice.pick(&AGENTS).expect("an agent");
        let how: &[&str] =
            [&["run", "-d", "--"][..], &["run", "-d", "--"], &["run", "--park", "--"]][self.dice.below(3)];
        let words: Vec<&str> = how.iter().copied().chain(["agent"]).chain(agent.iter().copied()).collect();
        if how.contains(&"-d") && self.dice.below(2) == 0 {
            let ran = self.world.loopmux(&words);
            return format!("{words:?}: {:?} {}", ran.code, ran.out.trim());
        }
        let who = if how.contains(&"-d") { "engine" } else { "run" };
        let fault = self.death_of(who);
        self.behind(&words, None, &fault);
        format!("{words:?} behind, with {fault:?}")
    }

    /// Two times of three a command dies at one of its steps.
    fn death_of(&mut self, command: &str) -> String {
        if self.dice.below(3) == 0 {
            return String::new();
        }
        let steps = steps_of(command);
        let step = self.dice.pick(&steps).expect("a step");
        let side = ["before", "after"][self.dice.below(2)];
        let time = if step.starts_with("remove.") { 1 + self.dice.below(9) } else { 1 + self.dice.below(2) };
        format!("die:{step}.{side}@{time}~{command}")
    }

    /// A command on some run.
    fn words(&mut self) -> Option<(Vec<String>, Option<String>)> {
        let runs = self.runs();
        let run = self.dice.pick(&runs).cloned()?;
        let acts: [&[&str]; 14] = [
            &["stop", "--grace", "100ms", "RUN"],
            &["stop", "--force", "RUN"],
            &["delete", "RUN"],
            &["delete", "RUN"],
            &["delete", "--force", "--grace", "100ms", "RUN"],
            &["delete", "--unproven", "RUN"],
            &["archive", "RUN"],
            &["archive", "--force", "--grace", "100ms", "RUN"],
            &["restore", "RUN"],
            &["resume", "-d", "RUN"],
            &["resume", "-d", "RUN"],
            &["clean", "--retain", "6"],
            &["clean", "--hard", "--retain", "3"],
            &["cleanup"],
        ];
        let act = *self.dice.pick(&acts).expect("an act");
        let ends = (act[0] == "stop" || act.contains(&"--force")).then(|| run.clone());
        let words = act.iter().map(|w| if *w == "RUN" { run.clone() } else { (*w).to_owned() }).collect();
        Some((words, ends))
    }

    /// Runs of every place.
    fn runs(&self) -> Vec<String> {
        let mut ids: Vec<String> = ["runs", "quarantine", "archive", "trash"]
            .iter()
            .flat_map(|place| entries(&self.world, place))
            .filter_map(|p| Some(p.file_name()?.to_string_lossy().split('.').next()?.to_owned()))
            .filter(|id| !id.is_empty())
            .collect();
        ids.sort();
        ids.dedup();
        ids
    }

    fn act(&mut self) -> String {
        let Some((words, ends)) = self.words() else { return "nothing to act on".to_owned() };
        if let Some(run) = &ends {
            self.ledger.asked(run);
        }
        let json = words[0] == "delete" || words.iter().any(|w| w == "--hard");
        let ran = self.world.loopmux(words.iter().map(String::as_str).chain(json.then_some("--json")));
        if json && let Ok(report) = serde_json::from_str::<Value>(ran.out.trim()) {
            for one in report["data"]["removed"].as_array().into_iter().flatten() {
                self.ledger.removed(&self.world, one["run"].as_str().expect("a run"));
            }
        }
        self.ledger.asked_no_more(ends.as_deref());
        format!("{words:?}: {:?} {}", ran.code, ran.err.trim())
    }

    /// The same beside everything that comes next; it may die at any of its steps.
    fn act_behind(&mut self) -> String {
        let Some((words, ends)) = self.words() else { return "nothing to act on".to_owned() };
        let fault = self.death_of(&words[0].clone());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.behind(&words, ends, &fault);
        format!("{words:?} behind, with {fault:?}")
    }

    fn behind(&mut self, words: &[&str], ends: Option<String>, fault: &str) {
        if self.under_way.len() >= 4 {
            let (mut child, ends) = self.under_way.remove(0);
            // One in the foreground goes on as long as its agent: it is a caller that goes away.
            let _ = child.kill();
            let _ = child.wait();
            self.ledger.asked_no_more(ends.as_deref());
        }
        if let Some(run) = &ends {
            self.ledger.asked(run);
        }
        let clock = format!("clock:{}", self.world.file("clock").display());
        let child = start_with(&self.world, words, &format!("{clock},{fault}"));
        self.under_way.push((child, ends));
    }

    /// Some process of this world ends, as by SIGKILL.
    fn kill_process(&mut self) -> String {
        let all: Vec<Handle> = self.processes();
        let Some(handle) = self.dice.pick(&all) else { return "nobody to kill".to_owned() };
        let pid = handle.identity().pid;
        let words = command(pid);
        // What a keeper leaves behind may go with it, and so may the agent itself.
        let (run, attempt) = about(&words, pid);
        let is_keeper = words.contains(" keep ") && words.contains("/attempts/");
        if let Some(run) = run.filter(|_| is_keeper || !words.contains("loopmux")) {
            self.ledger.may_end(&run, attempt);
        }
        let _ = handle.signal(Signal::Kill);
        format!("killed {pid} {words}")
    }

    fn processes(&self) -> Vec<Handle> {
        let mut all = self.world.processes();
        all.retain(|h| {
            let words = command(h.identity().pid);
            !words.is_empty()
                && !words.starts_with("tmux")
                && !words.contains("/tmux ")
                && !words.contains("86399")
        });
        all.sort_by_key(|h| (h.identity().start, h.identity().pid));
        all
    }

    fn kill_in_the_multiplexer(&mut self) -> String {
        let list = self.world.tmux(["list-panes", "-a", "-F", "#{session_name} #{pane_id}"]).out;
        let panes: Vec<String> =
            list.lines().filter(|l| !l.starts_with("mine ")).map(str::to_owned).collect();
        let Some(line) = self.dice.pick(&panes) else { return "no window to kill".to_owned() };
        let (session, pane) = line.split_once(' ').expect("two words");
        self.ledger.look(&self.world, "before a kill in the multiplexer");
        let act = self.dice.below(2);
        let target = if act == 0 { format!("={session}") } else { pane.to_owned() };
        self.world.tmux([["kill-session", "kill-pane"][act], "-t", &target]);
        self.ledger.license_every_terminal(&self.world);
        format!("killed {target} ({line})")
    }

    fn kill_the_server(&mut self) -> String {
        self.ledger.look(&self.world, "before a kill of the server");
        if self.dice.below(2) == 0 {
            self.world.tmux(["kill-server"]);
            self.ledger.license_every_terminal(&self.world);
            return "the server was asked to end".to_owned();
        }
        let ran = self.world.tmux(["display-message", "-p", "#{pid}"]);
        match ran.out.trim().parse() {
            Ok(pid) => crate::harness::signal(pid, Signal::Kill),
            Err(_) => return "no server to kill".to_owned(),
        }
        self.ledger.license_every_terminal(&self.world);
        "the server was killed".to_owned()
    }

    /// An engine or a keeper stops for the length of a step.
    fn freeze(&mut self) -> String {
        let all: Vec<Handle> =
            self.processes().into_iter().filter(|h| command(h.identity().pid).contains("loopmux")).collect();
        let at = self.dice.below(all.len());
        let Some(handle) = all.into_iter().nth(at) else { return "nobody to freeze".to_owned() };
        let words = command(handle.identity().pid);
        let _ = handle.signal(Signal::Stop);
        self.frozen.push(handle);
        format!("froze {words}")
    }
}

fn command(pid: u32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ").trim().to_owned()
}

/// The run and attempt that a process is of.
fn about(words: &str, pid: u32) -> (Option<String>, u64) {
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let environ = String::from_utf8_lossy(&environ).into_owned();
    let var = |name: &str| environ.split('\0').find_map(|v| v.strip_prefix(name)).map(str::to_owned);
    if let Some((_, rest)) = words.split_once("/runs/") {
        let mut parts = rest.split(['/', ' ']);
        let run = parts.next().map(str::to_owned);
        let attempt = parts.nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
        return (run, attempt);
    }
    (var("LOOPMUX_RUN="), var("LOOPMUX_ATTEMPT=").and_then(|n| n.parse().ok()).unwrap_or(0))
}
