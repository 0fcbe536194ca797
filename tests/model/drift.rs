//! The functions that the model's steps stand for, each with a hash of its code. Whoever changes one reads the step
//! again, and then takes the new hash over.

use crate::source::{Source, View, closing, root};
use std::fmt::Write as _;
use std::path::PathBuf;

/// One line of the table: `file function step hash`.
struct Row {
    file: String,
    function: String,
    step: String,
    hash: String,
}

fn table() -> PathBuf {
    root().join("tests/model/drift.txt")
}

fn rows() -> Vec<Row> {
    let text = std::fs::read_to_string(table()).expect("the table is there");
    let rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [file, function, step, hash] = words[..] else { panic!("not a row: {line}") };
        Row { file: file.into(), function: function.into(), step: step.into(), hash: hash.into() }
    })
    .collect()
}

/// The byte spans of all functions, with their names, in a [`View::Code`]. One inside another comes after it.
pub(crate) fn functions(code: &str) -> Vec<(String, std::ops::Range<usize>)> {
    let bytes = code.as_bytes();
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if at > 0 && is_word(bytes[at - 1]) {
            continue;
        }
        let name: String = code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let body = code[at..].find(['{', ';']).map(|offset| at + offset);
        if let Some(open) = body.filter(|open| bytes[*open] == b'{' && !name.is_empty()) {
            found.push((name, at..closing(bytes, open) + 1));
        }
    }
    found
}

/// The code of a function without comments and white space; `name@2` is the second of that name in the file.
fn code_of(source: &Source, function: &str) -> Result<String, String> {
    let (name, nth) = function.split_once('@').unwrap_or((function, ""));
    let code = source.view_without_tests(View::Code);
    let spans: Vec<_> =
        functions(&code).into_iter().filter(|(n, _)| n == name).map(|(_, span)| span).collect();
    let span = match (spans.len(), nth.parse::<usize>()) {
        (0, _) => return Err(format!("{}: there is no function {name}", source.path)),
        (1, Err(_)) => &spans[0],
        (count, Err(_)) => return Err(format!("{}: there are {count} functions {name}", source.path)),
        (_, Ok(nth)) => spans.get(nth - 1).ok_or_else(|| format!("{}: no {function}", source.path))?,
    };
    let text = source.view_without_tests(View::CodeAndLiterals);
    Ok(text[span.clone()].split_whitespace().collect())
}

/// FNV-1a: what is wanted is a change, not a secret.
fn hash(code: &str) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in code.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

#[test]
fn no_function_that_a_step_stands_for_has_changed_unread() {
    let mut wrong = Vec::new();
    let mut anew = String::new();
    for row in rows() {
        let text = std::fs::read_to_string(root().join(&row.file)).unwrap_or_default();
        let now = code_of(&Source::new(&row.file, &text), &row.function).map(|code| hash(&code));
        match &now {
            Ok(now) if *now == row.hash => {}
            Ok(_) => wrong.push(format!(
                "{} of {} changed: read tests/model/{} again",
                row.function, row.file, row.step
            )),
            Err(why) => wrong.push(why.clone()),
        }
        let hash = now.unwrap_or_else(|_| row.hash.clone());
        writeln!(anew, "{} {} {} {hash}", row.file, row.function, row.step)
            .expect("a string takes everything");
    }
    if std::env::var_os("UPDATE_DRIFT").is_some() {
        let old = std::fs::read_to_string(table()).expect("the table is there");
        let head: String = old.lines().take_while(|l| l.starts_with('#')).map(|l| format!("{l}\n")).collect();
        std::fs::write(table(), head + &anew).expect("the table can be written");
        return;
    }
    assert!(
        wrong.is_empty(),
        "the model stands for the program as it was:\n{}\nDo its steps still do the same, in the same order? Change \
         them, or take the program's new form over with: UPDATE_DRIFT=1 cargo test -p loopmux-model drift",
        wrong.join("\n")
    );
}

#[test]
fn a_changed_line_is_noticed_and_a_changed_comment_is_not() {
    let of = |text: &str| hash(&code_of(&Source::new("x.rs", text), "f").unwrap());
    let plain = of("fn f() { g(); }\nfn h() {}");
    assert_eq!(plain, of("// why\nfn f() {\n    // because\n    g();\n}"));
    assert_ne!(plain, of("fn f() { g(); g(); }"));
    assert_ne!(plain, of("fn f() { g(\"x\"); }"));
    assert!(code_of(&Source::new("x.rs", "fn f() {} fn f() {}"), "f").is_err());
    assert!(code_of(&Source::new("x.rs", "fn f() {} fn f() { 1 }"), "f@2").is_ok());
}
