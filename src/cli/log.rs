//! What the program notes on standard error while it works.

use tracing_subscriber::EnvFilter;

/// Begins, with `LOOPMUX_LOG` as the filter, or with as much as `-v` asks for: warnings without it.
pub(super) fn begin(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "loopmux=info,loopmux_mux=info,warn",
        _ => "loopmux=trace,loopmux_mux=trace,info",
    };
    let asked = std::env::var("LOOPMUX_LOG").ok().filter(|asked| !asked.is_empty());
    let (filter, wrong) = match asked.as_deref().map(EnvFilter::try_new) {
        None => (EnvFilter::new(level), None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(e)) => (EnvFilter::new(level), Some(e)),
    };
    // A second one in the same process keeps the first.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .without_time()
        .try_init();
    if let (Some(asked), Some(e)) = (asked, wrong) {
        tracing::warn!("LOOPMUX_LOG={asked:?} is no filter, and not used: {e}; one is loopmux=debug");
    }
}
