//! `loopmux logs`: what a run's program wrote to its window.

use super::Context;
use super::args::LogsArgs;
use super::error::{CliError, ErrorCode, Outcome};
use super::outcome;
use super::plain::Plain;
use super::refs::Refs;
use crate::observe::{self, Looks, RunView};
use crate::run::files::name;
use crate::run::locks;
use crate::run::output::{LogReader, Piece};
use crate::run::store::{AttemptRead, RunRead};
use crate::verdict::{EngineSeen, Lease, Life, Observation};
use crate::wake::{self, AsSource, Source};
use schemars::JsonSchema;
use serde::Serialize;
use std::io;
use std::time::Duration;

/// `data` of `logs --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LogsReport {
    /// The run.
    pub run: String,
    /// The attempt.
    pub attempt: u32,
    /// What was written: plain text, or with `--raw` as it was, whatever is no Unicode replaced.
    pub text: String,
    /// So many bytes were dropped from the middle.
    pub dropped: u64,
    /// Nothing will be added; `null` where that cannot be told.
    pub complete: Option<bool>,
}

/// `data` of one line of `logs -f --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LogsEvent {
    /// The run.
    pub run: String,
    /// The attempt.
    pub attempt: u32,
    /// What was written.
    pub text: String,
    /// So many bytes before this text were dropped.
    pub dropped: u64,
}

/// Executes the command.
///
/// # Errors
/// There is no such run or attempt, or its log cannot be read.
pub fn execute(ctx: &Context, args: &LogsArgs) -> Outcome {
    let (project, run) = ctx.run(&args.run)?;
    let short = Refs::of_project(&project).of(run.id());
    if args.follow {
        return Follower { ctx, args, run: &run, short: &short }.follow();
    }
    let attempt = pick(&run, args.attempt, &short)?.ok_or_else(|| {
        CliError::new(ErrorCode::NotFound, format!("run {short} has no attempt yet, so nothing was written"))
    })?;
    print(ctx, args, &run, &attempt)?;
    Ok(0)
}

/// The attempt that was asked for, or the latest; `None` where none was made yet.
fn pick(run: &RunRead, wanted: Option<u32>, short: &str) -> Result<Option<AttemptRead>, CliError> {
    let numbers = match run.attempt_numbers() {
        Observation::Known(numbers) => numbers,
        Observation::Absent => Vec::new(),
        Observation::Unknown(why) => return Err(CliError::new(ErrorCode::Io, why.to_string())),
    };
    let n = match (wanted, numbers.last()) {
        (None, None) => return Ok(None),
        (None, Some(latest)) => *latest,
        (Some(n), _) => n,
    };
    match run.attempt(n) {
        Observation::Known(attempt) => Ok(Some(attempt)),
        Observation::Absent => {
            let known: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Err(CliError::new(ErrorCode::NotFound, format!("run {short} has no attempt {n}"))
                .hint(format!("its attempts: {known}")))
        }
        Observation::Unknown(why) => Err(CliError::new(ErrorCode::Io, why.to_string())),
    }
}

fn reader(attempt: &AttemptRead) -> Result<LogReader, CliError> {
    let dir = attempt.dir().sub(".").map_err(|e| unreadable(attempt, &e))?;
    Ok(LogReader::new(dir, 0))
}

fn unreadable(attempt: &AttemptRead, e: &io::Error) -> CliError {
    let path = attempt.dir().path().display().to_string();
    CliError::new(ErrorCode::Io, format!("cannot read the log in {}: {e}", super::page::shown(&path)))
}

/// How long the last output of a program that has ended may be on its way.
const ON_ITS_WAY: Duration = Duration::from_secs(1);

/// An end is known before the last output is recorded: it goes through the terminal and the multiplexer. Whatever
/// still runs of the program may print for ever, and is not waited for.
fn await_the_rest(attempt: &AttemptRead) {
    let view = observe::attempt_on_disk(attempt);
    let still_runs = view.leftovers.known().is_some_and(|left| !left.processes.is_empty());
    if view.verdict.is_end() && view.evidence.keeper == Life::Alive && !still_runs {
        // In vain where nothing records: then what is there is all there is.
        let _ = locks::wait_free(attempt.dir(), name::OUTPUT, ON_ITS_WAY);
    }
}

