//! What every command needs to know: where it stands, what was configured, and how it speaks.

use super::args::Global;
use super::error::{CliError, ErrorCode};
use super::output::Output;
use crate::config::{self, ConfigError, Env, Flags, Project, Setting, Settings};
use crate::run::id::{RunId, project_key};
use crate::run::store::{ProjectRead, ReadStore, Resolved, RunRead, resolve};
use crate::run::write::WriteStore;
use crate::verdict::Observation;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// The surroundings of one command. Each part is read when it is first asked for, so that a command which does
/// not need the configuration works beside a broken one.
#[derive(Debug)]
pub struct Context {
    global: Global,
    out: Output,
    env: Env,
    project: OnceCell<Project>,
    settings: OnceCell<Settings>,
}

impl Context {
    /// The surroundings of a command with these global options, in this process.
    pub fn new(command: &'static str, global: Global) -> Self {
        let out = Output::new(command, global.json, global.color, global.quiet);
        Self { global, out, env: Env::of_this_process(), project: OnceCell::new(), settings: OnceCell::new() }
    }

    /// How the command speaks.
    pub fn out(&self) -> &Output {
        &self.out
    }

    /// The options of every command.
    pub fn global(&self) -> &Global {
        &self.global
    }

    /// The environment that the command was given.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The project.
    ///
    /// # Errors
    /// It cannot be told which one.
    pub fn project(&self) -> Result<&Project, CliError> {
        if let Some(project) = self.project.get() {
            return Ok(project);
        }
        let cwd = std::env::current_dir()
            .map_err(|source| ConfigError::Project { path: PathBuf::from("."), source })?;
        let found = config::project(self.global.project.as_deref(), &self.env, &cwd)?;
        Ok(self.project.get_or_init(|| found))
    }

    /// The project's root.
    ///
    /// # Errors
    /// As [`Context::project`].
    pub fn root(&self) -> Result<&Path, CliError> {
        Ok(&self.project()?.root)
    }

    /// The project's key in the state directory.
    ///
    /// # Errors
    /// As [`Context::project`].
    pub fn key(&self) -> Result<String, CliError> {
        Ok(project_key(self.root()?))
    }

    /// What is configured, with the options of every command.
    ///
    /// # Errors
    /// A file or a variable has something in it that cannot be used.
    pub fn settings(&self) -> Result<&Settings, CliError> {
        if let Some(settings) = self.settings.get() {
            return Ok(settings);
        }
        let read = self.settings_with(Flags::default())?;
        Ok(self.settings.get_or_init(|| read))
    }

    /// The same, with options of one command over it.
    ///
    /// # Errors
    /// As [`Context::settings`].
    pub fn settings_with(&self, flags: Flags) -> Result<Settings, CliError> {
        let flags = Flags { backend: self.global.mux, ..flags };
        Ok(Settings::load_with(self.root()?, &flags, &self.env)?)
    }

    /// Where the state directory is; it need not be there.
    ///
    /// # Errors
    /// The variable's path is relative, or there is no home.
    pub fn state_dir(&self) -> Result<Setting<PathBuf>, CliError> {
        Ok(config::state_dir(&self.env)?)
    }

    /// The state directory, for reading.
    ///
    /// # Errors
    /// As [`Context::state_dir`].
    pub fn store(&self) -> Result<ReadStore, CliError> {
        Ok(ReadStore::new(&self.state_dir()?.value))
    }

