//! The multiplexer around this window, as its launch file names it.

use crate::run::files::MuxRef;
use loopmux_mux::Multiplexer;
use loopmux_tmux::{Endpoint, Tmux};
use std::path::PathBuf;

/// The backend of that name, on that socket.
///
/// # Errors
/// There is no such backend in this program, or its socket cannot be used.
pub(super) fn open(mux: &MuxRef) -> Result<Box<dyn Multiplexer>, String> {
    match mux.backend.as_str() {
        "tmux" => {
            let endpoint = Endpoint::Path(PathBuf::from(mux.socket.as_os_str()));
            let tmux = Tmux::new(mux.binary.as_os_str(), &endpoint).map_err(|e| e.to_string())?;
            Ok(Box::new(tmux))
        }
        other => Err(format!("this program knows no multiplexer {other:?}")),
    }
}
