//! Installing what the project needs on a machine that has only a Rust toolchain.

use crate::Failure;
use crate::shell::{says, typed, works};
use std::io::{IsTerminal, Write};
use std::process::Command;

/// Whether something may be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    /// A person said yes already.
    Given,
    /// Ask on the terminal; without one nothing is installed.
    AskAPerson,
}

/// A package manager: its program, what refreshes its lists, and what installs.
struct Manager {
    program: &'static str,
    refresh: &'static [&'static str],
    install: &'static [&'static str],
    as_root: bool,
}

const MANAGERS: [Manager; 6] = [
    Manager { program: "apt-get", refresh: &["update"], install: &["install", "-y"], as_root: true },
    Manager { program: "dnf", refresh: &[], install: &["install", "-y"], as_root: true },
    Manager { program: "pacman", refresh: &[], install: &["-Sy", "--noconfirm"], as_root: true },
    Manager { program: "zypper", refresh: &[], install: &["--non-interactive", "install"], as_root: true },
    Manager { program: "apk", refresh: &[], install: &["add"], as_root: true },
    Manager { program: "brew", refresh: &[], install: &["install"], as_root: false },
];

/// Makes sure that tmux is there, and says which.
pub(crate) fn need_tmux(consent: Consent) -> Result<(), Failure> {
    if let Some(version) = says("tmux", &["-V"]) {
        println!("found {version}");
        return Ok(());
    }
    install("tmux", install_commands(&["tmux"])?, consent)?;
    match says("tmux", &["-V"]) {
        Some(version) => {
            println!("installed {version}");
            Ok(())
        }
        None => Err(Failure::new("tmux was installed and still cannot be executed; is it in PATH?")),
    }
}

/// Makes sure that packages of Debian are there: what they hold is called otherwise elsewhere.
pub(crate) fn need_packages(packages: &[&str], consent: Consent) -> Result<(), Failure> {
    let what = packages.join(", ");
    if !works("apt-get", &["--version"]) {
        return Err(Failure::usage(format!(
            "{what} are needed, as Debian calls them, and there is no apt-get"
        )));
    }
    install(&what, install_commands(packages)?, consent)
}

/// Carries commands out that install something.
fn install(what: &str, commands: Vec<Vec<String>>, consent: Consent) -> Result<(), Failure> {
    let spelled = commands.iter().map(typed).collect::<Vec<_>>().join(" && ");
    if consent == Consent::AskAPerson {
        if !std::io::stdin().is_terminal() {
            return Err(Failure::usage(format!(
                "{what}: not installed, and nobody is here to be asked; install it with\n    {spelled}\nor give --yes"
            )));
        }
        println!("{what}: not installed. This installs it:\n    {spelled}");
        if !ask("Install it now?")? {
            return Err(Failure::usage(format!("{what} is needed, and was not installed")));
        }
    }
    for command in &commands {
        println!("$ {}", typed(command));
        let status = Command::new(&command[0]).args(&command[1..]).status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(Failure::new(format!("`{}` ended with {status}", typed(command)))),
            Err(e) => return Err(Failure::new(format!("cannot execute `{}`: {e}", typed(command)))),
        }
    }
    Ok(())
}

fn install_commands(packages: &[&str]) -> Result<Vec<Vec<String>>, Failure> {
    let Some(manager) = MANAGERS.iter().find(|m| works(m.program, &["--version"])) else {
        let known = MANAGERS.map(|m| m.program).join(", ");
        let what = packages.join(" ");
        return Err(Failure::usage(format!(
            "{what} is not installed, and none of {known} is there to install it: install {what} by hand"
        )));
    };
    let root = says("id", &["-u"]).as_deref() == Some("0");
    let mut prefix = Vec::new();
    if manager.as_root && !root {
        prefix.push("sudo".to_owned());
    }
    prefix.push(manager.program.to_owned());
    let command = |words: &[&str], packages: &[&str]| {
        let words = words.iter().chain(packages).copied().map(str::to_owned);
        prefix.iter().cloned().chain(words).collect::<Vec<_>>()
    };
    let mut commands = Vec::new();
    if !manager.refresh.is_empty() {
        commands.push(command(manager.refresh, &[]));
    }
    commands.push(command(manager.install, packages));
    Ok(commands)
}

/// Asks a person on the terminal.
fn ask(question: &str) -> Result<bool, Failure> {
    print!("{question} [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdout().flush().and_then(|()| std::io::stdin().read_line(&mut answer));
    read.map_err(|e| Failure::new(format!("cannot ask: {e}")))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
