//! The command line, as clap reads it.

use super::output::Colours;
use crate::config::{BackendChoice, Size, parse_duration};
use crate::verdict::Status;
use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, Subcommand, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  loopmux run -- make test           run a command in a window, wait, tell how it ended
  loopmux run -d -- claude -p 'fix'  the same, and come back at once
  loopmux list                       what runs, and what became of the rest
  loopmux status                     the newest run: what is known, and how
  loopmux attach                     go to its window
  loopmux stop @last                 end it, and prove it

A RUN is an id, a unique beginning or end of one, a run's name, or @last.
Exit codes: 0 succeeded, 1 failed, 2 usage, 3 no such run, 4 refused,
5 no multiplexer, 6 lost, 7 timed out, 8 unknown, 130 interrupted.";

/// Run agent CLIs in windows of a terminal multiplexer, and know what became of them.
#[derive(Debug, Parser)]
#[command(
    name = "loopmux",
    version,
    after_help = EXAMPLES,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Options of every command.
#[derive(Clone, Debug, Default, Args)]
pub struct Global {
    /// The project's directory [default: the nearest one above with a loopmux.toml or a .git]
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Options of every command")]
    pub project: Option<PathBuf>,
    /// Which multiplexer to use
    #[arg(long, global = true, value_name = "NAME", value_parser = backend(), help_heading = "Options of every command")]
    pub mux: Option<BackendChoice>,
    /// Print one JSON object instead of text
    #[arg(long, global = true, help_heading = "Options of every command")]
    pub json: bool,
    /// When to use colours
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        help_heading = "Options of every command"
    )]
    pub color: Colours,
    /// Say more on standard error; twice, everything
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Options of every command")]
    pub verbose: u8,
    /// Say only the answer
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Options of every command")]
    pub quiet: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a command in a window, wait for its end, and tell how it ended
    Run(RunArgs),
    /// List the runs of this project, newest first
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Show one run: its attempts, what became of them, and the evidence
    Status(StatusArgs),
    /// Print what a run's program wrote to its window
    Logs(LogsArgs),
    /// Go to a run's window
    Attach(AttachArgs),
    /// Make another attempt of a run that is interrupted, stopped, lost or failed
    Resume(ResumeArgs),
    /// Wait until runs have ended; the exit code is theirs
    Wait(WaitArgs),
    /// End runs, and prove that nothing of them is left
    Stop(StopArgs),
    /// End what is left of ended runs in the multiplexer, and name every session that is left alone
    Cleanup(CleanupArgs),
    /// Remove runs that have ended, by proof
    Delete(DeleteArgs),
    /// Put runs that have ended into archives, and remove them; or list the archives
    Archive(ArchiveArgs),
    /// Bring a run back from its archive or from quarantine
    Restore(RestoreArgs),
    /// Archive or delete the ended runs past the retention
    Clean(CleanArgs),
    /// Show the multiplexers, their sessions, and choose one
    Mux(MuxArgs),
    /// Try everything that loopmux needs, by really doing it
    Doctor(DoctorArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Print a man page
    Man(ManArgs),
    /// Drive a run from its window
    #[command(hide = true)]
    Engine(EngineArgs),
    /// Print the JSON schemas of all reports
    #[command(hide = true)]
    Schema(SchemaArgs),
}

impl Command {
    /// The name that the JSON object carries.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::List(_) => "list",
            Self::Status(_) => "status",
            Self::Logs(_) => "logs",
            Self::Attach(_) => "attach",
            Self::Resume(_) => "resume",
            Self::Wait(_) => "wait",
            Self::Stop(_) => "stop",
            Self::Cleanup(_) => "cleanup",
            Self::Delete(_) => "delete",
            Self::Archive(_) => "archive",
            Self::Restore(_) => "restore",
            Self::Clean(_) => "clean",
            Self::Mux(MuxArgs { command: None }) => "mux",
            Self::Mux(MuxArgs { command: Some(MuxCommand::Ls) }) => "mux ls",
            Self::Mux(MuxArgs { command: Some(MuxCommand::Set { .. }) }) => "mux set",
            Self::Doctor(_) => "doctor",
            Self::Completions(_) => "completions",
            Self::Man(_) => "man",
            Self::Engine(_) => "engine",
            Self::Schema(_) => "schema",
        }
    }
}

