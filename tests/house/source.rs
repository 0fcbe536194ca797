//! Rust sources, with comments, literals and test code taken out on demand.

use std::fs;
use std::path::{Path, PathBuf};

/// One file of the repository.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Its path from the root, with `/`.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// What of a source is looked at. What is not is blanked, so that every line keeps its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// No comments, no contents of literals.
    Code,
    /// No comments.
    CodeAndLiterals,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// The file without what a view leaves out.
    pub(crate) fn view(&self, view: View) -> String {
        blank(&self.text, view)
    }

    /// The same without items that only tests have.
    pub(crate) fn view_without_tests(&self, view: View) -> String {
        let code = blank(&self.text, View::Code);
        let mut bytes = blank(&self.text, view).into_bytes();
        for span in test_items(&code) {
            for byte in &mut bytes[span] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
        }
        String::from_utf8(bytes).expect("blanking whole items keeps UTF-8")
    }

    /// Whether the whole file belongs to tests.
    pub(crate) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "benches"))
    }
}

/// The line number of a byte, from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1
}

/// The repository's root: the package that asks may be one below it.
pub(crate) fn root() -> PathBuf {
    let mut dir = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    while !dir.join("Cargo.lock").exists() {
        assert!(dir.pop(), "no Cargo.lock above {}", env!("CARGO_MANIFEST_DIR"));
    }
    dir
}

/// Every file below the given directories whose name ends so. Build output and hidden directories are left out.
pub(crate) fn files(dirs: &[&str], end: &str) -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    let mut left: Vec<PathBuf> = dirs.iter().map(|dir| root.join(dir)).collect();
    while let Some(dir) = left.pop() {
        let entries = fs::read_dir(&dir).unwrap_or_else(|e| panic!("cannot list {}: {e}", dir.display()));
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    left.push(path);
                }
            } else if name.ends_with(end) {
                let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                found.push(Source { path: relative(&root, &path), text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!found.is_empty(), "no {end} below {dirs:?}");
    found
}

fn relative(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap();
    path.components().map(|c| c.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// Every Rust source of the program: what is shipped, without the tests' own files.
pub(crate) fn shipped() -> Vec<Source> {
    let mut sources = files(&["src", "adapters"], ".rs");
    sources.retain(|s| !s.is_test() && !s.path.contains("/examples/"));
    sources
}

fn blank(text: &str, view: View) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let (end, hide) = match piece(bytes, at) {
            Piece::Comment(end) => (end, true),
            Piece::Literal(end) => (end, view == View::Code),
            Piece::Other(end) => (end, false),
        };
        if hide {
            for byte in &mut out[at..end] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
        }
        at = end;
    }
    String::from_utf8(out).expect("blanking whole pieces keeps UTF-8")
}

/// A piece of source that starts at some byte, with its end.
enum Piece {
    Comment(usize),
    Literal(usize),
    Other(usize),
}

fn piece(b: &[u8], at: usize) -> Piece {
    let rest = &b[at..];
    if rest.starts_with(b"//") {
        return Piece::Comment(at + rest.iter().position(|c| *c == b'\n').unwrap_or(rest.len()));
    }
    if rest.starts_with(b"/*") {
        let (mut depth, mut i) = (0, 0);
        while i < rest.len() {
            if rest[i..].starts_with(b"/*") {
                depth += 1;
                i += 2;
            } else if rest[i..].starts_with(b"*/") {
                depth -= 1;
                i += 2;
                if depth == 0 {
                    break;
                }
            } else {
                i += 1;
            }
        }
        return Piece::Comment(at + i.min(rest.len()));
    }
    let in_word = at > 0 && is_word(b[at - 1]);
    if !in_word && let Some(end) = raw_string(rest) {
        return Piece::Literal(at + end);
    }
    if rest[0] == b'"' {
        let mut i = 1;
        while i < rest.len() && rest[i] != b'"' {
            i += if rest[i] == b'\\' { 2 } else { 1 };
        }
        return Piece::Literal(at + (i + 1).min(rest.len()));
    }
    if rest[0] == b'\'' {
        // A character is an escape, or one character and a quote; everything else is a lifetime.
        if rest.get(1) == Some(&b'\\') {
            let close = rest.iter().skip(3).position(|c| *c == b'\'').map_or(rest.len(), |p| p + 4);
            return Piece::Literal(at + close);
        }
        let width = rest.iter().skip(2).take_while(|c| **c & 0xc0 == 0x80).count() + 2;
        if rest.get(width) == Some(&b'\'') {
            return Piece::Literal(at + width + 1);
        }
    }
    Piece::Other(at + 1)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The length of a raw string that starts here.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let prefix = [&b"r"[..], b"br", b"cr"].into_iter().find(|p| rest.starts_with(p))?;
    let hashes = rest[prefix.len()..].iter().take_while(|c| **c == b'#').count();
    let start = prefix.len() + hashes;
    if rest.get(start) != Some(&b'"') {
        return None;
    }
    let close = [&b"\""[..], &vec![b'#'; hashes]].concat();
    let body = &rest[start + 1..];
    let end = body.windows(close.len()).position(|w| w == close).unwrap_or(body.len() - close.len());
    Some(start + 1 + end + close.len())
}

/// The spans of items under `#[cfg(test)]`, in a [`View::Code`].
fn test_items(code: &str) -> Vec<std::ops::Range<usize>> {
    let mut spans = Vec::new();
    for (start, marker) in code.match_indices("#[cfg(test)]") {
        let bytes = code.as_bytes();
        let mut at = start + marker.len();
        while at < bytes.len() && bytes[at] != b'{' && bytes[at] != b';' {
            at += 1;
        }
        let end = if bytes.get(at) == Some(&b'{') { closing(bytes, at) } else { at };
        spans.push(start..(end + 1).min(bytes.len()));
    }
    spans
}

/// The brace that closes the one at `open`, in a [`View::Code`].
pub(crate) fn closing(code: &[u8], open: usize) -> usize {
    let mut depth = 0;
    for (i, byte) in code.iter().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i;
        }
    }
    code.len()
}

