//! Building the program.

use crate::Failure;
use crate::json::Json;
use crate::shell::cargo;
use std::path::PathBuf;
use std::process::Stdio;

/// Builds `loopmux` and the keeper beside it, and says where.
pub(crate) fn loopmux(release: bool) -> Result<PathBuf, Failure> {
    let profile = if release { "release" } else { "dev" };
    println!("building loopmux ({profile}) ...");
    let output = cargo()
        .args(["build", "--bins", "--locked", "--profile", profile])
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| Failure::new(format!("cannot execute cargo build: {e}")))?;
    if !output.status.success() {
        return Err(Failure::new(format!("cargo build ended with {}", output.status)));
    }
    // The target directory may be anywhere; cargo says where the program went.
    let lines = String::from_utf8_lossy(&output.stdout);
    let built = lines.lines().filter_map(|line| Json::parse(line).ok());
    let path = built
        .filter(|m| m.text("target.name") == Some("loopmux"))
        .find_map(|m| m.text("executable").map(PathBuf::from));
    path.ok_or_else(|| Failure::new("cargo build did not say where it put loopmux"))
}
