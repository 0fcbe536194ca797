//! The size of files.

use crate::source::{Source, files};

/// The most lines that a file may have.
const MOST: usize = 600;

/// Files that may be longer, with the reason.
const LONGER: [(&str, &str); 1] =
    [("src/run/write.rs", "the writing half of the store: one type after the other, each with its locks")];

fn too_long(sources: &[Source], longer: &[(&str, &str)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for source in sources {
        let lines = source.text.lines().count();
        let listed = longer.iter().any(|(path, _)| *path == source.path);
        match (lines > MOST, listed) {
            (true, false) => wrong.push(format!("{}: {lines} lines, at most {MOST}", source.path)),
            (false, true) => wrong.push(format!("{}: is on the list and no longer needs it", source.path)),
            _ => {}
        }
    }
    wrong
}

#[test]
fn no_file_is_too_long() {
    assert_eq!(too_long(&files(&["."], ".rs"), &LONGER), Vec::<String>::new());
}

#[test]
fn a_planted_long_file_is_found() {
    let long = || Source::new("src/x.rs", &"\n".repeat(MOST + 1));
    let short = || Source::new("src/y.rs", &"\n".repeat(MOST));
    assert_eq!(too_long(&[long(), short()], &[]), [format!("src/x.rs: {} lines, at most {MOST}", MOST + 1)]);
    assert_eq!(too_long(&[long()], &[("src/x.rs", "a table")]), Vec::<String>::new());
    assert_eq!(too_long(&[short()], &[("src/y.rs", "a table")]).len(), 1);
}
