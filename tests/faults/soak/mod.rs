//! A world that goes wrong at random, and an oracle that knows by handles of its own what really lives. After every step
//! nothing live was removed, ended without being asked to, or called ended; at the end everything dead can be removed.
//!
//! `LOOPMUX_SOAK_SEED` replays one seed, `LOOPMUX_SOAK_STEPS` sets the steps of each, and `LOOPMUX_SOAK_MINUTES` goes on
//! with new seeds until the time is over.

mod ledger;
mod steps;

use crate::harness::{World, say};
use crate::oracle::{is_told_alive, judge, judge_the_list, lives, living, remove_all};
use crate::support::{heal, world};
use ledger::Ledger;
use std::process::Child;
use std::time::{Duration, Instant};

/// Steps of one seed: half a minute on a machine that does little else.
const STEPS: u64 = 250;

/// The seeds of an ordinary run.
const SEEDS: [u64; 2] = [1, 20_26];

/// Codes with which the agents here exit.
const CODES: [i64; 6] = [0, 3, 7, 129, 137, 143];

/// Random numbers that a seed decides (splitmix64).
pub(crate) struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit.max(1)).expect("a small number"))
            .expect("a small number")
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }
}

/// One soak.
pub(crate) struct Soak {
    world: World,
    dice: Dice,
    ledger: Ledger,
    /// Commands under way, each with the run whose end it was asked for.
    under_way: Vec<(Child, Option<String>)>,
    /// Processes that are frozen.
    frozen: Vec<loopmux::process::Handle>,
    log: Log,
}

/// What was done, shown where something fails.
struct Log {
    seed: u64,
    steps: u64,
    lines: Vec<String>,
}

impl Drop for Log {
    fn drop(&mut self) {
        if std::thread::panicking() {
            say(&self.lines.join("\n"));
            say(&format!(
                "replay: LOOPMUX_SOAK_SEED={} LOOPMUX_SOAK_STEPS={} cargo test --test faults soak -- --ignored",
                self.seed, self.steps
            ));
        }
    }
}

#[test]
#[ignore = "soak"]
fn whatever_goes_wrong_nothing_live_is_removed_or_called_ended() {
    let number = |name: &str| std::env::var(name).ok().map(|v| v.parse::<u64>().expect(name));
    let steps = number("LOOPMUX_SOAK_STEPS").unwrap_or(STEPS);
    if let Some(seed) = number("LOOPMUX_SOAK_SEED") {
        return soak(seed, steps);
    }
    let end = number("LOOPMUX_SOAK_MINUTES").map(|m| Instant::now() + Duration::from_secs(60 * m));
    for seed in SEEDS {
        soak(seed, steps);
    }
    let Some(end) = end else { return };
    for seed in 1_000_000.. {
        if Instant::now() >= end {
            break;
        }
        soak(seed, steps);
    }
}

fn soak(seed: u64, steps: u64) {
    let mut soak = Soak::new(seed, steps);
    for step in 0..steps {
        let done = soak.step();
        soak.log.lines.push(format!("{step}: {done}"));
        soak.check();
    }
    soak.end();
    say(&format!("seed {seed}: {steps} steps, {}", soak.ledger.in_words()));
}

impl Soak {
    fn new(seed: u64, steps: u64) -> Self {
        let mut world = world();
        steps::prepare(&mut world);
        let log = Log { seed, steps, lines: Vec::new() };
        let (under_way, frozen) = (Vec::new(), Vec::new());
        Self { world, dice: Dice(seed), ledger: Ledger::default(), under_way, frozen, log }
    }

    /// The program's word against the ledger, and the ledger against the kernel.
    #[track_caller]
    fn check(&mut self) {
        let when = self.log.lines.last().cloned().unwrap_or_default();
        self.ledger.look(&self.world, &when);
        match self.dice.below(6) {
            0 if self.steady() => judge_the_list(&self.world, &when),
            1 if self.steady() => self.ask_about_one(&when),
            _ => {}
        }
    }

    /// One that lives is told alive.
    #[track_caller]
    fn ask_about_one(&mut self, when: &str) {
        let all = living(&self.world);
        let Some(one) = self.dice.pick(&all) else { return };
        let ran = self.world.loopmux(["status", "--json", &one.run]);
        if lives(one) {
            is_told_alive(one, &ran.exits(0).json()["data"], when);
        }
    }

    /// Nobody is in the middle of something, so that what is told must be so.
    fn steady(&mut self) -> bool {
        self.reap();
        self.under_way.is_empty() && self.frozen.is_empty()
    }

    /// Forgets commands that have ended.
    fn reap(&mut self) {
        let ledger = &mut self.ledger;
        self.under_way.retain_mut(|(child, ends)| match child.try_wait() {
            Ok(None) => true,
            _ => {
                ledger.asked_no_more(ends.as_deref());
                false
            }
        });
    }

    /// The world goes right again, everybody finishes, and everything dead is removed.
    #[track_caller]
    fn end(&mut self) {
        self.thaw();
        steps::mood(&self.world, "honest");
        std::fs::write(self.world.file("clock"), "0").expect("a clock");
        heal(&self.world);
        let deadline = Instant::now() + crate::harness::HANG;
        while !self.steady() {
            assert!(Instant::now() < deadline, "a command hangs: {:?}", self.under_way);
            std::thread::sleep(Duration::from_millis(20));
            // What runs in the foreground goes on as long as its agent.
            for run in crate::oracle::listed(&self.world) {
                let id = run["id"].as_str().expect("an id").to_owned();
                self.ledger.asked(&id);
                self.world.loopmux(["stop", "--grace", "200ms", &id]);
                self.ledger.look(&self.world, "the last stops");
            }
        }
        judge(&self.world, &CODES, "the end");
        remove_all(&self.world, false, "the end");
    }

    fn thaw(&mut self) {
        for handle in self.frozen.drain(..) {
            // One that was killed meanwhile needs no thaw.
            let _ = handle.signal(loopmux::process::Signal::Cont);
        }
    }
}
