//! `loopmux completions` and `loopmux man`.

use super::args::{Cli, CompletionsArgs, ManArgs};
use super::error::{CliError, ErrorCode, Outcome};
use super::page::shown;
use super::{Context, page};
use clap::{Command, CommandFactory};
use serde_json::json;

/// Prints the completions of a shell.
///
/// # Errors
/// The output cannot be written.
pub(super) fn completions(ctx: &Context, args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "loopmux", &mut script);
    print(ctx, &script)
}

/// Prints a man page.
///
/// # Errors
/// There is no such command, or the output cannot be written.
pub(super) fn man(ctx: &Context, args: &ManArgs) -> Outcome {
    let mut program = Cli::command();
    program.build();
    let command = match &args.command {
        None => program,
        Some(name) => {
            let found = program
                .get_subcommands()
                .find(|c| c.get_name() == name || c.get_all_aliases().any(|a| a == name));
            found.cloned().map(named).ok_or_else(|| no_command(&program, name))?
        }
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    print(ctx, &page)
}

/// The page of a command is named as one looks for it: `loopmux-run`.
fn named(command: Command) -> Command {
    let name = format!("loopmux-{}", command.get_name());
    command.name(name)
}

fn no_command(program: &Command, name: &str) -> CliError {
    let known: Vec<&str> =
        program.get_subcommands().filter(|c| !c.is_hide_set()).map(Command::get_name).collect();
    CliError::new(ErrorCode::Usage, format!("there is no command {}", page::quoted(name)))
        .hint(format!("commands: {}", shown(&known.join(", "))))
}

fn print(ctx: &Context, text: &[u8]) -> Outcome {
    if ctx.out().json() {
        let text = String::from_utf8_lossy(text);
        ctx.out().report(&json!({ "text": text }), |_| String::new())?;
    } else {
        ctx.out().bytes(text)?;
    }
    Ok(0)
}