/// Prints what is there now.
fn print(ctx: &Context, args: &LogsArgs, run: &RunRead, attempt: &AttemptRead) -> Result<(), CliError> {
    await_the_rest(attempt);
    let mut log = reader(attempt)?;
    let recorder = log.recorder();
    let mut report = LogsReport {
        run: run.id().to_string(),
        attempt: attempt.n(),
        text: String::new(),
        dropped: 0,
        complete: match &recorder {
            Lease::Free => Some(true),
            Lease::Held => Some(false),
            Lease::NoFile | Lease::Unknown(_) => None,
        },
    };
    let mut page = Page::new(args.raw);
    while let Some(piece) = log.read().map_err(|e| unreadable(attempt, &e))? {
        if let Piece::Gap(n) = piece {
            report.dropped += n;
        }
        let text = page.set(&piece);
        if ctx.out().json() {
            report.text.push_str(&String::from_utf8_lossy(&text))
        } else {
            ctx.out().bytes(&text)?
        }
    }
    let rest = page.finish();
    if ctx.out().json() {
        report.text.push_str(&String::from_utf8_lossy(&rest));
        return ctx.out().report(&report, |_| String::new());
    }
    ctx.out().bytes(&rest)?;
    if recorder == Lease::NoFile && log.position() == 0 {
        ctx.out().note("nothing was recorded of this attempt");
    }
    Ok(())
}

/// Pieces of a log as they are printed.
struct Page {
    raw: bool,
    plain: Plain,
}

impl Page {
    fn new(raw: bool) -> Self {
        Self { raw, plain: Plain::default() }
    }

    /// Whole lines of plain text, or the bytes as they are.
    fn set(&mut self, piece: &Piece) -> Vec<u8> {
        match piece {
            Piece::Bytes(bytes) if self.raw => bytes.clone(),
            Piece::Bytes(bytes) => {
                self.plain.feed(bytes);
                self.plain.lines().into_bytes()
            }
            Piece::Gap(n) => {
                let mark = format!("[{n} bytes were dropped here]\n");
                if self.raw {
                    return format!("\r\n{mark}").into_bytes();
                }
                format!("{}{mark}", self.plain.finish()).into_bytes()
            }
        }
    }

    /// The line that is not finished.
    fn partial(&mut self) -> Vec<u8> {
        if self.raw { Vec::new() } else { self.plain.everything().into_bytes() }
    }

    fn finish(&mut self) -> Vec<u8> {
        if self.raw { Vec::new() } else { self.plain.finish().into_bytes() }
    }
}

/// Follows a run to its end.
struct Follower<'a> {
    ctx: &'a Context,
    args: &'a LogsArgs,
    run: &'a RunRead,
    short: &'a str,
}

