//! All layers put together.

use super::env::bad;
use super::file::{self, Layer, Lined};
use super::places::{state_dir, user_config_file};
use super::values::{BackendChoice, Program, Size, Socket};
use super::{ConfigError, Env, PROJECT_FILE};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the agent CLI may take to end by itself before a stop escalates.
const DEFAULT_GRACE: Duration = Duration::from_secs(5);

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// An option on the command line.
    Flag,
    /// That variable of the environment.
    Environment(&'static str),
    /// A file.
    File {
        /// Which one.
        path: PathBuf,
        /// The line in it, counted from 1, where the file's content says it.
        line: Option<usize>,
    },
    /// Nobody said anything.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("command line"),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::File { path, line: Some(line) } => write!(f, "{}:{line}", path.display()),
            Self::File { path, line: None } => write!(f, "{}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub source: Source,
}

/// What the command line says; `None` where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--mux`
    pub backend: Option<BackendChoice>,
    /// `--size`
    pub size: Option<Size>,
    /// `--grace`
    pub grace: Option<Duration>,
    /// `--park`
    pub park: Option<bool>,
}

/// Everything that can be configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which backend.
    pub backend: Setting<BackendChoice>,
    /// Which server of the multiplexer.
    pub socket: Setting<Socket>,
    /// The program `tmux`; `None` means the one in `PATH`.
    pub tmux: Setting<Option<Program>>,
    /// The program `psmux`; `None` means the one in `PATH`.
    pub psmux: Setting<Option<Program>>,
    /// Whether a psmux below the floor may be used, with its limits.
    pub old_psmux: Setting<bool>,
    /// The size of a window that nobody looks at.
    pub size: Setting<Size>,
    /// How long a stop waits between asking and insisting.
    pub grace: Setting<Duration>,
    /// Whether the window of a run stays after the end, until a person presses Enter.
    pub park: Setting<bool>,
    /// The project that the settings are for.
    pub project: PathBuf,
    /// The state directory; `None` for a user without one.
    pub state: Option<PathBuf>,
}

impl Settings {
    /// Reads `loopmux.toml` in the project's root, the user's `config.toml`, and the environment of this
    /// process.
    ///
    /// # Errors
    /// A file or a variable has something in it that cannot be used, or a file cannot be read.
    pub fn load(project_root: &Path, flags: &Flags) -> Result<Self, ConfigError> {
        Self::load_with(project_root, flags, &Env::of_this_process())
    }

    /// The same with a given environment.
    ///
    /// # Errors
    /// As [`Settings::load`].
    pub fn load_with(project_root: &Path, flags: &Flags, env: &Env) -> Result<Self, ConfigError> {
        let variables = Variables::read(env)?;
        let read = |path: PathBuf| file::read(&path).map(|layer| (path, layer));
        let mut files = vec![read(project_root.join(PROJECT_FILE))?];
        if let Some(path) = user_config_file(env) {
            files.push(read(path)?);
        }
        let state = state_dir(env).ok().map(|state| state.value);
        Ok(Self::merge(flags, variables, &files, project_root.to_owned(), state))
    }

    /// Puts the layers together; `files` has the one that ranks first at its front.
    fn merge(
        flags: &Flags,
        env: Variables,
        files: &[(PathBuf, Layer)],
        project: PathBuf,
        state: Option<PathBuf>,
    ) -> Self {
        let first = Layers { files };
        Self {
            backend: first.of(flags.backend, env.backend, |l| &l.backend).or_default(),
            socket: first.of(None, env.socket, |l| &l.socket).or_default(),
            tmux: first.of(None, env.tmux, |l| &l.tmux).optional(),
            psmux: first.of(None, env.psmux, |l| &l.psmux).optional(),
            old_psmux: first.of(None, None, |l| &l.old_psmux).or_default(),
            size: first.of(flags.size, None, |l| &l.size).or_default(),
            grace: first.of(flags.grace, None, |l| &l.grace).or(DEFAULT_GRACE),
            park: first.of(flags.park, None, |l| &l.park).or_default(),
            project,
            state,
        }
    }
}

