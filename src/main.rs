//! Runs agent CLIs in windows of a terminal multiplexer, and knows what became of them.

use loopmux::cli;
use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::parse(std::env::args_os()) {
        Ok(invocation) => cli::execute(&invocation),
        Err(answered) => answered,
    }
}
