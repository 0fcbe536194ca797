//! The dependencies: their licences, where they come from, how old a compiler may build them, and that there
//! is one lock file. Works without a network once the packages are there.

use crate::json::Json;
use crate::shell::{cargo, root, works};
use crate::spdx;
use crate::stage::{Outcome, run};
use std::path::{Path, PathBuf};

/// Packages that must be there in one version only: their types cross our own interfaces, or they are large.
const SINGLE: [&str; 11] = [
    "clap",
    "jiff",
    "libc",
    "rustix",
    "schemars",
    "serde",
    "serde_json",
    "signal-hook",
    "tempfile",
    "thiserror",
    "toml",
];

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks everything and prints what is wrong.
pub(crate) fn check() -> Outcome {
    let wrong = match metadata().and_then(|json| packages(&json)) {
        Ok(packages) => {
            println!("{} packages", packages.len());
            let mut wrong = problems(&packages);
            wrong.extend(lock_files(&root()));
            wrong
        }
        Err(e) => vec![e],
    };
    for line in &wrong {
        println!("{line}");
    }
    println!(
        "advisories: not looked at, their database is not part of the project; \
         `cargo deny check advisories` does it where there is a network"
    );
    if !wrong.is_empty() {
        return Outcome::Failed(format!("{} problems", wrong.len()));
    }
    if works("cargo", &["deny", "--version"]) {
        // The same policy, with its own eyes: `deny.toml`.
        return run(cargo()
            .args(["deny", "--offline", "--log-level", "error"])
            .args(["check", "licenses", "bans", "sources"]));
    }
    Outcome::Passed
}

struct Package {
    name: String,
    version: String,
    licence: Option<String>,
    source: Option<String>,
    rust: Option<String>,
}

