//! Runs agent CLIs in windows of a terminal multiplexer, and knows what became of them.

use loopmux::{cli, keeper};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    // Where the small program of the windows is not installed beside this one, this one does its work.
    if let Some(code) = keeper::dispatch(&words) {
        return u8::try_from(code).unwrap_or(u8::MAX).into();
    }
    match cli::parse(words) {
        Ok(invocation) => cli::execute(&invocation),
        Err(answered) => answered,
    }
}
