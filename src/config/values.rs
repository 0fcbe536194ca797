//! The types of single values, each read from text with an error that says what would be right.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A text that is no such value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} is no {what}: {why}")]
pub struct BadValue {
    /// What the value should have been.
    pub what: &'static str,
    /// The value.
    pub value: String,
    /// What is wrong, and what would be right.
    pub why: String,
}

impl BadValue {
    fn new(what: &'static str, value: &str, why: impl Into<String>) -> Self {
        Self { what, value: value.to_owned(), why: why.into() }
    }
}

/// Which backend to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BackendChoice {
    /// The one that this platform has.
    #[default]
    Auto,
    /// The tmux leaf.
    Tmux,
    /// The psmux leaf.
    Psmux,
}

impl BackendChoice {
    /// Every choice, in the order in which help texts name them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Tmux, Self::Psmux];

    /// The word that files, flags and the environment use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Tmux => "tmux",
            Self::Psmux => "psmux",
        }
    }
}

impl FromStr for BackendChoice {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let found = Self::ALL.into_iter().find(|choice| choice.as_str() == text);
        found.ok_or_else(|| BadValue::new("backend", text, "choose auto, tmux or psmux"))
    }
}

impl fmt::Display for BackendChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Which server of the multiplexer to use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Socket {
    /// The user's default server.
    #[default]
    Default,
    /// The server of that label, beside the default one.
    Name(String),
    /// The server that listens at that absolute path.
    Path(PathBuf),
}

impl Socket {
    /// The longest path of a socket, in bytes. The operating system's own limit is 108 with the terminator, and
    /// a multiplexer needs some of them while it binds.
    pub const MAX_PATH: usize = 100;
}

impl FromStr for Socket {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let bad = |why: String| Err(BadValue::new("socket", text, why));
        if text.is_empty() || text.contains('\0') {
            return bad("give a name, or an absolute path".to_owned());
        }
        if Path::new(text).is_absolute() {
            return match text.len() {
                n if n > Self::MAX_PATH => {
                    bad(format!("the path has {n} bytes, at most {} work", Self::MAX_PATH))
                }
                _ => Ok(Self::Path(PathBuf::from(text))),
            };
        }
        if text.contains('/') {
            return bad("a path must be absolute, a name has no /".to_owned());
        }
        if matches!(text, "." | "..") {
            return bad("that names a directory".to_owned());
        }
        Ok(Self::Name(text.to_owned()))
    }
}

impl fmt::Display for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Name(name) => f.write_str(name),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A program to execute: an absolute path, or a bare name to look for in `PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program(PathBuf);

impl Program {
    /// The path or bare name.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Takes a path from the environment, where it may be no text.
    ///
    /// # Errors
    /// It is empty, or relative with a separator: that would depend on where the command was typed.
    pub fn from_path(path: &Path) -> Result<Self, BadValue> {
        let bare = path.components().count() == 1 && path.file_name() == Some(path.as_os_str());
        if path.is_absolute() || bare {
            return Ok(Self(path.to_owned()));
        }
        Err(BadValue::new(
            "program",
            &path.to_string_lossy(),
            "give an absolute path, or a bare name that is in PATH",
        ))
    }
}

impl FromStr for Program {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        Self::from_path(Path::new(text))
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.display())
    }
}

/// The size of a window, in character cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    /// Columns.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
}

impl Size {
    /// The largest number of columns or rows.
    pub const MAX: u16 = 10_000;
}

impl Default for Size {
    fn default() -> Self {
        Self { columns: 200, rows: 50 }
    }
}

impl FromStr for Size {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let bad = || {
            let why = format!("write it like 200x50, each from 1 to {}", Self::MAX);
            BadValue::new("size", text, why)
        };
        let side = |digits: &str| {
            let plain = digits.bytes().all(|b| b.is_ascii_digit());
            digits.parse().ok().filter(|n| plain && (1..=Self::MAX).contains(n))
        };
        let (columns, rows) = text.split_once('x').ok_or_else(bad)?;
        Ok(Self { columns: side(columns).ok_or_else(bad)?, rows: side(rows).ok_or_else(bad)? })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.columns, self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_are_read_by_their_exact_word() {
        for choice in BackendChoice::ALL {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        let error = "Tmux".parse::<BackendChoice>().unwrap_err();
        assert_eq!(error.to_string(), "\"Tmux\" is no backend: choose auto, tmux or psmux");
    }

    #[cfg(unix)]
    #[test]
    fn a_socket_is_a_name_or_an_absolute_path() {
        assert_eq!("work".parse(), Ok(Socket::Name("work".into())));
        assert_eq!("/tmp/s".parse(), Ok(Socket::Path("/tmp/s".into())));
        let longest = format!("/{}", "s".repeat(Socket::MAX_PATH - 1));
        assert_eq!(longest.parse(), Ok(Socket::Path(longest.clone().into())));
        for bad in ["", "a/b", "./s", ".", "..", "a\0b", &format!("{longest}s")] {
            assert!(bad.parse::<Socket>().is_err(), "{bad:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_program_does_not_depend_on_the_current_directory() {
        for good in ["tmux", "/opt/bin/tmux", "tmux-3.4"] {
            assert_eq!(good.parse::<Program>().unwrap().as_path(), Path::new(good));
        }
        for bad in ["", "bin/tmux", "./tmux", "../tmux", ".", "..", "tmux/"] {
            assert!(bad.parse::<Program>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_size_is_columns_by_rows() {
        assert_eq!("200x50".parse(), Ok(Size::default()));
        assert_eq!(Size::default().to_string(), "200x50");
        assert_eq!("1x10000".parse(), Ok(Size { columns: 1, rows: 10_000 }));
        for bad in ["", "200", "x", "200x", "x50", "0x50", "200x0", "10001x50", "200X50", "+200x50", "2x3x4"]
        {
            assert!(bad.parse::<Size>().is_err(), "{bad:?}");
        }
    }
}