fn metadata() -> Result<Json, String> {
    // The packages of every platform, whose licences count too, may not have been needed for a build yet.
    let fetched = cargo().args(["fetch", "--locked", "--quiet"]).status();
    if !matches!(fetched, Ok(status) if status.success()) {
        println!("cargo fetch did not work; going on with what is here");
    }
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .output()
        .map_err(|e| format!("cannot execute cargo metadata: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Json::parse(&String::from_utf8_lossy(&output.stdout)).map_err(|e| format!("cargo metadata: {e}"))
}

fn packages(metadata: &Json) -> Result<Vec<Package>, String> {
    let list = metadata.list("packages");
    if list.is_empty() {
        return Err("cargo metadata lists no package".to_owned());
    }
    let text = |package: &Json, key| package.text(key).map(str::to_owned);
    let package = |p: &Json| {
        Some(Package {
            name: text(p, "name")?,
            version: text(p, "version")?,
            licence: text(p, "license"),
            source: text(p, "source"),
            rust: text(p, "rust_version"),
        })
    };
    list.iter().map(|p| package(p).ok_or_else(|| "a package without a name or version".to_owned())).collect()
}

fn problems(packages: &[Package]) -> Vec<String> {
    let mut wrong = Vec::new();
    let ours = packages.iter().find(|p| p.name == "loopmux" && p.source.is_none());
    let floor = ours.and_then(|p| version(p.rust.as_deref()?));
    if floor.is_none() {
        wrong.push("loopmux itself has no rust-version".to_owned());
    }
    for package in packages {
        let Package { name, version: number, .. } = package;
        match package.licence.as_deref().map(spdx::allowed) {
            Some(Ok(true)) => {}
            Some(Ok(false)) => wrong.push(format!(
                "{name} {number}: licence {:?} is not allowed",
                package.licence.as_deref().unwrap_or_default()
            )),
            Some(Err(e)) => wrong.push(format!("{name} {number}: {e}")),
            None => wrong.push(format!("{name} {number}: has no licence expression")),
        }
        if let Some(source) = package.source.as_deref().filter(|source| *source != REGISTRY) {
            wrong.push(format!("{name} {number}: comes from {source}, only crates.io is allowed"));
        }
        let needs = package.rust.as_deref().and_then(version);
        if let (Some(needs), Some(floor)) = (needs, floor)
            && needs > floor
        {
            wrong.push(format!(
                "{name} {number}: needs Rust {}.{}, and loopmux promises {}.{}",
                needs.0, needs.1, floor.0, floor.1
            ));
        }
    }
    for single in SINGLE {
        let versions: Vec<_> = packages.iter().filter(|p| p.name == single).map(|p| &*p.version).collect();
        if versions.len() > 1 {
            wrong.push(format!("{single} is there more than once: {}", versions.join(", ")));
        }
    }
    wrong
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

/// One workspace has one lock file; a second one means a package that left it.
fn lock_files(root: &Path) -> Option<String> {
    let mut found = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(dir) = left.pop() {
        let entries = std::fs::read_dir(&dir).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
        let Ok(entries) = entries else {
            return Some(format!("cannot look for lock files in {}", dir.display()));
        };
        for entry in entries {
            let name = entry.file_name();
            let is_dir = entry.file_type().is_ok_and(|t| t.is_dir());
            if is_dir && name != "target" && !name.to_string_lossy().starts_with('.') {
                left.push(entry.path());
            } else if name == "Cargo.lock" {
                found.push(entry.path());
            }
        }
    }
    let shown =
        |paths: &[PathBuf]| paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ");
    (found != [root.join("Cargo.lock")]).then(|| format!("expected one lock file, found: {}", shown(&found)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, licence: Option<&str>, source: Option<&str>, rust: Option<&str>) -> Package {
        let own = |text: Option<&str>| text.map(str::to_owned);
        let version = "1.0.0".to_owned();
        Package { name: name.into(), version, licence: own(licence), source: own(source), rust: own(rust) }
    }

    fn ours() -> Package {
        package("loopmux", Some("MIT OR Apache-2.0"), None, Some("1.89"))
    }

    #[test]
    fn a_good_set_has_no_problems() {
        let good = [ours(), package("serde", Some("MIT"), Some(REGISTRY), Some("1.60"))];
        assert_eq!(problems(&good), Vec::<String>::new());
    }

    #[test]
    fn each_kind_of_problem_is_found() {
        let git = Some("git+https://example.org/x#1");
        for (planted, part) in [
            (
                package("x", Some("GPL-3.0-only"), Some(REGISTRY), None),
                "licence \"GPL-3.0-only\" is not allowed",
            ),
            (package("x", None, Some(REGISTRY), None), "has no licence expression"),
            (package("x", Some("see LICENSE"), Some(REGISTRY), None), "is no licence expression"),
            (package("x", Some("MIT"), git, None), "only crates.io is allowed"),
            (package("x", Some("MIT"), Some(REGISTRY), Some("1.90.0")), "needs Rust 1.90"),
        ] {
            let found = problems(&[ours(), planted]);
            assert!(found.len() == 1 && found[0].contains(part), "{part}: {found:?}");
        }
        let twice = || package("serde", Some("MIT"), Some(REGISTRY), None);
        assert!(problems(&[ours(), twice(), twice()])[0].contains("serde is there more than once"));
        let floorless = package("loopmux", Some("MIT"), None, None);
        assert!(problems(&[floorless])[0].contains("no rust-version"));
    }

    #[test]
    fn metadata_without_packages_is_no_answer() {
        assert!(packages(&Json::parse(r#"{"packages":[]}"#).unwrap()).is_err());
        assert!(packages(&Json::parse(r#"{"packages":[{"name":"x"}]}"#).unwrap()).is_err());
    }

    #[test]
    fn a_second_lock_file_is_found() {
        let dir = std::env::temp_dir().join(format!("xtask-locks-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("sub/target")).unwrap();
        std::fs::write(dir.join("Cargo.lock"), "").unwrap();
        std::fs::write(dir.join("sub/target/Cargo.lock"), "").unwrap();
        let one = lock_files(&dir);
        std::fs::write(dir.join("sub/Cargo.lock"), "").unwrap();
        let two = lock_files(&dir);
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(one, None);
        assert!(two.unwrap().contains("sub/Cargo.lock"));
    }
}