/// A value with the variable that it comes from.
type FromVariable<T> = Option<(&'static str, T)>;

#[derive(Default)]
struct Variables {
    backend: FromVariable<BackendChoice>,
    socket: FromVariable<Socket>,
    tmux: FromVariable<Program>,
    psmux: FromVariable<Program>,
}

impl Variables {
    fn read(env: &Env) -> Result<Self, ConfigError> {
        Ok(Self {
            backend: text(env, "LOOPMUX_MUX")?,
            socket: text(env, "LOOPMUX_SOCKET")?,
            tmux: program(env, "LOOPMUX_TMUX")?,
            psmux: program(env, "LOOPMUX_PSMUX")?,
        })
    }
}

fn text<T: std::str::FromStr>(env: &Env, name: &'static str) -> Result<FromVariable<T>, ConfigError>
where
    T::Err: fmt::Display,
{
    let Some(value) = env.text(name)? else { return Ok(None) };
    match value.parse() {
        Ok(parsed) => Ok(Some((name, parsed))),
        Err(why) => Err(bad(name, value.as_ref(), why.to_string())),
    }
}

/// A path need not be text.
fn program(env: &Env, name: &'static str) -> Result<FromVariable<Program>, ConfigError> {
    let Some(value) = env.get(name) else { return Ok(None) };
    match Program::from_path(Path::new(value)) {
        Ok(program) => Ok(Some((name, program))),
        Err(why) => Err(bad(name, value, why.to_string())),
    }
}

struct Layers<'a> {
    files: &'a [(PathBuf, Layer)],
}

impl Layers<'_> {
    fn of<T: Clone>(
        &self,
        flag: Option<T>,
        variable: FromVariable<T>,
        key: impl Fn(&Layer) -> &Option<Lined<T>>,
    ) -> Found<T> {
        if let Some(value) = flag {
            return Found(Some(Setting { value, source: Source::Flag }));
        }
        if let Some((name, value)) = variable {
            return Found(Some(Setting { value, source: Source::Environment(name) }));
        }
        Found(self.files.iter().find_map(|(path, layer)| {
            let Lined { value, line } = key(layer).clone()?;
            Some(Setting { value, source: Source::File { path: path.clone(), line: Some(line) } })
        }))
    }
}

struct Found<T>(Option<Setting<T>>);

impl<T> Found<T> {
    fn or(self, default: T) -> Setting<T> {
        self.0.unwrap_or(Setting { value: default, source: Source::Default })
    }

    fn or_default(self) -> Setting<T>
    where
        T: Default,
    {
        self.or(T::default())
    }

