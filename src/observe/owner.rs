//! Whose a mux session or window is (rule L13): only its tags and a record here tell, never its name.

use crate::run::files::{LaunchFile, name};
use crate::run::id::RunId;
use crate::run::store::{ProjectRead, RunRead};
use crate::verdict::Observation;
use loopmux_mux::Tags;
use schemars::JsonSchema;
use serde::Serialize;

/// Whose a mux session or window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ownership {
    /// It carries our state id and our project, and its token is in a record here.
    Ours,
    /// It carries our state id and another project.
    OtherProject,
    /// It carries nothing of loopmux.
    Untagged,
    /// It carries another state id, or ours without a record here.
    Foreign,
}

/// Tells whose something with these tags is. `state` is the state directory's id, `key` the project's.
pub fn ownership(
    tags: Option<&Tags>,
    state: &Observation<String>,
    key: &str,
    project: Option<&ProjectRead>,
) -> Observation<Ownership> {
    let Some(tags) = tags else { return Observation::Known(Ownership::Untagged) };
    match state {
        Observation::Unknown(why) => return Observation::Unknown(why.clone()),
        Observation::Absent => return Observation::Known(Ownership::Foreign),
        Observation::Known(id) if *id != tags.state => return Observation::Known(Ownership::Foreign),
        Observation::Known(_) => {}
    }
    if tags.project != key {
        return Observation::Known(Ownership::OtherProject);
    }
    let Some(project) = project else { return Observation::Known(Ownership::Foreign) };
    match recorded(project, tags) {
        Observation::Known(()) => Observation::Known(Ownership::Ours),
        Observation::Absent => Observation::Known(Ownership::Foreign),
        Observation::Unknown(why) => Observation::Unknown(why),
    }
}

/// Whether exactly these tags are in a record of the project.
fn recorded(project: &ProjectRead, tags: &Tags) -> Observation<()> {
    if tags.run == "ctl" {
        let control = project.control();
        return found(control.map(|c| c.sessions.iter().any(|s| s.tags == *tags)));
    }
    let Ok(id) = RunId::parse(&tags.run) else { return Observation::Absent };
    match project.run(&id) {
        Observation::Known(run) => recorded_in(&run, tags),
        // A window that outlived its run.
        Observation::Absent => found(project.control().map(|c| c.windows.iter().any(|w| w.tags == *tags))),
        Observation::Unknown(why) => Observation::Unknown(why),
    }
}

fn found(answer: Observation<bool>) -> Observation<()> {
    match answer {
        Observation::Known(true) => Observation::Known(()),
        Observation::Known(false) | Observation::Absent => Observation::Absent,
        Observation::Unknown(why) => Observation::Unknown(why),
    }
}

/// Looks through the launch files of a run's attempts and engine windows. A match counts at once; without one,
/// whatever could not be read leaves it open.
fn recorded_in(run: &RunRead, tags: &Tags) -> Observation<()> {
    let mut unread = None;
    for below in [name::ATTEMPTS, name::ENGINE] {
        let dirs = match run.dir().sub(below).and_then(|d| Ok((d.names()?, d))) {
            Ok(found) => found,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => {
                unread = Some(format!("cannot read {}: {e}", run.dir().path().join(below).display()));
                continue;
            }
        };
        for dir in dirs.0.iter().filter_map(|n| n.to_str()) {
            match dirs.1.sub(dir).map(|d| d.read_json::<LaunchFile>(name::LAUNCH)) {
                Ok(Observation::Known(launch)) if launch.tags == *tags => return Observation::Known(()),
                Ok(Observation::Known(_) | Observation::Absent) => {}
                Ok(Observation::Unknown(why)) => unread = Some(why.to_string()),
                Err(e) => unread = Some(format!("cannot read {}: {e}", dirs.1.path().join(dir).display())),
            }
        }
    }
    unread.map_or(Observation::Absent, Observation::unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::files::{ControlEntry, ControlFile, SCHEMA};
    use crate::run::id::mint_token;
    use crate::run::write::WriteStore;
    use loopmux_mux::SessionName;

    #[test]
    fn only_tags_with_a_record_are_ours() {
        let dir = tempfile::tempdir().unwrap();
        let store = WriteStore::open(dir.path(), true).unwrap();
        let project = store.project(dir.path()).unwrap();
        let (state, key) = (store.state_id().to_owned(), project.key().to_owned());
        let tags =
            |token: String| Tags { token, project: key.clone(), run: "ctl".to_owned(), state: state.clone() };
        let ours = tags(mint_token());
        let entry = ControlEntry {
            backend: "b".to_owned(),
            socket: "/s".into(),
            tags: ours.clone(),
            name: SessionName::new("n").unwrap(),
        };
        let control = project.control().unwrap();
        control.write(&ControlFile { schema: SCHEMA, sessions: vec![entry], windows: Vec::new() }).unwrap();
        let read = store.read();
        let of = |tags: Option<&Tags>| ownership(tags, &read.state_id(), &key, read.project(&key).known());
        assert_eq!(of(None), Observation::Known(Ownership::Untagged));
        assert_eq!(of(Some(&ours)), Observation::Known(Ownership::Ours));
        for foreign in [
            tags(mint_token()),
            Tags { state: "0".repeat(16), ..ours.clone() },
            Tags { run: "20260101-000000-0000".to_owned(), ..ours.clone() },
        ] {
            assert_eq!(of(Some(&foreign)), Observation::Known(Ownership::Foreign), "{foreign:?}");
        }
        let other = Tags { project: "0".repeat(16), ..ours.clone() };
        assert_eq!(of(Some(&other)), Observation::Known(Ownership::OtherProject));
        std::fs::write(project.dir().path().join("control.json"), "torn").unwrap();
        assert!(matches!(of(Some(&ours)), Observation::Unknown(_)));
    }
}
