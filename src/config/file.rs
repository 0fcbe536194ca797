//! Reading one configuration file.

use super::duration::parse_duration;
use super::values::{BackendChoice, Program, Size, Socket};
use super::{BadDuration, ConfigError};
use serde::Deserialize;
use std::fmt::Display;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Every key that a configuration file may have, with its table.
pub const KEYS: [(&str, &[&str]); 2] =
    [("mux", &["backend", "socket", "tmux", "psmux", "old-psmux"]), ("run", &["size", "grace", "park"])];

/// The largest configuration file, in bytes.
const READ_LIMIT: u64 = 1 << 20;

/// A wrong place in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct LineError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there, and what would be right.
    pub what: String,
}

/// A value with the line that it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lined<T> {
    /// The value.
    pub value: T,
    /// Its line, counted from 1.
    pub line: usize,
}

/// What one file says; what it does not mention is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layer {
    pub backend: Option<Lined<BackendChoice>>,
    pub socket: Option<Lined<Socket>>,
    pub tmux: Option<Lined<Program>>,
    pub psmux: Option<Lined<Program>>,
    pub old_psmux: Option<Lined<bool>>,
    pub size: Option<Lined<Size>>,
    pub grace: Option<Lined<Duration>>,
    pub park: Option<Lined<bool>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Raw {
    mux: RawMux,
    run: RawRun,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawMux {
    backend: Option<Spanned<String>>,
    socket: Option<Spanned<String>>,
    tmux: Option<Spanned<String>>,
    psmux: Option<Spanned<String>>,
    #[serde(rename = "old-psmux")]
    old_psmux: Option<Spanned<bool>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawRun {
    size: Option<Spanned<String>>,
    grace: Option<Spanned<String>>,
    park: Option<Spanned<bool>>,
}

/// Reads a file. A file that is not there says nothing; one that cannot be read is an error.
pub(super) fn read(path: &Path) -> Result<Layer, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    let text = match open(path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Layer::default()),
        // The directory itself is gone, or a file stands where it was.
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => return Ok(Layer::default()),
        Err(e) => return Err(unreadable(e)),
    };
    parse(&text).map_err(|at| ConfigError::File { path: path.to_owned(), at })
}

fn open(path: &Path) -> io::Result<String> {
    // A named pipe would block the open, and everything that is no regular file has no end to read to.
    if !path.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut text = String::new();
    let n = std::fs::File::open(path)?.take(READ_LIMIT + 1).read_to_string(&mut text)?;
    if n as u64 > READ_LIMIT {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is larger than {READ_LIMIT} bytes"),
        ));
    }
    Ok(text)
}

/// The key whose value begins at an offset.
fn key_at(root: &DeTable<'_>, at: usize) -> Option<String> {
    root.iter().find_map(|(table, values)| {
        let DeValue::Table(values) = values.get_ref() else { return None };
        let (key, _) = values.iter().find(|(_, value)| value.span().start == at)?;
        Some(format!("{}.{}", table.get_ref(), key.get_ref()))
    })
}

/// Reads the text of a file.
pub(super) fn parse(text: &str) -> Result<Layer, LineError> {
    let raw_error = |e: toml::de::Error| LineError {
        line: line_of(text, e.span().map_or(0, |span| span.start)),
        what: e.message().to_owned(),
    };
    let table = DeTable::parse(text).map_err(raw_error)?;
    known_keys(text, table.get_ref())?;
    let raw: Raw = toml::from_str(text).map_err(|e| {
        let key = e.span().and_then(|span| key_at(table.get_ref(), span.start));
        let LineError { line, what } = raw_error(e);
        LineError { line, what: key.map_or(what.clone(), |key| format!("{key}: {what}")) }
    })?;
    let switch = |v: Spanned<bool>| Lined { line: line_of(text, v.span().start), value: v.into_inner() };
    Ok(Layer {
        backend: typed(text, "mux.backend", raw.mux.backend)?,
        socket: typed(text, "mux.socket", raw.mux.socket)?,
        tmux: typed(text, "mux.tmux", raw.mux.tmux)?,
        psmux: typed(text, "mux.psmux", raw.mux.psmux)?,
        old_psmux: raw.mux.old_psmux.map(switch),
        size: typed(text, "run.size", raw.run.size)?,
        grace: typed::<Length>(text, "run.grace", raw.run.grace)?
            .map(|Lined { value, line }| Lined { value: value.0, line }),
        park: raw.run.park.map(switch),
    })
}

