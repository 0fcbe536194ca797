//! Reads recorded replies of a multiplexer, one JSON object a line, and prints the class of each.
//!
//! A line has the fields `mux`, `query`, `rc` (`null` if the client did not exit by itself), `timed_out`, `stdout`
//! and `stderr`; others are ignored. What cannot be read is `failed`, and says why on standard error.
#![allow(clippy::print_stderr, reason = "a program of its own")]

use loopmux_mux::{ReplyClass, Said};
use serde::Deserialize;
use std::io::{self, BufRead, Write};

#[derive(Deserialize)]
struct Line {
    mux: String,
    query: String,
    rc: Option<i64>,
    timed_out: Option<bool>,
    stdout: Option<String>,
    stderr: Option<String>,
}

fn class_of(bytes: &[u8]) -> Result<ReplyClass, String> {
    let line: Line = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    let said = Said {
        timed_out: line.timed_out.unwrap_or(false),
        // Any code beyond the usual range is not 0, and that is all that counts.
        code: line.rc.map(|rc| i32::try_from(rc).unwrap_or(i32::MAX)),
        stdout: line.stdout.as_deref().unwrap_or_default(),
        stderr: line.stderr.as_deref().unwrap_or_default(),
    };
    match line.mux.as_str() {
        #[cfg(unix)]
        "tmux" => Ok(loopmux_tmux::classify(&line.query, said)),
        "psmux" => Ok(loopmux_psmux::classify(&line.query, said)),
        other => Err(format!("no backend of the name {other:?}")),
    }
}

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut input = io::stdin().lock();
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        if input.read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let class = class_of(&bytes).unwrap_or_else(|why| {
            eprintln!("line {number}: {why}");
            ReplyClass::Failed
        });
        match writeln!(out, "{class}") {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => break,
            written => written?,
        }
    }
    out.flush()
}