/// `run`
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Come back at once: the engine goes into a window of its own
    #[arg(short, long, conflicts_with = "attach")]
    pub detach: bool,
    /// A name for the run, to find it by
    #[arg(long, value_name = "NAME", value_parser = run_name)]
    pub name: Option<String>,
    /// The command's directory [default: this one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub cwd: Option<PathBuf>,
    /// Set a variable of the command's environment; repeatable
    #[arg(long, value_name = "K=V", value_parser = OsStringValueParser::new().try_map(variable))]
    pub env: Vec<(OsString, OsString)>,
    /// End the command after this time, like 90m or 1h30m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
    /// How long the command may take to end when it is asked to
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub grace: Option<Duration>,
    /// Go to the command's window
    #[arg(long)]
    pub attach: bool,
    /// Keep the window after the end, until Enter is pressed in it
    #[arg(long, overrides_with = "no_park")]
    pub park: bool,
    /// Close the window at the end, whatever the configuration says
    #[arg(long)]
    pub no_park: bool,
    /// The window's size while nobody looks, in columns and rows
    #[arg(long, value_name = "COLSxROWS")]
    pub size: Option<Size>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// `resume`
#[derive(Clone, Debug, Args)]
pub struct ResumeArgs {
    /// Come back at once: the engine goes into a window of its own
    #[arg(short, long)]
    pub detach: bool,
    /// Which run
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Set a variable of the command's environment; repeatable
    #[arg(long, value_name = "K=V", value_parser = OsStringValueParser::new().try_map(variable))]
    pub env: Vec<(OsString, OsString)>,
}

/// `list`
#[derive(Clone, Debug, Default, Args)]
pub struct ListArgs {
    /// The runs of all projects
    #[arg(long)]
    pub all_projects: bool,
    /// Only runs of this status; repeatable
    #[arg(long, value_name = "STATUS", value_parser = status())]
    pub status: Vec<Status>,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = count)]
    pub limit: Option<usize>,
    /// Runs that were put aside without proof
    #[arg(long, conflicts_with_all = ["all_projects", "status", "limit"])]
    pub quarantined: bool,
}

/// `status`
#[derive(Clone, Debug, Args)]
pub struct StatusArgs {
    /// Which run
    #[arg(value_name = "RUN", default_value = "@last")]
    pub run: String,
}

/// `logs`
#[derive(Clone, Debug, Args)]
pub struct LogsArgs {
    /// Which run
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Go on printing until the run ends
    #[arg(short, long)]
    pub follow: bool,
    /// Of this attempt [default: the latest]
    #[arg(long, value_name = "N")]
    pub attempt: Option<u32>,
    /// The bytes as they were written, escapes included
    #[arg(long)]
    pub raw: bool,
}

/// `attach`
#[derive(Clone, Debug, Args)]
pub struct AttachArgs {
    /// Which run [default: the one that is active]
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
}

/// `wait`
#[derive(Clone, Debug, Args)]
pub struct WaitArgs {
    /// Which runs
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
    /// Come back when the first of them has ended
    #[arg(long)]
    pub any: bool,
    /// Wait no longer than this
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
}

/// `stop`
#[derive(Clone, Debug, Args)]
pub struct StopArgs {
    /// Which runs
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
    /// Let the attempt that runs come to its own end, and begin nothing after it
    #[arg(long, conflicts_with = "force")]
    pub graceful: bool,
    /// Do not ask first
    #[arg(long)]
    pub force: bool,
    /// How long the program may take to end when it is asked to
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub grace: Option<Duration>,
}

