//! Writing, reading and unpacking the file itself.

use super::content::{Content, Item, digest, is_secret, permissions};
use super::{ArchiveError, drain};
use crate::at::{self, Open};
use crate::run::dir::Dir;
use crate::run::id::RunId;
use crate::run::store::RunRead;
use crate::run::tree::{Entry, Kind, Node, descend};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, Write};
use std::path::{Component, Path, PathBuf};
use tar::{Archive, Builder, EntryType, Header};

/// Writes a run. What it holds must be what was seen in `entries`.
pub(super) fn write(
    file: &File,
    path: &Path,
    run: &RunRead,
    runs: &Dir,
    entries: &[Entry],
) -> Result<(), ArchiveError> {
    if let Some(special) = entries.iter().find(|e| e.kind == Kind::Special) {
        return Err(ArchiveError::Special(run.dir().path().join(&special.path)));
    }
    let failed = |source| ArchiveError::File { what: "write", path: path.to_owned(), source };
    let top = PathBuf::from(run.id().as_str());
    let mut tar = Builder::new(GzEncoder::new(BufWriter::new(file), Compression::default()));
    let root = Node::root(run.dir(), runs)?;
    let mut head = header(&root.entry()?, EntryType::Directory, 0);
    tar.append_data(&mut head, &top, io::empty()).map_err(failed)?;
    descend::<ArchiveError>(&root, &mut |node, entry| {
        if is_secret(&entry.path) {
            return Ok(());
        }
        let name = top.join(&entry.path);
        match entry.kind {
            Kind::Directory => tar
                .append_data(&mut header(entry, EntryType::Directory, 0), name, io::empty())
                .map_err(failed),
            Kind::Link => {
                let target = node.read_link(entry)?;
                tar.append_link(&mut header(entry, EntryType::Symlink, 0), name, target).map_err(failed)
            }
            Kind::File => {
                use io::Read;
                let content = node.open_file(entry)?.take(entry.len);
                tar.append_data(&mut header(entry, EntryType::Regular, entry.len), name, content)
                    .map_err(failed)
            }
            Kind::Special => Err(ArchiveError::Special(run.dir().path().join(&entry.path))),
        }
    })?;
    let buffer = tar.into_inner().and_then(GzEncoder::finish).map_err(failed)?;
    buffer.into_inner().map_err(|e| failed(e.into_error()))?.flush().map_err(failed)
}

fn header(entry: &Entry, kind: EntryType, len: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(len);
    header.set_mode(permissions(entry));
    header.set_uid(entry.uid.into());
    header.set_gid(at::my_group().into());
    header.set_mtime(u64::try_from(entry.modified.0).unwrap_or_default());
    header
}

/// One thing of an archive.
struct Found<'a, 'f> {
    path: PathBuf,
    kind: EntryType,
    mode: u32,
    modified: i64,
    entry: tar::Entry<'a, GzDecoder<BufReader<&'f mut File>>>,
}

/// Calls `each` for everything in an archive, and reads it to its end.
fn walk(
    file: &mut File,
    path: &Path,
    id: &RunId,
    mut each: impl FnMut(Found<'_, '_>) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    let failed = |source| ArchiveError::File { what: "read", path: path.to_owned(), source };
    let foreign = |what: String| ArchiveError::Foreign { path: path.to_owned(), what };
    file.rewind().map_err(failed)?;
    let mut archive = Archive::new(GzDecoder::new(BufReader::new(file)));
    for entry in archive.entries().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let named = entry.path().map_err(failed)?.into_owned();
        let below = below(&named, id)
            .ok_or_else(|| foreign(format!("{}, which is not below {id}", named.display())))?;
        let (kind, header) = (entry.header().entry_type(), entry.header());
        if !matches!(kind, EntryType::Directory | EntryType::Regular | EntryType::Symlink) {
            return Err(foreign(format!(
                "{}, which is no file, directory or symbolic link",
                named.display()
            )));
        }
        let mode = header.mode().map_err(failed)? & 0o777;
        let modified = i64::try_from(header.mtime().map_err(failed)?).unwrap_or_default();
        each(Found { path: below, kind, mode, modified, entry })?;
    }
    // The checksum stands behind everything.
    drain(archive.into_inner()).map_err(failed)?;
    Ok(())
}

/// The path below the run's directory; `None` for one that leads elsewhere.
fn below(named: &Path, id: &RunId) -> Option<PathBuf> {
    let mut parts = named.components();
    if parts.next() != Some(Component::Normal(id.as_str().as_ref())) {
        return None;
    }
    let rest = parts.as_path();
    rest.components().all(|part| matches!(part, Component::Normal(_))).then(|| rest.to_owned())
}