    /// The state directory, for writing; made if need be.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn write_store(&self) -> Result<WriteStore, CliError> {
        Ok(WriteStore::open(&self.state_dir()?.value, false)?)
    }

    /// This project's runs; `None` where it never had any.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn runs(&self) -> Result<Option<ProjectRead>, CliError> {
        match self.store()?.project(&self.key()?) {
            Observation::Known(project) => Ok(Some(project)),
            Observation::Absent => Ok(None),
            Observation::Unknown(why) => Err(CliError::new(ErrorCode::Io, why.to_string())),
        }
    }

    /// The run that a reference means, in this project.
    ///
    /// # Errors
    /// As [`Context::resolve`], or the run's directory cannot be opened.
    pub fn run(&self, reference: &str) -> Result<(ProjectRead, RunRead), CliError> {
        let (project, id) = self.resolve(reference)?;
        match project.run(&id) {
            Observation::Known(run) => Ok((project, run)),
            Observation::Absent => Err(self.gone(reference)),
            Observation::Unknown(why) => Err(CliError::new(ErrorCode::Io, why.to_string())),
        }
    }

    /// The error for a run that was removed between two looks.
    pub fn gone(&self, reference: &str) -> CliError {
        self.not_found(reference, &[])
    }

    /// The id that a reference means, in this project.
    ///
    /// # Errors
    /// [`ErrorCode::Usage`] for what can be no reference, [`ErrorCode::NotFound`], [`ErrorCode::Ambiguous`] with
    /// the candidates, or the state directory cannot be read.
    pub fn resolve(&self, reference: &str) -> Result<(ProjectRead, RunId), CliError> {
        check_reference(reference)?;
        let Some(project) = self.runs()? else { return Err(self.not_found(reference, &[])) };
        match resolve(&project, reference) {
            Resolved::One(id) => Ok((project, id)),
            Resolved::None => {
                let known = project.run_ids().known().cloned().unwrap_or_default();
                Err(self.not_found(reference, &names(&project, &known)))
            }
            Resolved::Ambiguous(ids) => Err(ambiguous(reference, &names(&project, &ids))),
            Resolved::Unknown(why) => {
                Err(CliError::new(ErrorCode::Io, format!("cannot list the runs: {why}")))
            }
        }
    }

    fn not_found(&self, reference: &str, known: &[(RunId, Option<String>)]) -> CliError {
        let root = self.root().map(|r| r.display().to_string()).unwrap_or_default();
        let error = if reference == "@last" {
            CliError::new(ErrorCode::NotFound, format!("the project {root} has no runs"))
                .hint("begin one with: loopmux run -- CMD")
        } else {
            let error = CliError::new(
                ErrorCode::NotFound,
                format!("no run {} in the project {root}", super::page::shown(reference)),
            );
            match nearest(reference, known) {
                Some(near) => {
                    error.hint(format!("did you mean {}?", super::page::shown(&near))).detail("nearest", near)
                }
                None => error.hint("see: loopmux list, loopmux list --all-projects"),
            }
        };
        error.detail("reference", reference)
    }
}

/// Why a word can be no RUN, whatever runs there are; `None` if it can be one.
pub(super) fn not_a_reference(word: &str) -> Option<&'static str> {
    match word {
        "" => Some("it is empty"),
        "." | ".." => Some("that names a directory"),
        w if w.contains(['/', '\\']) => Some("it has a separator in it"),
        _ => None,
    }
}

pub(super) fn check_reference(reference: &str) -> Result<(), CliError> {
    let Some(why) = not_a_reference(reference) else { return Ok(()) };
    Err(CliError::new(
        ErrorCode::Usage,
        format!("{} can be no RUN: {why}", super::page::shown(&format!("{reference:?}"))),
    )
    .hint("a RUN is an id, a unique beginning or end of one, a run's name, or @last"))
}

fn names(project: &ProjectRead, ids: &[RunId]) -> Vec<(RunId, Option<String>)> {
    let name =
        |id: &RunId| project.run(id).known().and_then(|r| r.file().known().and_then(|f| f.name.clone()));
    ids.iter().map(|id| (id.clone(), name(id))).collect()
}

fn ambiguous(reference: &str, candidates: &[(RunId, Option<String>)]) -> CliError {
    let list: Vec<serde_json::Value> =
        candidates.iter().map(|(id, name)| serde_json::json!({ "id": id.as_str(), "name": name })).collect();
    let mut error = CliError::new(
        ErrorCode::Ambiguous,
        format!("{} means {} runs", super::page::shown(reference), candidates.len()),
    )
    .hint("say which by its id")
    .detail("reference", reference)
    .detail("candidates", list);
    for (id, name) in candidates {
        let name = name.as_deref().map(|n| format!("  {}", super::page::shown(n))).unwrap_or_default();
        error = error.note(format!("{id}{name}"));
    }
    error
}

/// The id or name that was probably meant.
fn nearest(reference: &str, known: &[(RunId, Option<String>)]) -> Option<String> {
    let words = known.iter().flat_map(|(id, name)| {
        [Some(id.short().to_owned()), Some(id.as_str().to_owned()), name.clone()].into_iter().flatten()
    });
    words
        .map(|word| (strsim::normalized_damerau_levenshtein(reference, &word), word))
        .filter(|(close, _)| *close > 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_no_reference_is_a_usage_error() {
        for bad in ["", ".", "..", "a/b", "/", "a\\b"] {
            let error = check_reference(bad).unwrap_err();
            assert_eq!((error.code, error.exit()), (ErrorCode::Usage, 2), "{bad:?}");
        }
        for good in ["@last", "7f3a", "a b", "-", "caf\u{e9}", "..."] {
            assert!(check_reference(good).is_ok(), "{good:?}");
        }
    }
}