/// `cleanup`
#[derive(Clone, Debug, Args)]
pub struct CleanupArgs {
    /// Tell what would be ended, and end nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// `delete`
#[derive(Clone, Debug, Args)]
pub struct DeleteArgs {
    /// Which runs
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
    /// Stop a run first, and delete it once nothing of it is alive
    #[arg(long)]
    pub force: bool,
    /// Put a run aside that is neither proven dead nor seen alive
    #[arg(long)]
    pub unproven: bool,
    /// With --force: how long the program may take to end when it is asked to
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "force")]
    pub grace: Option<Duration>,
}

/// `archive`
#[derive(Clone, Debug, Args)]
pub struct ArchiveArgs {
    /// Which runs
    #[arg(value_name = "RUN", required_unless_present = "list", conflicts_with = "list")]
    pub runs: Vec<String>,
    /// List the archives
    #[arg(long)]
    pub list: bool,
    /// Stop a run first, and archive it once nothing of it is alive
    #[arg(long)]
    pub force: bool,
    /// With --force: how long the program may take to end when it is asked to
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "force")]
    pub grace: Option<Duration>,
}

/// `restore`
#[derive(Clone, Debug, Args)]
pub struct RestoreArgs {
    /// The run's id, or a unique beginning or end of it
    #[arg(value_name = "ID")]
    pub id: String,
}

/// `clean`
#[derive(Clone, Debug, Args)]
pub struct CleanArgs {
    /// Keep so many of the newest runs that no engine drives [default: 20, or 0 beside --older-than]
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "quarantine")]
    pub retain: Option<usize>,
    /// Only runs that ended longer ago than this, like 7d or 36h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "quarantine")]
    pub older_than: Option<Duration>,
    /// Delete, and make no archives
    #[arg(long, conflicts_with = "quarantine")]
    pub hard: bool,
    /// Stop runs past the retention first that something still runs of, though no engine does
    #[arg(long, conflicts_with_all = ["quarantine", "dry_run"])]
    pub force: bool,
    /// Tell what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Erase this quarantined run
    #[arg(long, value_name = "ID")]
    pub quarantine: Option<String>,
    /// With --quarantine: it is confirmed
    #[arg(long, requires = "quarantine")]
    pub yes: bool,
}

/// `mux`
#[derive(Clone, Debug, Args)]
#[command(disable_help_subcommand = true)]
pub struct MuxArgs {
    #[command(subcommand)]
    pub(super) command: Option<MuxCommand>,
}

/// What to do about multiplexers.
#[derive(Clone, Debug, Subcommand)]
pub enum MuxCommand {
    /// List the mux sessions, and whose they are
    Ls,
    /// Write the choice into the project's loopmux.toml
    Set {
        /// Which multiplexer
        #[arg(value_name = "NAME", value_parser = backend())]
        name: BackendChoice,
    },
}

/// `doctor`
#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {}

/// `completions`
#[derive(Clone, Debug, Args)]
pub struct CompletionsArgs {
    /// Of which shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: clap_complete::Shell,
}

/// `man`
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// The page of this command [default: the program's]
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}

/// `engine`
#[derive(Clone, Debug, Args)]
pub struct EngineArgs {
    /// Take the run up again
    #[arg(long)]
    pub resume: bool,
    /// The run's id
    #[arg(value_name = "RUN")]
    pub run: String,
}

/// `schema`
#[derive(Clone, Debug, Args)]
pub struct SchemaArgs {
    /// Write them into this directory, a file each
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

fn backend() -> impl TypedValueParser<Value = BackendChoice> {
    PossibleValuesParser::new(BackendChoice::ALL.map(BackendChoice::as_str))
        .try_map(|word| word.parse::<BackendChoice>())
}

fn status() -> impl TypedValueParser<Value = Status> {
    PossibleValuesParser::new(Status::ALL.map(Status::as_str))
        .try_map(|word| Status::ALL.into_iter().find(|s| s.as_str() == word).ok_or("there is no such status"))
}

/// A name must find its run again, so what a RUN cannot be, or means something else as one, is none.
fn run_name(text: &str) -> Result<String, String> {
    if text == "@last" {
        return Err("it always means the newest run".to_owned());
    }
    super::context::not_a_reference(text).map_or_else(|| Ok(text.to_owned()), |why| Err(why.to_owned()))
}

fn count(text: &str) -> Result<usize, &'static str> {
    text.parse().map_err(|_| "write it as a number of runs, like 20")
}

