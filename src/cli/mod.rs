//! The commands: reading the command line, asking the library, and rendering one report per command as text or
//! JSON. Nothing is decided here.

pub mod archive;
pub mod args;
pub mod attach;
pub mod clean;
pub mod cleanup;
mod context;
pub mod delete;
mod error;
pub mod gather;
mod output;
pub mod page;
pub mod plain;
pub mod quarantine;
pub mod refs;
pub mod removal;
pub mod report;
pub mod words;

pub mod doctor;
pub mod engine;
pub mod list;
mod log;
pub mod logs;
mod manual;
pub mod mux;
pub mod outcome;
pub mod restore;
pub mod resume;
pub mod run;
pub mod schema;
pub mod status;
pub mod stop;
pub mod wait;

pub use args::Cli;
pub use context::Context;
pub use error::{CliError, ErrorCode, ErrorReport, Outcome};
pub use output::{Colours, Envelope, Output, SCHEMA};

use args::{Asked, Command};
use clap::Parser;
use clap::error::ErrorKind;
use std::ffi::OsString;
use std::process::ExitCode;

/// A command line that was understood.
#[derive(Debug)]
pub struct Invocation {
    context: Context,
    command: Command,
}

/// Reads a command line, the program's name first. Help, version and mistakes are answered here, and come back
/// as an exit code.
///
/// # Errors
/// There is nothing to execute.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Invocation, ExitCode> {
    let words: Vec<OsString> = words.into_iter().collect();
    match Cli::try_parse_from(&words) {
        Ok(Cli { global, command }) => {
            Ok(Invocation { context: Context::new(command.name(), global), command })
        }
        Err(e) => Err(answer_for_clap(&e, Asked::of(&words))),
    }
}

fn answer_for_clap(e: &clap::Error, asked: Asked) -> ExitCode {
    let asks_for_help = matches!(
        e.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if asked.json && e.use_stderr() {
        let text = e.render().to_string();
        let message = first_paragraph(&text);
        let hint = format!(
            "see: loopmux {}--help",
            if asked.command == "loopmux" { String::new() } else { format!("{} ", asked.command) }
        );
        let error = CliError::new(ErrorCode::Usage, message).hint(hint).detail("text", text);
        Output::new(asked.command, true, Colours::Never, false).failed(&error);
    } else {
        let printed = e.print().map_err(CliError::from);
        if let Err(error) = printed.and_then(|()| Ok(std::io::Write::flush(&mut std::io::stdout())?))
            && !error.is_closed_pipe()
        {
            Output::new(asked.command, false, Colours::Never, false).failed(&error);
            return error.exit().into();
        }
    }
    if asks_for_help && !e.use_stderr() { ExitCode::SUCCESS } else { ErrorCode::Usage.exit().into() }
}

/// What is wrong, in one line: the lines before the usage, which name what the first one announces.
fn first_paragraph(text: &str) -> String {
    let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

/// Executes a command, and says what went wrong if it did.
pub fn execute(invocation: &Invocation) -> ExitCode {
    let Invocation { context, command } = invocation;
    log::begin(context.global().verbose);
    match dispatch(context, command) {
        Ok(exit) => exit.into(),
        Err(error) => {
            context.out().failed(&error);
            error.exit().into()
        }
    }
}

fn dispatch(ctx: &Context, command: &Command) -> Outcome {
    match command {
        Command::Run(args) => run::execute(ctx, args),
        Command::List(args) if args.quarantined => quarantine::list(ctx),
        Command::List(args) => list::execute(ctx, args),
        Command::Status(args) => status::execute(ctx, args),
        Command::Resume(args) => resume::execute(ctx, args),
        Command::Logs(args) => logs::execute(ctx, args),
        Command::Attach(args) => attach::execute(ctx, args),
        Command::Mux(args) => mux::execute(ctx, args),
        Command::Doctor(args) => doctor::execute(ctx, args),
        Command::Completions(args) => manual::completions(ctx, args),
        Command::Man(args) => manual::man(ctx, args),
        Command::Schema(args) => schema::execute(ctx, args),
        Command::Wait(args) => wait::execute(ctx, args),
        Command::Stop(args) => stop::execute(ctx, args),
        Command::Cleanup(args) => cleanup::execute(ctx, args),
        Command::Delete(args) => delete::execute(ctx, args),
        Command::Archive(args) => archive::execute(ctx, args),
        Command::Restore(args) => restore::execute(ctx, args),
        Command::Clean(args) => clean::execute(ctx, args),
        Command::Engine(args) => engine::execute(ctx, args),
    }
}
