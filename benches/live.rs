//! What the program costs on a real tmux, beside what tmux itself costs in the same minute. Figures, no verdicts:
//! machines differ, ratios less so.
//!
//! `cargo bench --bench live -- [RUNS]`, 300 by default.
#![allow(clippy::print_stdout)]

#[path = "../tests/harness/mod.rs"]
mod harness;

use harness::World;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn main() {
    let runs = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(300);
    start();
    run_true();
    wait_latency();
    live(runs);
}

/// Milliseconds: median and 99th percentile.
fn show(what: &str, mut times: Vec<Duration>) -> f64 {
    times.sort();
    let ms = |i: usize| times[i.min(times.len() - 1)].as_secs_f64() * 1000.0;
    let median = ms(times.len() / 2);
    println!(
        "  {what:<46} {median:>8.2} ms   p99 {:>8.2} ms   n {}",
        ms(times.len() * 99 / 100),
        times.len()
    );
    median
}

fn timed(mut command: Command) -> Duration {
    command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
    let begin = Instant::now();
    assert!(command.status().expect("it starts").success(), "{command:?}");
    begin.elapsed()
}

fn tmux(world: &World, args: &[&str]) -> Command {
    let mut command = Command::new("tmux");
    command.arg("-S").arg(world.socket()).args(args).env_remove("TMUX");
    command
}

fn start() {
    println!("start to end of what has nothing to do");
    let keep = env!("CARGO_BIN_EXE_loopmux-keep");
    let world = World::new();
    show("bare: true", (0..100).map(|_| timed(Command::new("true"))).collect());
    let protocol = |_| {
        let mut command = Command::new(keep);
        command.arg("--protocol");
        timed(command)
    };
    show("loopmux-keep --protocol", (0..100).map(protocol).collect());
    show("loopmux list, no runs", (0..100).map(|_| timed(world.command(["list"]))).collect());
}

fn run_true() {
    println!("a whole run of a program that does nothing, receipts and fsyncs included");
    let world = World::new();
    timed(tmux(&world, &["new-session", "-d", "-s", "keep", "sleep", "600"]));
    let bare = show(
        "bare: tmux new-session -d true",
        (0..60).map(|_| timed(tmux(&world, &["new-session", "-d", "true"]))).collect(),
    );
    let ours = show(
        "loopmux run -- true",
        (0..60).map(|_| timed(world.command(["run", "-q", "--", "true"]))).collect(),
    );
    println!("  difference {:.2} ms, ratio {:.1}", ours - bare, ours / bare);
}

/// From the last instruction of the program to the return of `wait`.
fn wait_latency() {
    println!("from a program's exit to the return of wait");
    let world = World::new();
    let mut times = Vec::new();
    for i in 0..100 {
        let stamp = world.file(&format!("stamp{i}"));
        let script = format!(
            "sleep 0.15; exec python3 -c 'import time,os; open(\"{}\",\"w\").write(str(time.clock_gettime_ns(time.CLOCK_MONOTONIC))); os._exit(0)'",
            stamp.display()
        );
        let run = world.detach(["sh", "-c", &script]);
        timed(world.command(["wait", &run]));
        let now = monotonic();
        let then: u128 = std::fs::read_to_string(&stamp).expect("a stamp").parse().expect("nanoseconds");
        times.push(Duration::from_nanos((now - then) as u64));
    }
    show("exit to the return of wait", times);
}

fn monotonic() -> u128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u128 * 1_000_000_000 + now.tv_nsec as u128
}

fn live(runs: usize) {
    println!("{runs} live runs");
    let world = World::new();
    let begin = Instant::now();
    for _ in 0..runs {
        world.detach(["sleep", "3600"]);
    }
    println!("  launched in {:.1} s", begin.elapsed().as_secs_f64());
    let bare = show(
        "bare: tmux list-panes -a",
        (0..30).map(|_| timed(tmux(&world, &["list-panes", "-a"]))).collect(),
    );
    let ours = show("loopmux list", (0..30).map(|_| timed(world.command(["list"]))).collect());
    println!("  ratio {:.2}", ours / bare);
    count_executions(&world);
    let of = |kind: &str| -> Vec<u32> {
        world.processes().iter().map(|h| h.identity().pid).filter(|pid| is(*pid, kind)).collect()
    };
    for (what, kind) in [("keepers", "/attempts/"), ("engine windows", "/engine/"), ("engines", "engine")] {
        let pids = of(kind);
        let pss: u64 = pids.iter().map(|pid| pss_kb(*pid)).sum();
        let cpu = cpu_ticks(&pids);
        std::thread::sleep(Duration::from_secs(5));
        let spent = cpu_ticks(&pids) - cpu;
        let inotify = pids.iter().filter(|pid| has_inotify(**pid)).count();
        println!(
            "  {:<14} {:>4}   PSS {:>7.1} MB in all, {:>5} KB each   {spent} ticks in 5 s   {inotify} with inotify",
            what,
            pids.len(),
            pss as f64 / 1024.0,
            pss / pids.len().max(1) as u64
        );
    }
}

fn is(pid: u32, kind: &str) -> bool {
    let words: Vec<String> = std::fs::read(format!("/proc/{pid}/cmdline"))
        .unwrap_or_default()
        .split(|b| *b == 0)
        .map(|w| String::from_utf8_lossy(w).into_owned())
        .collect();
    match kind {
        "engine" => words.get(1).is_some_and(|w| w == "engine"),
        part => words.get(1).is_some_and(|w| w == "keep") && words.get(2).is_some_and(|w| w.contains(part)),
    }
}

fn pss_kb(pid: u32) -> u64 {
    std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))
        .unwrap_or_default()
        .lines()
        .find_map(|l| l.strip_prefix("Pss:")?.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn cpu_ticks(pids: &[u32]) -> u64 {
    let of = |pid: &u32| -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let rest: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        Some(rest.get(11)?.parse::<u64>().ok()? + rest.get(12)?.parse::<u64>().ok()?)
    };
    pids.iter().filter_map(of).sum()
}

fn has_inotify(pid: u32) -> bool {
    std::fs::read_dir(format!("/proc/{pid}/fd")).is_ok_and(|fds| {
        fds.flatten()
            .any(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to == Path::new("anon_inode:inotify")))
    })
}

/// How often `list` executes tmux.
fn count_executions(world: &World) {
    let log = world.file("executions");
    world.script("tmux", &format!("#!/bin/sh\necho x >> {}\nexec /usr/bin/tmux \"$@\"\n", log.display()));
    timed(world.command(["list"]));
    let times = std::fs::read_to_string(&log).unwrap_or_default().lines().count();
    std::fs::remove_file(world.bin().join("tmux")).expect("the script");
    println!("  executions of tmux by one list: {times}");
}
