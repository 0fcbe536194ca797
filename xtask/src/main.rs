//! The tasks around the code: `cargo xtask help` lists them. No dependencies, so that it is built in a second.

mod build;
mod demo;
mod docs;
mod json;
mod policy;
mod setup;
mod shell;
mod spdx;
mod stage;
mod tests;
mod windows;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask demo  [--yes] [--release]
    installs what a run needs, builds, and shows a run, its list, status and logs, and a killed session

cargo xtask test  [--yes] [--windows] [--agents] [--all] [--no-soak]
    every check there is: formatting, lints, docs, licences, tests, soaks, the floor toolchain
    --windows, --agents   also what needs Windows programs, which are installed, or agent CLIs
    --all                 all of these
    --no-soak             leaves out the long serial tests

cargo xtask windows [--yes]
    builds for Windows, and runs the tests of that build under Wine; on Windows without it

cargo xtask bench [ARG...]
    the benchmarks; arguments go to `cargo bench`

cargo xtask docs
    writes the JSON schemas of all reports anew, into docs/schema

--yes    installs missing programs without asking; CI=true means the same for `test`
";

/// A task that cannot be carried out, with what to do about it.
#[derive(Debug)]
struct Failure {
    what: String,
    code: u8,
}

impl Failure {
    /// The task was tried and did not work.
    fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), code: 1 }
    }

    /// The task was not tried: a person has to do or say something first.
    fn usage(what: impl Into<String>) -> Self {
        Self { what: what.into(), code: 2 }
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let task = words.next().unwrap_or_default();
    let words: Vec<String> = words.collect();
    let done = match task.as_str() {
        "demo" => demo::run(&words),
        "test" => tests::run(&words),
        "windows" => windows::run(&words),
        "bench" => bench(&words),
        "docs" => docs::run(&words),
        "help" | "--help" | "-h" | "" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(Failure::usage(format!("there is no task {other:?}\n\n{HELP}"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { what, code }) => {
            eprintln!("xtask: {what}");
            ExitCode::from(code)
        }
    }
}

fn bench(words: &[String]) -> Result<(), Failure> {
    setup::need_tmux(setup::Consent::AskAPerson)?;
    let status = shell::cargo().arg("bench").args(words).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(format!("cargo bench ended with {status}"))),
        Err(e) => Err(Failure::new(format!("cannot execute cargo bench: {e}"))),
    }
}

/// Takes known switches out of `words`; anything else is refused.
fn switches<const N: usize>(words: &[String], known: [&str; N]) -> Result<[bool; N], Failure> {
    let mut given = [false; N];
    for word in words {
        match known.iter().position(|k| k == word) {
            Some(at) => given[at] = true,
            None => {
                let known = known.join(", ");
                return Err(Failure::usage(format!("unknown argument {word:?}; known: {known}")));
            }
        }
    }
    Ok(given)
}
