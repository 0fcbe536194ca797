//! Selection: the one place in `src` that knows which multiplexers there are.

use crate::config::{BackendChoice, Program, Setting, Settings, Socket, Source};
use crate::run::files::MuxRef;
use crate::run::id::project_key;
use crate::run::text::OsText;
use loopmux_mux::{Multiplexer, Probe, ReplyClass, Trouble};
use loopmux_psmux::Psmux;
#[cfg(unix)]
use loopmux_tmux::{Endpoint, Tmux};
use std::path::{Path, PathBuf};

#[cfg(unix)]
const TMUX_FLOOR: Option<&str> = Some(loopmux_tmux::version::FLOOR);
#[cfg(not(unix))]
const TMUX_FLOOR: Option<&str> = None;

/// The backends by name, as configuration and records write them.
pub const NAMES: [&str; 2] = ["tmux", "psmux"];

/// A backend that was selected, and why.
pub struct Selected {
    /// The backend, on its socket.
    pub mux: Box<dyn Multiplexer>,
    /// Why this one: which setting says so, or that it is this platform's.
    pub why: String,
}

impl std::fmt::Debug for Selected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selected").field("mux", &self.mux.name()).field("why", &self.why).finish()
    }
}

/// No backend can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// Its program was not found.
    #[error("{name} was not found: {why}; install it, or name it with {variable} or the configuration")]
    Missing {
        /// The backend.
        name: &'static str,
        /// Where it was looked for.
        why: String,
        /// The variable that would name it.
        variable: &'static str,
    },
    /// This build has no such backend, or not on this platform.
    #[error("{name} cannot be used here: {why}")]
    NotHere {
        /// The backend.
        name: &'static str,
        /// Why.
        why: String,
    },
    /// Its socket cannot be used.
    #[error("{name} cannot be asked: {why}")]
    Socket {
        /// The backend.
        name: &'static str,
        /// Why.
        why: String,
    },
    /// It is too old, or does not say what it is.
    #[error("{name} cannot be used: {trouble}")]
    Incompatible {
        /// The backend.
        name: &'static str,
        /// What it said.
        trouble: Trouble,
    },
}

/// Selects the backend that the settings name, `auto` being this platform's. Locates its program, and executes
/// nothing.
///
/// # Errors
/// [`Unusable`].
pub fn select(settings: &Settings) -> Result<Selected, Unusable> {
    let (name, why) = chosen(settings);
    let mux = match name {
        "tmux" => named_tmux(settings, &find_tmux(settings)?)?,
        _ => {
            // What cannot be used here need not be installed.
            psmux_is_at_home()?;
            named_psmux(settings, &find_psmux(settings)?)?
        }
    };
    Ok(Selected { mux, why })
}

/// The name of the backend that the settings choose, and why that one.
fn chosen(settings: &Settings) -> (&'static str, String) {
    match settings.backend.value {
        BackendChoice::Auto if cfg!(windows) => ("psmux", "this platform's".to_owned()),
        BackendChoice::Auto => ("tmux", "this platform's".to_owned()),
        BackendChoice::Tmux => ("tmux", named_by(&settings.backend.source)),
        BackendChoice::Psmux => ("psmux", named_by(&settings.backend.source)),
    }
}

fn find_tmux(settings: &Settings) -> Result<PathBuf, Unusable> {
    locate("tmux", "LOOPMUX_TMUX", &settings.tmux)
}

fn find_psmux(settings: &Settings) -> Result<PathBuf, Unusable> {
    locate("psmux", loopmux_psmux::BINARY_VARIABLE, &settings.psmux)
}

#[cfg(unix)]
fn named_tmux(settings: &Settings, binary: &Path) -> Result<Box<dyn Multiplexer>, Unusable> {
    let endpoint = match &settings.socket.value {
        Socket::Default => Endpoint::Default,
        Socket::Name(name) => Endpoint::Name(name.clone().into()),
        Socket::Path(path) => Endpoint::Path(path.clone()),
    };
    Ok(Box::new(tmux(binary, &endpoint)?))
}

#[cfg(not(unix))]
fn named_tmux(_settings: &Settings, _binary: &Path) -> Result<Box<dyn Multiplexer>, Unusable> {
    Err(not_on_this_system("tmux", "it runs on Unix, and what goes by its name here may be another program"))
}

