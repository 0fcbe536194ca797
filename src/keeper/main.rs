//! The small program of a window: `loopmux-keep keep <dir>`, and the parts that run beside it.

fn main() {
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    std::process::exit(loopmux::keeper::dispatch(&args).unwrap_or_else(loopmux::keeper::usage));
}
