//! Removing a run (rules L1, L8, L19): the step that delete, archive and clean share.
//!
//! 1. Without a lock: what is only on its way to its end gets a moment.
//! 2. Under the run lock, to the end: a removal that was interrupted is settled. A launch without an engine is given up.
//! 3. The evidence, the multiplexer's veto, and a look at the processes where the keeper left no last receipt.
//! 4. `runs/<id>` becomes `trash/<id>.<nonce>`: nothing can be started in it by its path any more.
//! 5. The evidence once more, through the same open directory: a keeper may have taken its lease in between.
//! 6. Either the run is put back, or its erasure is decided, and it is erased.

use super::cleanup;
use super::end::LeaseWait;
use super::engine_windows::owes_a_receipt;
use super::give_up::give_up;
use super::look::{self, Looked};
use super::recover;
use super::refusal::Refusal;
use super::veto::{Marks, OpenMux, multiplexers, veto};
use crate::observe::{self, Looks, RunView};
use crate::process::{Handle, Opened};
use crate::run::dir::WriteError;
use crate::run::id::RunId;
use crate::run::journal::Event;
use crate::run::store::{RunRead, place};
use crate::run::trash::{self, Trashed};
use crate::run::tree::{Entry, TreeError};
use crate::run::write::{ProjectWrite, RunLock, StoreError};
use crate::verdict::{EngineSeen, Lease, Leftovers, Observation, Removable, Verdict};
use crate::wake::{self, AsSource};
use std::time::{Duration, Instant};

/// How long what is on its way to its end may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a look waits for the next one where no process can be waited for.
const PAUSE: Duration = Duration::from_millis(200);

/// Where a removal happens.
pub struct Ground<'a> {
    /// The project.
    pub project: &'a ProjectWrite,
    /// The state directory's id.
    pub state: &'a str,
    /// Makes the backend of a recorded multiplexer.
    pub open: OpenMux<'a>,
}

/// A run that was not removed.
#[derive(Debug, thiserror::Error)]
pub enum NotRemoved {
    /// A guard refuses. The run is where it was.
    #[error("{}", .0.facts.first().map_or_else(String::new, super::refusal::Fact::line))]
    Refused(Refusal),
    /// There is no such run, or not any more.
    #[error("there is no run {0}")]
    Gone(RunId),
    /// The state directory could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It could not be looked through.
    #[error(transparent)]
    Tree(TreeError),
    /// Its erasure was decided, and could not be finished: the next delete, archive or clean goes on.
    #[error("it was moved to trash and only partly erased: {0}")]
    PartlyErased(TreeError),
    /// It could not be archived.
    #[error("it was not archived: {0}")]
    NotArchived(String),
}

impl From<WriteError> for NotRemoved {
    fn from(e: WriteError) -> Self {
        Self::Store(e.into())
    }
}