fn named_psmux(settings: &Settings, binary: &Path) -> Result<Box<dyn Multiplexer>, Unusable> {
    let unusable = |why: String| Unusable::Socket { name: "psmux", why };
    let data = match &settings.socket.value {
        Socket::Path(path) => path.clone(),
        Socket::Name(name) => {
            return Err(unusable(format!(
                "it has data directories and no socket names; in the place of {name:?} give an absolute path"
            )));
        }
        Socket::Default => {
            let state = settings.state.as_ref();
            let state =
                state.ok_or_else(|| unusable("there is no state directory for its data".to_owned()))?;
            state.join("projects").join(project_key(&settings.project)).join("psmux")
        }
    };
    psmux(binary, &data, settings.old_psmux.value)
}

/// A client of it on another system than its own asks servers that have other processes than ours.
fn psmux_is_at_home() -> Result<(), Unusable> {
    if cfg!(windows) {
        return Ok(());
    }
    let why = "it runs on Windows; use the loopmux for Windows there, and tmux inside WSL";
    Err(not_on_this_system("psmux", why))
}

fn psmux(binary: &Path, data: &Path, old: bool) -> Result<Box<dyn Multiplexer>, Unusable> {
    psmux_is_at_home()?;
    match Psmux::new(binary, data) {
        Ok(psmux) => Ok(Box::new(if old { psmux.of_old() } else { psmux })),
        Err(e) => Err(Unusable::Socket { name: "psmux", why: e.to_string() }),
    }
}

fn not_on_this_system(name: &'static str, why: &str) -> Unusable {
    Unusable::NotHere { name, why: why.to_owned() }
}

/// Asks a backend whether it can be used: its version and its floor. Executes its program once.
///
/// # Errors
/// [`Unusable`], with what it said.
pub fn check(mux: &dyn Multiplexer) -> Result<Probe, Unusable> {
    let probe = mux.probe();
    match &probe.refused {
        None => Ok(probe),
        Some(trouble) => {
            let name = NAMES.into_iter().find(|n| *n == mux.name()).unwrap_or("the multiplexer");
            Err(Unusable::Incompatible { name, trouble: trouble.clone() })
        }
    }
}

/// The backend of a record, on the recorded socket, with the program that the settings select now: clients are
/// upgraded while runs go on. Where none can be located the recorded program serves.
///
/// # Errors
/// No such backend here, in words.
pub fn open(settings: &Settings, recorded: &MuxRef) -> Result<Box<dyn Multiplexer>, String> {
    let found = match recorded.backend.as_str() {
        "tmux" => find_tmux(settings),
        _ => find_psmux(settings),
    };
    let binary = found.unwrap_or_else(|_| PathBuf::from(recorded.binary.as_os_str()));
    at_socket(recorded, &binary)
}

/// The backend of a record exactly as recorded: what a keeper uses for its own pane.
///
/// # Errors
/// No such backend here, in words.
pub fn recorded(mux: &MuxRef) -> Result<Box<dyn Multiplexer>, String> {
    at_socket(mux, Path::new(mux.binary.as_os_str()))
}

/// How a record refers to a backend.
pub fn reference(mux: &dyn Multiplexer, version: Option<String>) -> MuxRef {
    MuxRef {
        backend: mux.name().to_owned(),
        binary: OsText::from(mux.binary().as_os_str()),
        socket: OsText::from(mux.socket().as_os_str()),
        version,
    }
}

fn at_socket(recorded: &MuxRef, binary: &Path) -> Result<Box<dyn Multiplexer>, String> {
    let socket = Path::new(recorded.socket.as_os_str());
    match recorded.backend.as_str() {
        #[cfg(unix)]
        "tmux" => {
            let endpoint = Endpoint::parse(Some(socket.as_os_str())).map_err(|e| e.to_string())?;
            Ok(Box::new(tmux(binary, &endpoint).map_err(|e| e.to_string())?))
        }
        "psmux" => {
            // Servers go on in the version that they were started with.
            let old = recorded.version.as_deref().is_some_and(loopmux_psmux::version::is_old);
            psmux(binary, socket, old).map_err(|e| e.to_string())
        }
        other => Err(format!("this build has no backend {other:?}")),
    }
}

#[cfg(unix)]
fn tmux(binary: &Path, endpoint: &Endpoint) -> Result<Tmux, Unusable> {
    Tmux::new(binary, endpoint).map_err(|e| Unusable::Socket { name: "tmux", why: e.to_string() })
}

/// Finds a program. That it was found answers no other question.
fn locate(
    name: &'static str,
    variable: &'static str,
    setting: &Setting<Option<Program>>,
) -> Result<PathBuf, Unusable> {
    let wanted = setting.value.as_ref().map_or(Path::new(name), Program::as_path);
    which::which(wanted).map_err(|e| {
        let place = match e {
            which::Error::CannotFindBinaryPath if wanted.is_absolute() => "is no program".to_owned(),
            which::Error::CannotFindBinaryPath => "is in no directory of PATH".to_owned(),
            other => format!("cannot be looked for: {other}"),
        };
        let asked = match &setting.source {
            Source::Default => String::new(),
            source => format!(", named by {source},"),
        };
        Unusable::Missing { name, why: format!("{}{asked} {place}", wanted.display()), variable }
    })
}