/// What is in an archive.
pub(super) fn read(file: &mut File, path: &Path, id: &RunId) -> Result<Content, ArchiveError> {
    let failed = |source| ArchiveError::File { what: "read", path: path.to_owned(), source };
    let mut content = Content::default();
    walk(file, path, id, |mut found| {
        let item = match found.kind {
            EntryType::Directory => Item::Directory(found.mode | 0o700),
            EntryType::Symlink => Item::Link(target(&found, path)?.into_os_string()),
            _ => {
                let (len, sha256) = digest(&mut found.entry).map_err(failed)?;
                Item::File { mode: found.mode, len, sha256 }
            }
        };
        let shown = found.path.display().to_string();
        if content.add(found.path, item) {
            Ok(())
        } else {
            Err(ArchiveError::Foreign { path: path.to_owned(), what: format!("{shown} twice") })
        }
    })?;
    Ok(content)
}

fn target(found: &Found<'_, '_>, path: &Path) -> Result<PathBuf, ArchiveError> {
    let link = found.entry.link_name().ok().flatten();
    link.map(std::borrow::Cow::into_owned).ok_or_else(|| ArchiveError::Foreign {
        path: path.to_owned(),
        what: format!("{}, a symbolic link that leads nowhere", found.path.display()),
    })
}

/// Unpacks an archive into an empty directory. Nothing that is there is opened through a link or replaced.
pub(super) fn unpack(file: &mut File, path: &Path, id: &RunId, into: &Dir) -> Result<(), ArchiveError> {
    let mut directories: Vec<(PathBuf, u32, i64)> = Vec::new();
    walk(file, path, id, |mut found| {
        let failed = |e: io::Error| ArchiveError::File {
            what: "unpack",
            path: into.path().join(&found.path),
            source: e,
        };
        if found.path.as_os_str().is_empty() {
            directories.push((PathBuf::new(), found.mode, found.modified));
            return Ok(());
        }
        let (parent, name) = parent(into, &found.path).map_err(failed)?;
        match found.kind {
            EntryType::Directory => {
                parent.make(&name).map_err(failed)?;
                directories.push((found.path.clone(), found.mode, found.modified));
            }
            EntryType::Symlink => {
                let target = target(&found, path)?;
                parent.symlink(&target, &name).map_err(failed)?;
            }
            _ => {
                let mut out = parent.file(&name, Open::New).map_err(failed)?;
                io::copy(&mut found.entry, &mut out).map_err(failed)?;
                at::finish(&out, found.mode, found.modified).map_err(failed)?;
                out.sync_all().map_err(failed)?;
            }
        }
        Ok(())
    })?;
    // From the innermost out: whatever is made in a directory changes its time.
    for (below, mode, modified) in directories.into_iter().rev() {
        let failed =
            |e: io::Error| ArchiveError::File { what: "unpack", path: into.path().join(&below), source: e };
        let dir = directory(into, &below).map_err(failed)?;
        dir.finish(mode | 0o700, modified).map_err(failed)?;
        dir.sync().map_err(failed)?;
    }
    Ok(())
}

/// The open directory that a path is in, and the path's last name.
fn parent(root: &Dir, path: &Path) -> io::Result<(at::Handle, std::ffi::OsString)> {
    let name = path.file_name().unwrap_or_default().to_owned();
    Ok((directory(root, path.parent().unwrap_or(Path::new("")))?, name))
}

