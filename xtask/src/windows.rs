//! `cargo xtask windows`: the Windows build, and its tests under Wine.
//!
//! A toolchain from elsewhere has no standard library for Windows here; Debian's has the source of its own, and builds it.

use crate::Failure;
use crate::setup::{Consent, need_packages};
use crate::shell::{cargo, root, says, works};
use crate::stage::{Outcome, run as run_command};
use crate::switches;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TARGET: &str = "x86_64-pc-windows-gnu";
const COMPILER: &str = "x86_64-w64-mingw32-gcc";
const RUSTC: &str = "/usr/bin/rustc";
const CARGO: &str = "/usr/bin/cargo";

/// What Debian calls what is needed.
const PACKAGES: [&str; 7] =
    ["wine", "wine64", "mingw-w64", "gcc-mingw-w64-x86-64", "rustc-web", "cargo-web", "rust-web-src"];

/// The version of psmux that is tried.
const PSMUX: &str = "=3.4.0";

/// What is type-checked for systems that nothing runs on here.
const CHECKED: [&str; 2] = [TARGET, "x86_64-apple-darwin"];

pub(crate) fn run(words: &[String]) -> Result<(), Failure> {
    let [yes] = switches(words, ["--yes"])?;
    let consent = if yes { Consent::Given } else { Consent::AskAPerson };
    if cfg!(windows) {
        return outcome(run_command(cargo().args(["test", "--locked"]).args(TESTED)));
    }
    need(consent)?;
    outcome(tests())
}

fn outcome(outcome: Outcome) -> Result<(), Failure> {
    match outcome {
        Outcome::Passed => Ok(()),
        Outcome::Failed(why) | Outcome::Skipped(why) => Err(Failure::new(why)),
    }
}

/// Installs what is missing.
pub(crate) fn need(consent: Consent) -> Result<(), Failure> {
    if missing().is_none() { Ok(()) } else { need_packages(&PACKAGES, consent) }
}

/// What is missing of it, in words; `None` where everything is there.
pub(crate) fn missing() -> Option<String> {
    if let Some(why) = missing_for_checks() {
        return Some(why);
    }
    let programs = [("wine", "--version"), ("wineserver", "--version"), (COMPILER, "--version")];
    let gone = programs.into_iter().find(|(program, word)| !works(program, &[word]));
    gone.map(|(program, _)| format!("{program} is not there"))
}

/// The same for checking types only.
pub(crate) fn missing_for_checks() -> Option<String> {
    if !works(RUSTC, &["--version"]) || !works(CARGO, &["--version"]) {
        return Some("Debian's rustc-web and cargo-web are not there".to_owned());
    }
    let sysroot = says(RUSTC, &["--print", "sysroot"]).unwrap_or_default();
    let source = Path::new(&sysroot).join("lib/rustlib/src/rust/library/std/Cargo.toml");
    (!source.is_file()).then(|| "the source of the standard library (rust-web-src) is not there".to_owned())
}

/// Debian's cargo, which builds the standard library as well.
fn debian(task: &str, target: &str) -> Command {
    let mut command = Command::new(CARGO);
    command.arg(task).current_dir(root()).env("RUSTC", RUSTC);
    // The library is built with switches that a stable compiler keeps to itself.
    command.env("RUSTC_BOOTSTRAP", "1").args([
        "-Zbuild-std=std,panic_abort,panic_unwind,test",
        "--target",
        target,
    ]);
    command.args(["--locked", "--target-dir", "target/elsewhere"]);
    command.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER", COMPILER);
    // Set by the outer toolchain, and read by the inner cargo.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTFLAGS");
    command
}

/// Checks the types of everything that is shipped, for each system that nothing runs on here.
pub(crate) fn checks() -> Outcome {
    if let Some(why) = missing_for_checks() {
        return Outcome::Skipped(why);
    }
    for target in CHECKED {
        println!("{target}");
        let mut check = debian("check", target);
        if target != TARGET {
            // One dependency has a few lines of C, and nothing is linked: any compiler will do that says yes.
            for name in ["CC", "AR", "RANLIB"] {
                check.env(format!("{name}_{}", target.replace('-', "_")), "true");
            }
        }
        let outcome = run_command(check.args(["--workspace", "--lib", "--bins"]));
        if outcome != Outcome::Passed {
            return Outcome::Failed(format!("the program does not compile for {target}"));
        }
    }
    Outcome::Passed
}