struct Length(Duration);

impl FromStr for Length {
    type Err = BadDuration;
    fn from_str(text: &str) -> Result<Self, BadDuration> {
        parse_duration(text).map(Self)
    }
}

fn typed<T: FromStr>(
    text: &str,
    key: &str,
    raw: Option<Spanned<String>>,
) -> Result<Option<Lined<T>>, LineError>
where
    T::Err: Display,
{
    let Some(raw) = raw else { return Ok(None) };
    let line = line_of(text, raw.span().start);
    match raw.get_ref().parse() {
        Ok(value) => Ok(Some(Lined { value, line })),
        Err(why) => Err(LineError { line, what: format!("{key}: {why}") }),
    }
}

/// Finds the first key that no table of ours has. The deserializer refuses it too, without the nearest one.
fn known_keys(text: &str, table: &DeTable<'_>) -> Result<(), LineError> {
    let unknown = |at: usize, path: &str| LineError {
        line: line_of(text, at),
        what: format!("unknown key {path:?}; {}", nearest(path)),
    };
    for (name, value) in table {
        let Some((_, keys)) = KEYS.iter().find(|(table, _)| table == name.get_ref()) else {
            return Err(unknown(name.span().start, name.get_ref()));
        };
        let DeValue::Table(inner) = value.get_ref() else {
            let what = format!("{:?} is a table: write [{}]", name.get_ref(), name.get_ref());
            return Err(LineError { line: line_of(text, name.span().start), what });
        };
        if let Some((key, _)) = inner.iter().find(|(key, _)| !keys.contains(&key.get_ref().as_ref())) {
            return Err(unknown(key.span().start, &format!("{}.{}", name.get_ref(), key.get_ref())));
        }
    }
    Ok(())
}

