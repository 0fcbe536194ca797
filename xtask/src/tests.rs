//! `cargo xtask test`: every check there is.

use crate::setup::{Consent, need_tmux};
use crate::shell::{cargo, root, says, works};
use crate::stage::{Outcome, Stages, run as run_command};
use crate::{Failure, policy, switches, windows as other};
use std::process::Command;

/// Tests that drive real multiplexers, or many processes, disturb each other's timing beyond this many.
const FEW: &str = "--test-threads=2";

/// Where Debian puts the toolchain of its packages `rustc-web` and `cargo-web`.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";

pub(crate) fn run(words: &[String]) -> Result<(), Failure> {
    let known = ["--yes", "--windows", "--agents", "--all", "--no-soak"];
    let [yes, windows, agents, all, no_soak] = switches(words, known)?;
    let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    let consent = if yes || ci { Consent::Given } else { Consent::AskAPerson };

    let mut stages = Stages::default();
    let mut refused = None;
    stages.stage("multiplexer", || match need_tmux(consent) {
        Ok(()) => Outcome::Passed,
        Err(failure) => {
            let why = Outcome::Failed(failure.what.clone());
            refused = Some(failure);
            why
        }
    });
    if let Some(failure) = refused {
        return Err(failure);
    }
    if agents || all {
        println!("agents: there is nothing of that kind yet");
    }
    if windows || all {
        stages.stage("what Windows programs need", || match other::need(consent) {
            Ok(()) => Outcome::Passed,
            Err(failure) => Outcome::Failed(failure.what),
        });
    }

    stages.command("format", cargo().args(["fmt", "--all", "--check"]));
    let build = stages.command("build", cargo().args(["build", "--workspace", "--all-targets", "--locked"]));
    if build != Outcome::Passed {
        return stages.summary();
    }
    stages.command(
        "lints",
        cargo().args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
    );
    stages.stage("types on Windows and macOS", other::checks);
    stages.command(
        "documentation",
        cargo().args(["doc", "--workspace", "--no-deps", "--locked"]).env("RUSTDOCFLAGS", "-D warnings"),
    );
    stages.stage("dependencies", policy::check);
    let nextest = works("cargo", &["nextest", "--version"]);
    stages.stage("tests", || tests(nextest));
    stages
        .command("examples in the documentation", cargo().args(["test", "--workspace", "--doc", "--locked"]));
    if no_soak {
        stages.stage("soaks", || Outcome::Skipped("--no-soak".to_owned()));
    } else {
        stages.command("soaks", &mut soaks(nextest));
    }
    stages.stage("Windows, under Wine", other::tests);
    stages.stage("Debian's toolchain", debian);
    stages.summary()
}

/// The tests that run at every build.
fn tests(nextest: bool) -> Outcome {
    if nextest {
        // Which tests run beside which others: `.config/nextest.toml`.
        return run_command(cargo().args(["nextest", "run", "--workspace", "--locked", "--no-fail-fast"]));
    }
    let test = ["test", "--workspace", "--locked", "--no-fail-fast"];
    let units = run_command(cargo().args(test).args(["--lib", "--bins", "--examples"]));
    let real = run_command(cargo().args(test).args(["--test", "*", "--", FEW]));
    if units == Outcome::Passed { real } else { units }
}

/// The long tests, marked as ignored, one at a time.
fn soaks(nextest: bool) -> Command {
    let mut command = cargo();
    if nextest {
        command.args(["nextest", "run", "--workspace", "--locked", "--no-fail-fast"]);
        command.args(["--run-ignored", "only", "--test-threads", "1", "--no-tests", "pass"]);
    } else {
        command.args(["test", "--workspace", "--locked", "--no-fail-fast", "--lib", "--bins", "--tests"]);
        command.args(["--", "--ignored", "--test-threads=1"]);
    }
    command
}

/// Debian's stable release gets a recent toolchain in these packages, and the project builds with it.
fn debian() -> Outcome {
    let package = says("dpkg-query", &["-W", "-f", "${Version}", "rustc-web"]).filter(|v| !v.is_empty());
    let Some(version) = package else {
        return Outcome::Skipped("its packages rustc-web and cargo-web are not installed".to_owned());
    };
    if !works(DEBIAN_RUSTC, &["--version"]) || !works(DEBIAN_CARGO, &["--version"]) {
        return Outcome::Failed(format!(
            "rustc-web {version} is installed, and {DEBIAN_CARGO} does not work"
        ));
    }
    println!("rustc-web {version}");
    run_command(
        Command::new(DEBIAN_CARGO)
            .args(["check", "--workspace", "--all-targets", "--locked", "--target-dir", "target/debian"])
            .current_dir(root())
            .env("RUSTC", DEBIAN_RUSTC)
            // Set by the outer toolchain, and read by the inner cargo.
            .env_remove("CARGO")
            .env_remove("RUSTUP_TOOLCHAIN"),
    )
}