impl From<Refusal> for NotRemoved {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A run that nothing stands against, under its lock.
pub struct Cleared {
    /// The open run.
    pub run: RunRead,
    /// What was seen of it.
    pub view: RunView,
    /// Everything that lies in it.
    pub entries: Vec<Entry>,
    /// The proof.
    pub proof: Removable,
}

/// Removes a run.
///
/// # Errors
/// [`NotRemoved`] says where the run is.
pub fn remove(ground: &Ground<'_>, id: &RunId) -> Result<(), NotRemoved> {
    let lock = enter(ground, id)?;
    let cleared = clear(ground, &lock)?;
    take(ground, &lock, cleared)
}

/// Takes the run lock for an act that moves the run, once what is on its way to its end has come there, and settles what
/// an interrupted removal left.
///
/// # Errors
/// The lock is held, or a remainder cannot be settled.
pub fn enter(ground: &Ground<'_>, id: &RunId) -> Result<RunLock, NotRemoved> {
    let lock = match open(ground.project, id)? {
        Some(run) => {
            settle(&run);
            ground.project.lock_run_or_make(id)?
        }
        None => ground.project.lock_run(id)?,
    };
    recover::settle_run(ground.project, &lock)?;
    Ok(lock)
}

/// The proof that nothing stands against a removal, by everything but the second look.
///
/// # Errors
/// [`NotRemoved::Refused`] with everything that stands against it.
pub fn clear(ground: &Ground<'_>, lock: &RunLock) -> Result<Cleared, NotRemoved> {
    let run = open(ground.project, lock.id())?.ok_or_else(|| NotRemoved::Gone(lock.id().clone()))?;
    let mut looked = look::look(&run);
    if give_up_launches(ground, &run, &looked)? {
        looked = look::look(&run);
    }
    let (view, entries, proof) = questions(ground, &run, looked)?;
    Ok(Cleared { run, view, entries, proof })
}

fn questions(
    ground: &Ground<'_>,
    run: &RunRead,
    mut looked: Looked,
) -> Result<(RunView, Vec<Entry>, Removable), NotRemoved> {
    let mut refusal = Refusal::new();
    let proof = looked.prove(run).map_err(|more| refusal.absorb(more));
    let marks = Marks::of(run, &looked.view, ground.project.key(), ground.state);
    let shown = veto(&marks, &multiplexers(&looked.view), ground.open);
    if !refusal.is_certain() {
        // What lives has its window open: that is said already.
        refusal.absorb(shown);
    }
    let runs = sub(ground.project, place::RUNS)?;
    let entries = look::survey(run, &runs).map_err(|more| refusal.absorb(more));
    match (proof, entries) {
        (Ok(proof), Ok(entries)) if refusal.is_empty() => Ok((looked.view, entries, proof)),
        _ => Err(refusal.into()),
    }
}

/// Whether a run would be removed now, by the same questions, without a lock and without writing anything.
///
/// # Errors
/// [`NotRemoved::Refused`] with everything that stands against it.
pub fn would(ground: &Ground<'_>, id: &RunId) -> Result<(), NotRemoved> {
    let run = open(ground.project, id)?.ok_or_else(|| NotRemoved::Gone(id.clone()))?;
    settle(&run);
    questions(ground, &run, look::look(&run)).map(|_| ())
}

/// The second half: away, another look, and gone.
///
/// # Errors
/// [`NotRemoved`] says where the run is.
pub fn take(ground: &Ground<'_>, lock: &RunLock, cleared: Cleared) -> Result<(), NotRemoved> {
    let Cleared { run, entries, proof, .. } = cleared;
    let windows = cleanup::Windows::of(ground.project);
    windows.remember(&run);
    let trashed = trash::take_away(ground.project, lock, run, proof)?;
    match look_again(ground, &trashed, &entries) {
        Ok(proof) => {
            trashed.commit(proof)?.erase().map_err(NotRemoved::PartlyErased)?;
            look_for_remains(ground.project, lock)
        }
        Err(refusal) => {
            put_back(trashed, &refusal)?;
            Err(refusal.into())
        }
    }
}

/// Moves a run back that was moved away, and notes in it why.
///
/// # Errors
/// It stays in trash, and the next act puts it back.
pub fn put_back(trashed: Trashed, why: &Refusal) -> Result<(), StoreError> {
    let run = trashed.put_back()?;
    let text = why.facts.iter().map(super::refusal::Fact::line).collect::<Vec<_>>().join("; ");
    // The refusal itself says it to whoever asked.
    if let Err(e) = crate::run::journal::append(run.dir(), &Event::new("remove", "put-back").text(text)) {
        tracing::debug!("{e}");
    }
    Ok(())
}

/// The same questions, where nobody can come in any more. Locks stay with the directory that was renamed.
fn look_again(ground: &Ground<'_>, trashed: &Trashed, before: &[Entry]) -> Result<Removable, Refusal> {
    let mut looked = look::look(trashed.run());
    let mut refusal = Refusal::new();
    let proof = looked.prove(trashed.run()).map_err(|more| refusal.absorb(more));
    match sub(ground.project, place::TRASH) {
        Ok(trash) => match look::survey(trashed.run(), &trash) {
            Ok(now) if same(before, &now) => {}
            Ok(_) => refusal.fact(false, "something in its directory was changed meanwhile", None),
            Err(more) => refusal.absorb(more),
        },
        Err(e) => refusal.fact(false, e.to_string(), None),
    }
    match proof {
        Ok(proof) if refusal.is_empty() => Ok(proof),
        _ => Err(refusal),
    }
}

/// Nothing came, went or was written. The root itself was renamed, which changes only its own time.
fn same(before: &[Entry], now: &[Entry]) -> bool {
    before.len() == now.len()
        && before.iter().zip(now).all(|(a, b)| {
            let root = a.path.as_os_str().is_empty();
            a.path == b.path && a.inode == b.inode && (root || (a.len, a.changed) == (b.len, b.changed))
        })
}

/// The fresh look after the act: no directory of that id is left.
fn look_for_remains(project: &ProjectWrite, lock: &RunLock) -> Result<(), NotRemoved> {
    let io = |e: String| StoreError::Unreadable(crate::verdict::Why::new(e));
    match sub(project, place::RUNS)?.has(lock.id().as_str()) {
        Observation::Absent => {}
        Observation::Known(()) => {
            return Err(io(format!("run {} is there again after it was removed", lock.id())).into());
        }
        Observation::Unknown(why) => return Err(StoreError::Unreadable(why).into()),
    }
    match trash::entries(project.dir(), place::TRASH) {
        Observation::Absent => Ok(()),
        Observation::Known(left) => match left.iter().find(|e| e.id == *lock.id()) {
            None => Ok(()),
            Some(entry) => Err(io(format!("{} is left in trash", entry.name)).into()),
        },
        Observation::Unknown(why) => Err(StoreError::Unreadable(why).into()),
    }
}

/// A launch that nobody drives any more never starts once it is cancelled (rule L14). Gives whether there was one.
fn give_up_launches(ground: &Ground<'_>, run: &RunRead, looked: &Looked) -> Result<bool, NotRemoved> {
    // Under the run lock no engine can begin: what is free now stays free.
    if looked.view.engine.seen != EngineSeen::Gone {
        return Ok(false);
    }
    let mut any = false;
    let attempts = looked.view.attempts.known().map_or(&[][..], Vec::as_slice);
    for attempt in attempts.iter().filter(|a| matches!(a.verdict, Verdict::Launching)) {
        if let Observation::Known(read) = run.attempt(attempt.n) {
            let mux = attempt.launch.known().and_then(|l| (ground.open)(&l.mux).ok());
            give_up(&read, mux.as_deref())?;
            any = true;
        }
    }
    Ok(any)
}

/// Waits, bounded, for what has ended to be done: an engine that wrote its run's end, a keeper that lets go of its lease
/// and closes its window, a sink that has its last bytes.
pub fn settle(run: &RunRead) {
    let end = Instant::now() + PATIENCE;
    loop {
        let view = observe::run(run, &mut Looks::none());
        let Some(next) = on_its_way(run, &view) else { return };
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        match next {
            Next::Process(handle) => {
                // In vain, or not: the next look tells.
                let _ = wake::wait(&[handle.as_source()], Some(left));
            }
            // Leftovers are told by a file, which wakes nobody: so this wait has a shorter end as well.
            Next::Lock(lock) => {
                lock.wait(PAUSE.min(left), &[], &|| false);
            }
            Next::Moment => std::thread::sleep(PAUSE.min(left)),
        }
    }
}

enum Next {
    Process(Handle),
    Lock(LeaseWait),
    Moment,
}

fn on_its_way(run: &RunRead, view: &RunView) -> Option<Next> {
    let handle = |id: Option<&crate::process::Identity>| match id.map(Handle::open) {
        Some(Opened::Handle(handle)) => Next::Process(handle),
        Some(Opened::Gone | Opened::Unknown(_)) | None => Next::Moment,
    };
    let over = view.record.known().is_some_and(|r| r.status.row().is_final);
    if over && view.engine.seen == EngineSeen::Running {
        return Some(handle(view.engine.process.as_ref()));
    }
    if view.engine.seen == EngineSeen::Gone && owes_a_receipt(run) {
        return Some(Next::Moment);
    }
    for attempt in view.attempts.known().map_or(&[][..], Vec::as_slice) {
        if !attempt.verdict.is_end() {
            continue;
        }
        let waits = |name| match run.attempt(attempt.n) {
            Observation::Known(read) => Next::Lock(LeaseWait::start(read.dir(), name)),
            Observation::Absent | Observation::Unknown(_) => Next::Moment,
        };
        if attempt.verdict.leftovers() == Leftovers::Settling {
            return Some(waits(crate::run::files::name::LEASE));
        }
        let lives = attempt.evidence.keeper == crate::verdict::Life::Alive;
        let parks = attempt.launch.known().is_some_and(|l| l.park);
        if attempt.evidence.lease == Lease::Free && lives && !parks {
            return Some(handle(attempt.keeper()));
        }
        let records = match run.attempt(attempt.n) {
            Observation::Known(read) => {
                crate::run::locks::probe(read.dir(), crate::run::files::name::OUTPUT) == Lease::Held
            }
            Observation::Absent | Observation::Unknown(_) => false,
        };
        if attempt.evidence.lease == Lease::Free && records {
            return Some(waits(crate::run::files::name::OUTPUT));
        }
    }
    None
}

/// Opens a published run; `None` if there is none of that id.
///
/// # Errors
/// It is there and cannot be opened.
pub fn open(project: &ProjectWrite, id: &RunId) -> Result<Option<RunRead>, NotRemoved> {
    let runs = sub(project, place::RUNS)?;
    match runs.sub(id.as_str()) {
        Ok(dir) => Ok(Some(RunRead::at(id.clone(), dir))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => {
            let mut refusal = Refusal::new();
            let path = runs.path().join(id.as_str());
            refusal.fact(false, format!("cannot open {}: {e}", path.display()), None);
            Err(refusal.into())
        }
    }
}

/// One of the project's directories.
///
/// # Errors
/// It cannot be opened.
pub fn sub(project: &ProjectWrite, name: &'static str) -> Result<crate::run::dir::Dir, StoreError> {
    project.dir().sub(name).map_err(|source| StoreError::Io {
        what: "open",
        path: project.dir().path().join(name),
        source,
    })
}