const SAMPLE: &str = r###"//! doc "quoted"
use a::b; // trailing 'x
/* outer /* inner */ still */ fn f<'a>(x: &'a str) -> char { '"' }
const S: &str = "text // no comment \" more"; const R: &str = r#"raw " one"#;
const C: char = '\''; const D: char = 'é'; const N: &str = "é";
#[cfg(test)]
mod tests { fn g() { "in test"; } }
fn after() {}
"###;

#[test]
fn comments_and_literals_are_told_from_code() {
    let source = Source::new("src/x.rs", SAMPLE);
    let code = source.view(View::Code);
    assert_eq!(code.len(), SAMPLE.len());
    assert_eq!(code.lines().count(), SAMPLE.lines().count());
    for gone in ["doc", "quoted", "trailing", "inner", "still", "text", "more", "raw", "é", "in test"] {
        assert!(!code.contains(gone), "{gone} in {code}");
    }
    for kept in ["use a::b;", "fn f<'a>(x: &'a str)", "const R: &str =", "const N", "fn g()", "fn after()"] {
        assert!(code.contains(kept), "{kept} not in {code}");
    }
    let both = source.view(View::CodeAndLiterals);
    assert!(both.contains("no comment") && both.contains("raw \" one") && !both.contains("inner"));
}

#[test]
fn test_items_are_left_out_and_what_follows_is_not() {
    let code = Source::new("src/x.rs", SAMPLE).view_without_tests(View::CodeAndLiterals);
    assert!(!code.contains("in test") && code.contains("fn after()"));
    assert_eq!(line_of(&code, code.find("fn after").unwrap()), 8);
    let declared = Source::new("src/x.rs", "#[cfg(test)]\nmod tests;\nfn after() {}\n");
    assert!(declared.view_without_tests(View::Code).contains("fn after"));
}
