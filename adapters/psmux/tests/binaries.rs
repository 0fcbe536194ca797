//! Programs that are psmux, another version of it, or nothing of the kind.

#![cfg(unix)]

use loopmux_mux::{Multiplexer, Probe, ReplyClass};
use loopmux_psmux::Psmux;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

struct Lab(tempfile::TempDir);

impl Lab {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn program(&self, script: &str) -> PathBuf {
        let path = self.0.path().join("psmux");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        path
    }

    fn probe(&self, program: &Path) -> Probe {
        let guard = std::time::Duration::from_secs(60);
        Psmux::new(program, &self.0.path().join("data")).unwrap().with_deadlines(guard, guard).probe()
    }

    fn says(&self, version: &str) -> Probe {
        self.probe(&self.program(&format!("printf 'tmux {version}\\npsmux {version} (20aa1d7)\\n'")))
    }
}

#[test]
fn the_floor_is_usable_and_what_is_below_is_refused_with_the_reason() {
    let lab = Lab::new();
    let probe = lab.says("3.4.0");
    assert_eq!((probe.version.as_deref(), probe.refused), (Some("3.4.0"), None));
    for (version, reason) in
        [("3.3.8", "no options apart"), ("3.3.7", "end live servers"), ("3.x", "cannot tell how old")]
    {
        let trouble = lab.says(version).refused.expect(version);
        assert_eq!(trouble.class, ReplyClass::Incompatible, "{version}");
        assert!(trouble.said.contains(reason) && trouble.said.contains("3.4.0"), "{trouble}");
    }
}

#[test]
fn what_is_not_psmux_is_refused() {
    let lab = Lab::new();
    for script in ["echo tmux 3.4", "echo psmux", "exit 3", "true", "echo psmux 3.4.0; exit 1"] {
        let trouble = lab.probe(&lab.program(script)).refused.expect(script);
        assert!(trouble.said.contains("not psmux"), "{script}: {trouble}");
    }
    let missing = lab.probe(&lab.0.path().join("no-such"));
    assert!(missing.binary.is_none() && missing.refused.is_some());
}

#[test]
fn the_first_look_happens_where_nobody_lives() {
    let lab = Lab::new();
    let noted = lab.0.path().join("noted");
    let names = ["HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PSMUX_DATA_DIR"];
    let values = names.map(|name| format!("\"${name}\"")).join(" ");
    let script = format!(
        "printf '%s\\n' {values} > '{}'; [ -d \"$HOME\" ] && : > \"$HOME/x\"; echo psmux 3.4.0",
        noted.display()
    );
    assert_eq!(lab.probe(&lab.program(&script)).refused, None);
    let noted = std::fs::read_to_string(&noted).unwrap();
    let places: Vec<&str> = noted.lines().collect();
    assert_eq!(places.len(), names.len());
    assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
    assert!(Path::new(places[0]).is_absolute());
    assert!(!Path::new(places[0]).starts_with(lab.0.path()));
    assert_ne!(Some(places[0]), std::env::var("HOME").ok().as_deref());
    assert!(!Path::new(places[0]).exists(), "it was not thrown away");
    assert!(!lab.0.path().join("data").exists(), "the look made the data directory");
}

#[test]
fn a_persons_client_is_led_to_the_same_data_directory() {
    let lab = Lab::new();
    let data = lab.0.path().join("data");
    let psmux = Psmux::new("psmux", &data).unwrap();
    assert_eq!(psmux.environment(), [("PSMUX_DATA_DIR".into(), data.into_os_string())]);
    assert!(matches!(Psmux::new("psmux", Path::new("data")), Err(loopmux_psmux::EndpointError::Relative(_))));
}
