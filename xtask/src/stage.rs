//! Stages: each is timed, and one that failed does not hide the next.

use crate::Failure;
use std::process::Command;
use std::time::{Duration, Instant};

/// How a stage ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed(String),
    /// It was not carried out: why.
    Skipped(String),
}

/// The stages so far.
#[derive(Debug, Default)]
pub(crate) struct Stages {
    done: Vec<(String, Outcome, Duration)>,
}

impl Stages {
    /// Carries out one stage and prints how long it took.
    pub(crate) fn stage(&mut self, name: &str, work: impl FnOnce() -> Outcome) -> Outcome {
        println!("\n=== {name}");
        let start = Instant::now();
        let outcome = work();
        let took = start.elapsed();
        println!("--- {name}: {} in {}", word(&outcome), seconds(took));
        self.done.push((name.to_owned(), outcome.clone(), took));
        outcome
    }

    /// The same for one command.
    pub(crate) fn command(&mut self, name: &str, command: &mut Command) -> Outcome {
        self.stage(name, || run(command))
    }

    /// Prints all stages again, and fails if one of them did.
    pub(crate) fn summary(self) -> Result<(), Failure> {
        let count = |wanted: fn(&Outcome) -> bool| self.done.iter().filter(|(_, o, _)| wanted(o)).count();
        let failed = count(|o| matches!(o, Outcome::Failed(_)));
        let skipped = count(|o| matches!(o, Outcome::Skipped(_)));
        println!("\n=== summary");
        for (name, outcome, took) in &self.done {
            println!("{:>9}  {name}: {}", seconds(*took), word(outcome));
        }
        let total = self.done.iter().map(|(_, _, took)| *took).sum();
        let passed = self.done.len() - failed - skipped;
        println!("{:>9}  {passed} stages passed, {failed} failed, {skipped} skipped", seconds(total));
        match failed {
            0 => Ok(()),
            n => Err(Failure::new(format!("{n} of {} stages failed", self.done.len()))),
        }
    }
}

/// Runs a command with this program's own output.
pub(crate) fn run(command: &mut Command) -> Outcome {
    match command.status() {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) => Outcome::Failed(status.to_string()),
        Err(e) => Outcome::Failed(format!("cannot execute {}: {e}", command.get_program().to_string_lossy())),
    }
}

fn word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Passed => "passed".to_owned(),
        Outcome::Failed(why) => format!("FAILED ({why})"),
        Outcome::Skipped(why) => format!("skipped ({why})"),
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_stage_fails_the_whole_and_stops_nothing() {
        let mut stages = Stages::default();
        let mut after = false;
        stages.stage("breaks", || Outcome::Failed("on purpose".into()));
        stages.stage("goes on", || {
            after = true;
            Outcome::Passed
        });
        assert!(after);
        assert_eq!(stages.summary().unwrap_err().what, "1 of 2 stages failed");
    }

    #[test]
    fn a_skipped_stage_is_no_failure() {
        let mut stages = Stages::default();
        stages.stage("not here", || Outcome::Skipped("no such thing".into()));
        assert!(stages.summary().is_ok());
    }

    #[test]
    fn a_command_that_cannot_be_executed_or_says_no_has_failed() {
        assert!(matches!(run(&mut Command::new("/no/such/program")), Outcome::Failed(_)));
        assert!(matches!(run(&mut Command::new("false")), Outcome::Failed(_)));
        assert_eq!(run(&mut Command::new("true")), Outcome::Passed);
    }
}