fn directory(root: &Dir, path: &Path) -> io::Result<at::Handle> {
    let mut dir = root.at().sub(".".as_ref())?;
    for part in path.components() {
        dir = dir.sub(part.as_os_str())?;
    }
    Ok(dir)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn id() -> RunId {
        RunId::parse("20260101-000000-7f3a").unwrap()
    }

    fn run(top: &Path) -> (Dir, RunRead) {
        let at = top.join(id().as_str());
        std::fs::create_dir_all(at.join("attempts/1/events")).unwrap();
        std::fs::write(at.join("run.json"), "{}").unwrap();
        std::fs::write(at.join("attempts/1/env.json"), "SECRET=1").unwrap();
        std::fs::write(at.join("attempts/1").join("long-".repeat(40)), vec![7; 100_000]).unwrap();
        symlink("/etc/passwd", at.join("attempts/1/link")).unwrap();
        std::fs::set_permissions(at.join("run.json"), std::fs::Permissions::from_mode(0o640)).unwrap();
        let parent = Dir::open(top).unwrap();
        let dir = parent.sub(id().as_str()).unwrap();
        (parent, RunRead::at(id(), dir))
    }

    fn packed(parent: &Dir, run: &RunRead, at: &Path) -> File {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(at).unwrap();
        let entries = crate::run::tree::survey(run.dir(), parent).unwrap();
        write(&file, at, run, parent, &entries).unwrap();
        file
    }

    #[test]
    fn what_was_packed_is_what_is_unpacked_and_no_secret_is_in_it() {
        let top = tempfile::tempdir().unwrap();
        let (parent, run) = run(top.path());
        let at = top.path().join("a.tar.gz");
        let mut file = packed(&parent, &run, &at);
        let content = read(&mut file, &at, &id()).unwrap();
        assert_eq!(content.difference(&Content::of_tree(run.dir(), &parent).unwrap()), None);
        let into = parent.make("into").unwrap();
        unpack(&mut file, &at, &id(), &into).unwrap();
        assert_eq!(content.difference(&Content::of_tree(&into, &parent).unwrap()), None);
        assert!(into.path().join("attempts/1/env.json").symlink_metadata().is_err());
        assert_eq!(
            std::fs::read_link(into.path().join("attempts/1/link")).unwrap(),
            Path::new("/etc/passwd")
        );
        let mode = into.path().join("run.json").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[test]
    fn a_damaged_archive_is_an_error_wherever_it_is_damaged() {
        let top = tempfile::tempdir().unwrap();
        let (parent, run) = run(top.path());
        let at = top.path().join("a.tar.gz");
        drop(packed(&parent, &run, &at));
        let whole = std::fs::read(&at).unwrap();
        let sound = read(&mut File::open(&at).unwrap(), &at, &id()).unwrap();
        for cut in [0, 1, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&at, &whole[..cut]).unwrap();
            assert!(read(&mut File::open(&at).unwrap(), &at, &id()).is_err(), "cut at {cut}");
        }
        for flip in (20..whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            bytes[flip] ^= 0x10;
            std::fs::write(&at, &bytes).unwrap();
            if let Ok(content) = read(&mut File::open(&at).unwrap(), &at, &id()) {
                assert_eq!(content, sound, "a flip at {flip} changed the content and went unnoticed");
            }
        }
    }

    /// An archive with one entry that the tar crate itself would refuse to write.
    fn hostile(at: &Path, name: &str, kind: EntryType, link: Option<&str>) -> File {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        header.set_mode(0o644);
        header.set_mtime(0);
        let raw = header.as_gnu_mut().unwrap();
        raw.name[..name.len()].copy_from_slice(name.as_bytes());
        if let Some(link) = link {
            raw.linkname[..link.len()].copy_from_slice(link.as_bytes());
        }
        header.set_cksum();
        let file = File::options().read(true).write(true).create(true).truncate(true).open(at).unwrap();
        let mut tar = Builder::new(GzEncoder::new(&file, Compression::fast()));
        tar.append(&header, io::empty()).unwrap();
        tar.into_inner().unwrap().finish().unwrap();
        file
    }

    #[test]
    fn what_leads_out_of_the_run_is_refused() {
        let top = tempfile::tempdir().unwrap();
        let parent = Dir::open(top.path()).unwrap();
        let at = top.path().join("a.tar.gz");
        let into = parent.make("into").unwrap();
        let inside = format!("{}/x", id());
        let out = format!("{}/../../x", id());
        for (name, kind, link) in [
            ("/etc/x", EntryType::Regular, None),
            ("../x", EntryType::Regular, None),
            ("other/x", EntryType::Regular, None),
            (out.as_str(), EntryType::Regular, None),
            (inside.as_str(), EntryType::Link, Some("/etc/passwd")),
            (inside.as_str(), EntryType::Fifo, None),
            (inside.as_str(), EntryType::Char, None),
            (inside.as_str(), EntryType::Block, None),
        ] {
            let mut file = hostile(&at, name, kind, link);
            assert!(
                matches!(read(&mut file, &at, &id()), Err(ArchiveError::Foreign { .. })),
                "{name} {kind:?}"
            );
            assert!(unpack(&mut file, &at, &id(), &into).is_err(), "{name} {kind:?}");
        }
        assert_eq!(std::fs::read_dir(into.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_link_in_an_archive_is_not_written_through() {
        let top = tempfile::tempdir().unwrap();
        let parent = Dir::open(top.path()).unwrap();
        let at = top.path().join("a.tar.gz");
        std::fs::create_dir(top.path().join("outside")).unwrap();
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&at).unwrap();
        let mut tar = Builder::new(GzEncoder::new(&file, Compression::fast()));
        let mut head = Header::new_gnu();
        head.set_entry_type(EntryType::Symlink);
        head.set_size(0);
        tar.append_link(&mut head, format!("{}/d", id()), top.path().join("outside")).unwrap();
        let mut head = Header::new_gnu();
        head.set_size(1);
        tar.append_data(&mut head, format!("{}/d/x", id()), &b"x"[..]).unwrap();
        tar.into_inner().unwrap().finish().unwrap();
        let into = parent.make("into").unwrap();
        let mut file = file;
        assert!(unpack(&mut file, &at, &id(), &into).is_err());
        assert_eq!(std::fs::read_dir(top.path().join("outside")).unwrap().count(), 0);
    }
}