fn named_by(source: &Source) -> String {
    format!("named by {source}")
}

/// The trouble of a backend that cannot be used, for reports.
pub fn as_trouble(unusable: &Unusable) -> Trouble {
    match unusable {
        Unusable::Incompatible { trouble, .. } => trouble.clone(),
        other => Trouble {
            class: ReplyClass::Failed,
            tried: "selecting a multiplexer".to_owned(),
            said: other.to_string(),
        },
    }
}

/// One backend as it is found here, for a report.
pub struct Seen {
    /// Its name.
    pub name: &'static str,
    /// The platform that it is for.
    pub platform: &'static str,
    /// The oldest version that works; `None` where this build has no such backend.
    pub floor: Option<&'static str>,
    /// Where its program is, or why it was not found. That it was found answers no other question.
    pub found: Result<PathBuf, Unusable>,
    /// The backend on the socket that the settings name, or why it cannot be used.
    pub backend: Result<Box<dyn Multiplexer>, Unusable>,
    /// Why it is the one that is used; `None` if it is not.
    pub selected: Option<String>,
}

/// Every backend, with the program and the socket that the settings name. Locates programs, and executes nothing.
pub fn survey(settings: &Settings) -> Vec<Seen> {
    let (chosen, why) = chosen(settings);
    let selected = |name: &str| (name == chosen).then(|| why.clone());
    let found = find_tmux(settings);
    let for_unix = Seen {
        name: "tmux",
        platform: "Unix",
        floor: TMUX_FLOOR,
        backend: found.clone().and_then(|binary| named_tmux(settings, &binary)),
        found,
        selected: selected("tmux"),
    };
    let found = find_psmux(settings);
    let here = psmux_is_at_home().and_then(|()| found.clone());
    let for_windows = Seen {
        name: "psmux",
        platform: "Windows",
        floor: Some(loopmux_psmux::version::FLOOR),
        backend: here.and_then(|binary| named_psmux(settings, &binary)),
        found,
        selected: selected("psmux"),
    };
    vec![for_unix, for_windows]
}

/// What a person should know if a backend's client and the server that it asks are of different versions.
pub fn skew(backend: &str, client: &str, server: &str) -> Option<String> {
    match backend {
        #[cfg(unix)]
        "tmux" => loopmux_tmux::version::skew(client, server),
        "psmux" => loopmux_psmux::version::skew(client, server),
        _ => None,
    }
}

/// An option of a server that a person should know of, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// What is set, and what it does.
    pub what: String,
    /// Windows of ours are made so that it does nothing to them.
    pub harmless_to_ours: bool,
    /// What would undo it.
    pub fix: String,
}

/// *Observation.* Options of the server behind a backend that could end or keep windows against anybody's will.
///
/// # Errors
/// Why there is no answer.
pub fn hazards(mux: &dyn Multiplexer) -> Result<Vec<Hazard>, Trouble> {
    match mux.name() {
        #[cfg(unix)]
        "tmux" => tmux_hazards(mux),
        _ => Ok(Vec::new()),
    }
}

#[cfg(unix)]
fn tmux_hazards(mux: &dyn Multiplexer) -> Result<Vec<Hazard>, Trouble> {
    let failed = |said: String| Trouble {
        class: ReplyClass::Failed,
        tried: format!("asking {} for its options", mux.name()),
        said,
    };
    let at = Endpoint::Path(mux.socket().to_owned());
    let found = tmux(mux.binary(), &at).map_err(|e| failed(e.to_string()))?.hazards()?;
    let worded = found.into_iter().map(|h| Hazard {
        what: format!("{} is {}: {}", h.option, h.value, h.harm),
        harmless_to_ours: h.harmless_to_ours,
        fix: format!("tmux set-option -g {} off, and take it out of your tmux.conf", h.option),
    });
    Ok(worded.collect())
}

/// The selected backend on another socket, for a server that is to be thrown away.
///
/// # Errors
/// [`Unusable`].
pub fn elsewhere(mux: &dyn Multiplexer, socket: &Path) -> Result<Box<dyn Multiplexer>, Unusable> {
    match mux.name() {
        #[cfg(unix)]
        "tmux" => Ok(Box::new(tmux(mux.binary(), &Endpoint::Path(socket.to_owned()))?)),
        _ => psmux(mux.binary(), socket, false),
    }
}
