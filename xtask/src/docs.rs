//! `cargo xtask docs`: writes the documents that are made from the program.

use crate::Failure;
use crate::build::loopmux;
use crate::json::Json;
use crate::shell::root;
use std::fs;
use std::process::Command;

/// Writes one JSON schema for each report into `docs/schema`, and removes those that are no longer there.
pub(crate) fn run(words: &[String]) -> Result<(), Failure> {
    let [] = crate::switches(words, [])?;
    let program = loopmux(false)?;
    let output = Command::new(&program).arg("schema").output();
    let output = output.map_err(|e| Failure::new(format!("cannot execute {}: {e}", program.display())))?;
    if !output.status.success() {
        return Err(Failure::new(format!("loopmux schema ended with {}", output.status)));
    }
    let schemas = Json::parse(&String::from_utf8_lossy(&output.stdout))
        .map_err(|e| Failure::new(format!("loopmux schema: {e}")))?;
    let Json::Object(schemas) = schemas else {
        return Err(Failure::new("loopmux schema printed no object"));
    };
    let dir = root().join("docs/schema");
    let failed = |e| Failure::new(format!("cannot write {}: {e}", dir.display()));
    if dir.try_exists().map_err(failed)? {
        fs::remove_dir_all(&dir).map_err(failed)?;
    }
    fs::create_dir_all(&dir).map_err(failed)?;
    for (name, schema) in &schemas {
        fs::write(dir.join(format!("{name}.json")), format!("{}\n", schema.pretty())).map_err(failed)?;
    }
    println!("{} schemas in docs/schema", schemas.len());
    Ok(())
}