    fn optional(self) -> Setting<Option<T>> {
        match self.0 {
            Some(Setting { value, source }) => Setting { value: Some(value), source },
            None => Setting { value: None, source: Source::Default },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct House {
        dir: tempfile::TempDir,
    }

    impl House {
        fn new(project: &str, user: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("home/.config/loopmux")).unwrap();
            fs::create_dir(dir.path().join("project")).unwrap();
            fs::write(dir.path().join("project/loopmux.toml"), project).unwrap();
            fs::write(dir.path().join("home/.config/loopmux/config.toml"), user).unwrap();
            Self { dir }
        }

        fn load(&self, flags: &Flags, variables: &[(&str, &str)]) -> Result<Settings, ConfigError> {
            let home = self.dir.path().join("home").into_os_string();
            let variables = variables.iter().map(|(k, v)| (*k, v.into())).chain([("HOME", home)]);
            Settings::load_with(&self.dir.path().join("project"), flags, &variables.collect())
        }
    }

    #[test]
    fn nothing_configured_gives_the_defaults() {
        let settings = House::new("", "").load(&Flags::default(), &[]).unwrap();
        assert_eq!(settings.backend, Setting { value: BackendChoice::Auto, source: Source::Default });
        assert_eq!(settings.socket.value, Socket::Default);
        assert_eq!((settings.tmux.value, settings.psmux.value), (None, None));
        assert_eq!(settings.size.value, Size { columns: 200, rows: 50 });
        assert_eq!(settings.grace.value, Duration::from_secs(5));
        assert!(!settings.park.value);
    }

    #[cfg(unix)]
    #[test]
    fn flag_environment_project_user_default_in_that_order() {
        let house = House::new("[mux]\nbackend = 'tmux'", "[mux]\nbackend = 'psmux'");
        let flags = Flags { backend: Some(BackendChoice::Auto), ..Flags::default() };
        let all = [("LOOPMUX_MUX", "psmux")];
        let backend = |flags: &Flags, env: &[(&str, &str)]| house.load(flags, env).unwrap().backend;
        assert_eq!(backend(&flags, &all), Setting { value: BackendChoice::Auto, source: Source::Flag });
        let from_variable = Source::Environment("LOOPMUX_MUX");
        assert_eq!(
            backend(&Flags::default(), &all),
            Setting { value: BackendChoice::Psmux, source: from_variable }
        );
        let project = backend(&Flags::default(), &[]);
        assert_eq!(project.value, BackendChoice::Tmux);
        assert!(project.source.to_string().ends_with("loopmux.toml:2"), "{}", project.source);
        let user = House::new("", "[mux]\nbackend = 'psmux'").load(&Flags::default(), &[]).unwrap().backend;
        assert_eq!(user.value, BackendChoice::Psmux);
        assert!(user.source.to_string().ends_with("config.toml:2"), "{}", user.source);
    }

    #[cfg(unix)]
    #[test]
    fn every_key_reaches_its_own_setting() {
        let settings = House::new(
            "[mux]\nbackend='psmux'\nsocket='a'\ntmux='/t'\npsmux='/p'\nold-psmux=true\n[run]\nsize='10x20'\ngrace='1m'\npark=true",
            "",
        )
        .load(&Flags::default(), &[])
        .unwrap();
        assert_eq!(settings.backend.value, BackendChoice::Psmux);
        assert_eq!(settings.socket.value, Socket::Name("a".into()));
        assert_eq!(settings.tmux.value.unwrap().as_path(), Path::new("/t"));
        assert_eq!(settings.psmux.value.unwrap().as_path(), Path::new("/p"));
        assert!(settings.old_psmux.value);
        assert_eq!(settings.size.value, Size { columns: 10, rows: 20 });
        assert_eq!(settings.grace.value, Duration::from_secs(60));
        assert!(settings.park.value);
    }

    #[cfg(unix)]
    #[test]
    fn every_variable_reaches_its_own_setting() {
        let variables = [
            ("LOOPMUX_MUX", "tmux"),
            ("LOOPMUX_SOCKET", "/s/ocket"),
            ("LOOPMUX_TMUX", "/t"),
            ("LOOPMUX_PSMUX", "/p"),
        ];
        let settings = House::new("", "").load(&Flags::default(), &variables).unwrap();
        assert_eq!(settings.backend.value, BackendChoice::Tmux);
        assert_eq!(settings.socket.value, Socket::Path("/s/ocket".into()));
        assert_eq!(settings.tmux.value.unwrap().as_path(), Path::new("/t"));
        assert_eq!(settings.psmux.value.unwrap().as_path(), Path::new("/p"));
    }

    #[test]
    fn every_flag_reaches_its_own_setting() {
        let flags = Flags {
            backend: Some(BackendChoice::Tmux),
            size: Some(Size { columns: 1, rows: 2 }),
            grace: Some(Duration::from_secs(9)),
            park: Some(false),
        };
        let settings = House::new("[run]\npark=true", "").load(&flags, &[]).unwrap();
        assert_eq!(settings.backend.value, BackendChoice::Tmux);
        assert_eq!(settings.size.value, Size { columns: 1, rows: 2 });
        assert_eq!(settings.grace.value, Duration::from_secs(9));
        assert_eq!(settings.park, Setting { value: false, source: Source::Flag });
    }

    #[test]
    fn a_bad_variable_is_named_with_its_value() {
        let error = House::new("", "").load(&Flags::default(), &[("LOOPMUX_SOCKET", "a/b")]).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("environment variable LOOPMUX_SOCKET=\"a/b\": "), "{error}");
        for name in ["LOOPMUX_MUX", "LOOPMUX_TMUX", "LOOPMUX_PSMUX"] {
            let error = House::new("", "").load(&Flags::default(), &[(name, "./x")]).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_bad_user_file_is_an_error_even_where_the_project_decides() {
        let error = House::new("[run]\npark=true", "[run]\nprak=true").load(&Flags::default(), &[]);
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("config.toml:2: unknown key \"run.prak\"; did you mean \"run.park\"?"),
            "{error}"
        );
    }

    #[test]
    fn a_project_that_is_gone_configures_nothing() {
        let house = House::new("", "");
        fs::remove_dir_all(house.dir.path().join("project")).unwrap();
        assert!(house.load(&Flags::default(), &[]).is_ok());
        // Nor does one that became a file.
        fs::write(house.dir.path().join("project"), "").unwrap();
        assert!(house.load(&Flags::default(), &[]).is_ok());
    }
}