/// The known key that was probably meant, in words.
fn nearest(path: &str) -> String {
    let last = path.rsplit('.').next().unwrap_or(path);
    let mut all = Vec::new();
    for (table, keys) in KEYS {
        all.push(table.to_owned());
        all.extend(keys.iter().map(|key| format!("{table}.{key}")));
    }
    let score = |known: &str| {
        let known_last = known.rsplit('.').next().unwrap_or(known);
        let whole = strsim::normalized_damerau_levenshtein(path, known);
        // The right key in the wrong table, and a misspelt one in the right table, both count.
        whole.max(strsim::normalized_damerau_levenshtein(last, known_last) - 0.01)
    };
    let best = all.iter().map(|known| (score(known), known)).max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((close, known)) if close > 0.6 => format!("did you mean {known:?}?"),
        _ => format!(
            "known keys: {}",
            all.into_iter().filter(|k| k.contains('.')).collect::<Vec<_>>().join(", ")
        ),
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|b| **b == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = r#"
[mux]
backend = "tmux"
socket = "work"
tmux = "/opt/tmux"
psmux = "psmux"
old-psmux = true

[run]
size = "120x40"
grace = "250ms"
park = true
"#;

    fn error(text: &str) -> (usize, String) {
        let e = parse(text).expect_err(text);
        (e.line, e.what)
    }

    #[cfg(unix)]
    #[test]
    fn every_key_is_read_with_its_line() {
        let layer = parse(FULL).unwrap();
        assert_eq!(layer.backend, Some(Lined { value: BackendChoice::Tmux, line: 3 }));
        assert_eq!(layer.socket, Some(Lined { value: Socket::Name("work".into()), line: 4 }));
        assert_eq!(layer.tmux.map(|l| l.value.to_string()), Some("/opt/tmux".into()));
        assert_eq!(layer.psmux.map(|l| l.value.to_string()), Some("psmux".into()));
        assert_eq!(layer.size, Some(Lined { value: Size { columns: 120, rows: 40 }, line: 10 }));
        assert_eq!(layer.grace, Some(Lined { value: Duration::from_millis(250), line: 11 }));
        assert_eq!(layer.park, Some(Lined { value: true, line: 12 }));
        assert_eq!(layer.old_psmux, Some(Lined { value: true, line: 7 }));
    }

    #[test]
    fn the_list_of_keys_is_the_one_that_is_read() {
        let mut mentioned = 0;
        for (table, keys) in KEYS {
            for key in keys {
                assert!(
                    FULL.contains(&format!("\n{key} = ")),
                    "{table}.{key} is in the list and not in the file"
                );
                mentioned += 1;
            }
        }
        assert_eq!(FULL.matches(" = ").count(), mentioned);
    }

    #[test]
    fn an_empty_file_says_nothing() {
        assert_eq!(parse("").unwrap(), Layer::default());
        assert_eq!(parse("# nothing\n[mux]\n[run]\n").unwrap(), Layer::default());
    }

    #[test]
    fn an_unknown_key_names_its_line_and_the_nearest_known_one() {
        for (text, line, part) in [
            ("[mux]\n\nbackand = 'tmux'", 3, "unknown key \"mux.backand\"; did you mean \"mux.backend\"?"),
            ("[mxu]\nbackend = 'tmux'", 1, "unknown key \"mxu\"; did you mean \"mux\"?"),
            ("[mux]\ngrace = '5s'", 2, "unknown key \"mux.grace\"; did you mean \"run.grace\"?"),
            ("backend = 'tmux'", 1, "unknown key \"backend\"; did you mean \"mux.backend\"?"),
            ("mux.sokcet = 'a'", 1, "unknown key \"mux.sokcet\"; did you mean \"mux.socket\"?"),
            ("[run]\nsize = '1x1'\n[quux]\n", 3, "unknown key \"quux\"; known keys: mux.backend, "),
        ] {
            let (at, what) = error(text);
            assert_eq!(at, line, "{text}");
            assert!(what.starts_with(part), "{text}: {what}");
        }
    }

    #[test]
    fn a_wrong_value_names_its_line_and_what_would_be_right() {
        for (text, line, part) in [
            (
                "[mux]\nbackend = 'screen'",
                2,
                "mux.backend: \"screen\" is no backend: choose auto, tmux or psmux",
            ),
            ("[mux]\nsocket = 'a/b'", 2, "mux.socket: \"a/b\" is no socket"),
            ("[mux]\ntmux = './tmux'", 2, "mux.tmux: \"./tmux\" is no program"),
            ("[run]\n\n\nsize = 'big'", 4, "run.size: \"big\" is no size: write it like 200x50"),
            ("[run]\ngrace = '5'", 2, "run.grace: \"5\" is no length of time: 5 has no unit"),
            ("[run]\ngrace = 5", 2, "run.grace: invalid type"),
            ("[run]\npark = 'yes'", 2, "run.park: invalid type"),
            ("mux = 1", 1, "\"mux\" is a table: write [mux]"),
        ] {
            let (at, what) = error(text);
            assert_eq!(at, line, "{text}");
            assert!(what.contains(part), "{text}: {what}");
        }
    }

    #[test]
    fn broken_toml_names_its_line() {
        assert_eq!(error("[mux]\nbackend = \n").0, 2);
        assert_eq!(error("[run]\nsize = '1x1'\nsize = '2x2'\n").0, 3);
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_what_is_not_there_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("loopmux.toml");
        assert_eq!(read(&path).unwrap(), Layer::default());
        std::fs::write(&path, [b'[', 0xff]).unwrap();
        assert!(matches!(read(&path), Err(ConfigError::Unreadable { .. })));
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(read(&path).unwrap_err().to_string().ends_with("it is no regular file"));
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, "\nwhat = 1\n").unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}:2: unknown key \"what\"", path.display())), "{error}");
        std::fs::write(&path, " ".repeat(READ_LIMIT as usize + 1)).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("larger than"));
    }
}
