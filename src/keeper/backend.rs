//! The multiplexer around this window, as its launch file names it.

use crate::run::files::MuxRef;
use loopmux_mux::Multiplexer;
use loopmux_psmux::Psmux;
#[cfg(unix)]
use loopmux_tmux::{Endpoint, Tmux};
use std::path::Path;

/// The backend of that name, on that socket.
///
/// # Errors
/// There is no such backend in this program, or its socket cannot be used.
pub(in crate::keeper) fn open(mux: &MuxRef) -> Result<Box<dyn Multiplexer>, String> {
    match mux.backend.as_str() {
        #[cfg(unix)]
        "tmux" => {
            let endpoint = Endpoint::Path(Path::new(mux.socket.as_os_str()).to_owned());
            let tmux = Tmux::new(mux.binary.as_os_str(), &endpoint).map_err(|e| e.to_string())?;
            Ok(Box::new(tmux))
        }
        "psmux" => {
            let data = Path::new(mux.socket.as_os_str());
            Ok(Box::new(Psmux::new(mux.binary.as_os_str(), data).map_err(|e| e.to_string())?))
        }
        other => Err(format!("this program knows no multiplexer {other:?}")),
    }
}
