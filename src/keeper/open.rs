//! Whether the directory that this window was given is what was launched, and was not used before.
//!
//! A window's command can be executed again, by a respawned pane or a restored layout, days later: then nothing
//! may be touched, and nothing started.

use crate::fault;
use crate::process;
use crate::run::dir::Dir;
use crate::run::files::{EnvFile, KEEPER_PROTOCOL, LaunchFile, Role, name};
use crate::run::locks::{self, TakeError};
use crate::run::text::OsText;
use crate::verdict::Observation;
use std::fs::File;
use std::path::Path;

/// A directory that may be started, its lease taken.
#[derive(Debug)]
pub(super) struct Ready {
    /// The directory of the attempt or engine.
    pub(super) dir: Dir,
    /// What to start.
    pub(super) launch: LaunchFile,
    /// Its environment.
    pub(super) vars: Vec<(OsText, OsText)>,
    /// The lock that says that something of the attempt lives. An engine has none.
    pub(super) lease: Option<File>,
}

/// Why a directory is not started.
#[derive(Debug)]
pub(super) enum Not {
    /// It is not this window's to start: touch nothing.
    Ours(String),
    /// It is, and it must not start: say so in it.
    Startable(Box<Refused>),
}

/// A directory in which a refusal is to be written.
#[derive(Debug)]
pub(super) struct Refused {
    /// The directory.
    pub(super) dir: Dir,
    /// What was to be started, where that could be read.
    pub(super) launch: Option<LaunchFile>,
    /// The lease, held until the refusal is written.
    pub(super) lease: Option<File>,
    /// Why.
    pub(super) why: String,
}

impl Not {
    fn startable(dir: Dir, launch: Option<LaunchFile>, lease: Option<File>, why: String) -> Self {
        Self::Startable(Box::new(Refused { dir, launch, lease, why }))
    }
}

/// Opens a directory to start it.
///
/// # Errors
/// [`Not`] says whether anything may be written.
pub(super) fn open(path: &Path) -> Result<Ready, Not> {
    let dir = Dir::open(path).map_err(|e| Not::Ours(format!("cannot open {}: {e}", path.display())))?;
    let launch = match dir.read_json::<LaunchFile>(name::LAUNCH) {
        Observation::Known(launch) => Ok(launch),
        Observation::Absent => {
            return Err(Not::Ours(format!("{} holds no {}", path.display(), name::LAUNCH)));
        }
        Observation::Unknown(why) => Err(why.to_string()),
    };
    unused(&dir).map_err(Not::Ours)?;
    let launch = match launch {
        Ok(launch) => launch,
        Err(why) => return Err(Not::startable(dir, None, None, why)),
    };
    let lease = match launch.role {
        Role::Engine => None,
        Role::Attempt => match take_lease(&dir) {
            Ok(lease) => Some(lease),
            Err(TakeError::Held) => return Err(Not::Ours("another keeper holds its lease".to_owned())),
            Err(e @ TakeError::Io(_)) => {
                let why = format!("cannot lock the lease: {e}");
                return Err(Not::startable(dir, Some(launch), None, why));
            }
        },
    };
    // Another keeper may have come and gone between the first look and the lock.
    unused(&dir).and_then(|()| still_there(&dir)).map_err(Not::Ours)?;
    match may_start(&dir, &launch).and_then(|()| environment(&dir)) {
        Ok(vars) => Ok(Ready { dir, launch, vars, lease }),
        Err(why) => Err(Not::startable(dir, Some(launch), lease, why)),
    }
}

fn take_lease(dir: &Dir) -> Result<File, TakeError> {
    fault::around("lock.lease", || locks::take_lease(dir, name::LEASE))
}

/// Whether no keeper has been here. What cannot be looked at counts as used.
fn unused(dir: &Dir) -> Result<(), String> {
    for receipt in [name::START, name::REFUSED, name::EXIT] {
        match dir.has(receipt) {
            Observation::Absent => {}
            Observation::Known(()) => {
                return Err(format!("{} was run before: it has a {receipt}", dir.path().display()));
            }
            Observation::Unknown(why) => return Err(why.to_string()),
        }
    }
    Ok(())
}

/// Whether the path still leads to the directory whose lease was locked. A removal renames it first, and looks at
/// the lease then.
fn still_there(dir: &Dir) -> Result<(), String> {
    let path = dir.path().display();
    let locked = dir.identity().map_err(|e| format!("cannot look at {path}: {e}"))?;
    match Dir::open(dir.path()).and_then(|d| d.identity()) {
        Ok(now) if now == locked => Ok(()),
        Ok(_) => Err(format!("{path} is another directory by now")),
        Err(e) => Err(format!("{path} was moved away: {e}")),
    }
}

fn may_start(dir: &Dir, launch: &LaunchFile) -> Result<(), String> {
    if launch.protocol != KEEPER_PROTOCOL {
        return Err(format!(
            "the launch file speaks protocol {} and this keeper {KEEPER_PROTOCOL}; loopmux was replaced during the \
             launch, launch again",
            launch.protocol
        ));
    }
    launch.tags.check().map_err(|e| e.to_string())?;
    if launch.argv.is_empty() {
        return Err("the launch file names no program".to_owned());
    }
    let then = &launch.host.boot;
    let now = &process::host().boot;
    if !then.is_empty() && !now.is_empty() && then != now {
        return Err("it was launched before the host restarted".to_owned());
    }
    let run = dir.above(2).map_err(|e| format!("cannot look at the run's directory: {e}"))?;
    if run != launch.run_dir {
        return Err("the directory is not in the run that it was launched for; it is a copy".to_owned());
    }
    match dir.has(&format!("../{}", launch.attempt.saturating_add(1))) {
        Observation::Absent => {}
        Observation::Known(()) => return Err("a later one was launched already".to_owned()),
        Observation::Unknown(why) => return Err(why.to_string()),
    }
    match dir.has(name::CANCELLED) {
        Observation::Absent => Ok(()),
        Observation::Known(()) => Err("the launch was given up before it started".to_owned()),
        Observation::Unknown(why) => Err(why.to_string()),
    }
}

fn environment(dir: &Dir) -> Result<Vec<(OsText, OsText)>, String> {
    match dir.read_json::<EnvFile>(name::ENV) {
        Observation::Known(file) => Ok(file.vars),
        Observation::Absent => Err(format!("{} is not there", name::ENV)),
        Observation::Unknown(why) => Err(why.to_string()),
    }
}