fn variable(text: OsString) -> Result<(OsString, OsString), &'static str> {
    match crate::run::text::split_at_first(&text, b'=') {
        None => Err("write it as NAME=VALUE"),
        Some((name, _)) if name.is_empty() => Err("the name is empty"),
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
    }
}

/// What one invocation asks for, before clap has agreed to it: the error for a program must not depend on whether
/// the rest of the line was right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// `--json` stands somewhere before `--`.
    pub json: bool,
    /// The command, as the JSON object names it.
    pub command: &'static str,
}

impl Asked {
    /// Looks through the words of a command line.
    pub(super) fn of(words: &[OsString]) -> Self {
        const NAMES: [(&str, &str); 20] = [
            ("run", "run"),
            ("resume", "resume"),
            ("list", "list"),
            ("ls", "list"),
            ("status", "status"),
            ("logs", "logs"),
            ("attach", "attach"),
            ("wait", "wait"),
            ("stop", "stop"),
            ("cleanup", "cleanup"),
            ("delete", "delete"),
            ("archive", "archive"),
            ("restore", "restore"),
            ("clean", "clean"),
            ("mux", "mux"),
            ("doctor", "doctor"),
            ("completions", "completions"),
            ("man", "man"),
            ("engine", "engine"),
            ("schema", "schema"),
        ];
        let ours = words.iter().skip(1).take_while(|w| *w != "--");
        let mut asked = Self { json: false, command: "loopmux" };
        let mut value_follows = false;
        for word in ours {
            let is_value = std::mem::replace(&mut value_follows, false);
            if word == "--json" {
                asked.json = true;
            } else if matches!(word.to_str(), Some("--project" | "--mux" | "--color")) {
                value_follows = true;
            } else if asked.command == "loopmux"
                && !is_value
                && let Some((_, name)) = NAMES.iter().find(|(typed, _)| word == typed)
            {
                asked.command = name;
            }
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("loopmux").chain(line.split(' ')))
    }

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_options_may_stand_behind_the_command() {
        let cli = parse("list --json --project /p").unwrap();
        assert!(cli.global.json);
        assert_eq!(cli.global.project, Some(PathBuf::from("/p")));
        let cli = parse("run -d -- echo --json").unwrap();
        assert!(!cli.global.json, "behind -- the words are the command's");
    }

    #[test]
    fn a_variable_is_split_at_its_first_sign() {
        let cli = parse("run --env A=b=c -- true").unwrap();
        let Command::Run(args) = cli.command else { panic!("not run") };
        assert_eq!(args.env, [("A".into(), "b=c".into())]);
        for bad in ["run --env A -- true", "run --env =b -- true"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_finds_its_run_again_or_is_refused() {
        for bad in ["--name= ", "--name=@last", "--name=a/b", "--name=..", "--name=a\\b"] {
            let bad = bad.trim_end();
            assert!(parse(&format!("run {bad} -- true")).is_err(), "{bad}");
        }
        assert!(parse("run --name=fix-login -- true").is_ok());
    }

    #[test]
    fn what_was_asked_is_known_without_clap() {
        let asked = |line: &str| {
            Asked::of(
                &std::iter::once("loopmux").chain(line.split(' ')).map(OsString::from).collect::<Vec<_>>(),
            )
        };
        assert_eq!(asked("--project run ls --bad --json"), Asked { json: true, command: "list" });
        assert_eq!(asked("run -- echo --json"), Asked { json: false, command: "run" });
        assert_eq!(asked("--json"), Asked { json: true, command: "loopmux" });
    }

    #[test]
    fn every_command_is_known_without_clap() {
        for command in Cli::command().get_subcommands() {
            for name in std::iter::once(command.get_name()).chain(command.get_all_aliases()) {
                let words = ["loopmux", name].map(OsString::from);
                assert_eq!(Asked::of(&words).command, command.get_name(), "{name}");
            }
        }
    }
}