/// What runs on Windows: the parts beside their code, and the keeper as a whole.
const TESTED: [&str; 7] = ["-p", "loopmux", "-p", "loopmux-mux", "--lib", "--test", "windows"];

/// Builds for Windows, and runs the tests of that build under Wine.
pub(crate) fn tests() -> Outcome {
    if let Some(why) = missing() {
        return Outcome::Skipped(why);
    }
    let place = match wine() {
        Ok(place) => place,
        Err(why) => return Outcome::Failed(why),
    };
    let psmux = match psmux(&place) {
        Ok(psmux) => psmux,
        Err(why) => return Outcome::Failed(why),
    };
    let mut command = debian("test", TARGET);
    command.args(["--no-fail-fast"]).args(TESTED);
    command
        .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", "wine")
        .env("WINEPREFIX", place.join("prefix"))
        .env("LOOPMUX_TEST_PSMUX", format!("Z:{}", psmux.display().to_string().replace('/', "\\")))
        .env("WINEDEBUG", "-all")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null());
    let outcome = run_command(command.args(["--", "--test-threads=2"]));
    // Whatever a test has left runs in this prefix only.
    let _ = Command::new("wineserver").arg("-k").env("WINEPREFIX", place.join("prefix")).status();
    outcome
}

/// The real psmux for Windows, built once from the registry.
fn psmux(place: &Path) -> Result<PathBuf, String> {
    let built = place.join("psmux").join("bin/psmux.exe");
    if !built.is_file() {
        let mut command = Command::new(CARGO);
        command.current_dir(root()).env("RUSTC", RUSTC).env("RUSTC_BOOTSTRAP", "1");
        command.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER", COMPILER);
        command.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
        command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTFLAGS");
        command.args([
            "install",
            "--locked",
            "psmux",
            "--version",
            PSMUX,
            "--bin",
            "psmux",
            "--target",
            TARGET,
        ]);
        command.args(["-Zbuild-std=std,panic_abort,panic_unwind", "--target-dir", "target/elsewhere/psmux"]);
        let outcome = run_command(command.arg("--root").arg(place.join("psmux")));
        if outcome != Outcome::Passed {
            return Err(format!("psmux could not be built for Windows: {outcome:?}"));
        }
    }
    Ok(built)
}

/// A Wine of our own, with the libraries that it lacks.
fn wine() -> Result<PathBuf, String> {
    let place = root().join("target/elsewhere/wine");
    std::fs::create_dir_all(&place).map_err(|e| format!("cannot make {}: {e}", place.display()))?;
    let library = place.join("bcryptprimitives.dll");
    if !library.is_file() {
        let source = root().join("fixtures/wine/bcryptprimitives.c");
        let built = Command::new(COMPILER)
            .args(["-O1", "-shared", "-o"])
            .args([library.as_os_str(), source.as_os_str()])
            .arg("-ladvapi32")
            .status();
        if !matches!(built, Ok(status) if status.success()) {
            return Err(format!("cannot build {}: {built:?}", library.display()));
        }
    }
    let runtime = "libgcc_s_seh-1.dll";
    let from = says(COMPILER, &[&format!("-print-file-name={runtime}")]).unwrap_or_default();
    std::fs::copy(&from, place.join(runtime)).map_err(|e| format!("cannot copy {from:?}: {e}"))?;
    let prefix = place.join("prefix");
    if !prefix.join("system.reg").is_file() {
        // Its exit code says nothing: without a display it complains, and works.
        let _ = Command::new("wineboot")
            .arg("-i")
            .env("WINEPREFIX", &prefix)
            .env("WINEDEBUG", "-all")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let _ = Command::new("wineserver").arg("-w").env("WINEPREFIX", &prefix).status();
    }
    if !prefix.join("system.reg").is_file() {
        return Err(format!("Wine made no prefix at {}", prefix.display()));
    }
    // Where every program finds them, whatever is in its environment.
    for name in ["bcryptprimitives.dll", runtime] {
        let to = prefix.join("drive_c/windows/system32").join(name);
        std::fs::copy(place.join(name), &to).map_err(|e| format!("cannot copy to {}: {e}", to.display()))?;
    }
    Ok(place)
}
