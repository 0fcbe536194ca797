//! Names of mux sessions and windows. They tell a person what a window is, and prove nothing.

use loopmux_mux::SessionName;
use std::path::Path;

/// The mux session of a run: project, key, id.
pub fn run_session(project: &Path, key: &str, run: &str) -> SessionName {
    session(project, key, run)
}

/// The control session of a project.
pub fn control_session(project: &Path, key: &str) -> SessionName {
    session(project, key, "ctl")
}

fn session(project: &Path, key: &str, what: &str) -> SessionName {
    let folder = project.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = SessionName::sanitized(&folder, 20, "project");
    let name = format!("lm-{folder}-{}-{what}", key.get(..6).unwrap_or(key));
    SessionName::new(name).expect("made of safe parts, far below the limit")
}

/// A window, from any text.
pub fn window(text: &str) -> SessionName {
    SessionName::new(SessionName::sanitized(text, 30, "run")).expect("sanitized")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_projects_and_labels_give_safe_names() {
        let long = "x".repeat(300);
        for odd in ["a b", ".:", "#{pid}", "#(id)", "\u{e9}\u{1f980}", "-lead", "new\nline", "", &long] {
            let name = run_session(&Path::new("/p").join(odd), "0123456789abcdef", "20261129-160042-7f3a");
            assert!(
                name.as_str().starts_with("lm-") && name.as_str().ends_with("-012345-20261129-160042-7f3a")
            );
            window(odd);
        }
    }
}