impl Follower<'_> {
    fn follow(&self) -> Outcome {
        let mut n = 0;
        loop {
            let attempt = self.next_attempt(n)?;
            let Some(attempt) = attempt else { break };
            n = attempt.n();
            self.follow_attempt(&attempt)?;
            if self.args.attempt.is_some() {
                break;
            }
        }
        if self.ctx.out().json() {
            outcome::print(self.ctx, &[self.view()])?;
        }
        Ok(0)
    }

    fn view(&self) -> RunView {
        observe::run(self.run, &mut Looks::none())
    }

    /// The attempt after `n`, once there is one; `None` when the run is over without.
    fn next_attempt(&self, n: u32) -> Result<Option<AttemptRead>, CliError> {
        let mut watch = Watch::begin();
        watch.add(self.run.dir().path());
        loop {
            let over = is_over(&self.view());
            if self.args.attempt.is_some() {
                return pick(self.run, self.args.attempt, self.short);
            }
            let latest = pick(self.run, None, self.short)?;
            if let Some(latest) = latest.filter(|a| a.n() > n) {
                return Ok(Some(latest));
            }
            if over {
                return Ok(None);
            }
            watch.sleep()?;
        }
    }

    /// Prints what one attempt writes, until it has ended and nobody records any more.
    fn follow_attempt(&self, attempt: &AttemptRead) -> Result<(), CliError> {
        let mut log = reader(attempt)?;
        let mut page = Page::new(self.args.raw);
        // Made before the first look, so that nothing happens between the two.
        let mut watch = Watch::begin();
        watch.add(attempt.dir().path());
        watch.add(self.run.dir().path());
        loop {
            let view = self.view();
            let recorder = log.recorder();
            let mut dropped = 0;
            while let Some(piece) = log.read().map_err(|e| unreadable(attempt, &e))? {
                if let Piece::Gap(n) = piece {
                    dropped += n;
                }
                let text = page.set(&piece);
                self.emit(attempt.n(), &text, std::mem::take(&mut dropped))?;
            }
            if has_ended(&view, attempt.n()) && recorder != Lease::Held {
                return self.emit(attempt.n(), &page.finish(), 0);
            }
            if !self.ctx.out().json() {
                self.ctx.out().bytes(&page.partial())?;
            }
            watch.sleep()?;
        }
    }

    fn emit(&self, attempt: u32, text: &[u8], dropped: u64) -> Result<(), CliError> {
        if !self.ctx.out().json() {
            return self.ctx.out().bytes(text);
        }
        let text = String::from_utf8_lossy(text);
        let run = self.run.id().to_string();
        let event = |text: &str| LogsEvent { run: run.clone(), attempt, text: text.to_owned(), dropped };
        if self.args.raw {
            return if text.is_empty() {
                Ok(())
            } else {
                self.ctx.out().event(&event(&text), |_| String::new())
            };
        }
        text.lines().try_for_each(|line| self.ctx.out().event(&event(line), |_| String::new()))
    }
}

/// No attempt of the run follows any more, and none runs, as far as can be told.
fn is_over(view: &RunView) -> bool {
    if view.status.row().is_final {
        return true;
    }
    let ended = view.latest().is_none_or(|a| a.verdict.is_end());
    view.engine.seen != EngineSeen::Running && ended
}

/// An attempt has ended when its verdict says so; of one that nobody can tell, when nobody drives the run.
fn has_ended(view: &RunView, n: u32) -> bool {
    let attempt = view.attempts.known().and_then(|list| list.iter().find(|a| a.n == n));
    attempt.is_none_or(|a| a.verdict.is_end()) || is_over(view)
}

/// Sleeps until something is written in a directory. One notification instance per process; without it, a look
/// every second.
struct Watch {
    files: Option<wake::Files>,
    /// A reader that went away is noticed without writing to it.
    reader: Option<wake::Reader>,
}

impl Watch {
    fn begin() -> Self {
        Self { files: wake::Files::new().ok(), reader: wake::Reader::of_output() }
    }

    fn add(&mut self, dir: &std::path::Path) {
        if self.files.as_ref().is_some_and(|files| files.add(dir).is_err()) {
            self.files = None;
        }
    }

    /// Fails as a write would where the reader of our output went away.
    fn sleep(&mut self) -> Result<(), CliError> {
        let files = self.files.as_ref().map(AsSource::as_source);
        let reader = self.reader.as_ref().map(AsSource::as_source);
        let sources: Vec<Source<'_>> = files.into_iter().chain(reader).collect();
        let woke = wake::wait(&sources, Some(wake::SAFETY))
            .map_err(|e| CliError::new(ErrorCode::Io, format!("cannot wait for output: {e}")))?;
        if let Some(files) = &self.files {
            files.drain();
        }
        let at_reader = usize::from(self.files.is_some());
        if self.reader.is_some() && woke == wake::Woke::By(at_reader) {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
        }
        Ok(())
    }
}
