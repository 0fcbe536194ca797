//! Executing a client on Windows.
//!
//! Its output goes into files that vanish when they are closed: a server that the client starts may keep its streams, and
//! what a client has written before its end is in a file by then, whoever else has it open.

pub mod child;

use super::{Invocation, InvokeError, Reply, SpawnError};
use child::{Child, Start, Streams};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsHandle;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_BAD_EXE_FORMAT, ERROR_DIRECTORY, ERROR_EXE_MACHINE_TYPE_MISMATCH,
    ERROR_FILE_NOT_FOUND, ERROR_FILENAME_EXCED_RANGE, ERROR_PATH_NOT_FOUND,
};
use windows_sys::Win32::Storage::FileSystem::{
    DELETE, FILE_ATTRIBUTE_TEMPORARY, FILE_FLAG_DELETE_ON_CLOSE, FILE_GENERIC_READ, FILE_GENERIC_WRITE,
};
use windows_sys::Win32::System::Threading::{
    CREATE_BREAKAWAY_FROM_JOB, CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW,
};

/// How long a killed client may take to be gone. One that is stuck in the kernel is left to it.
const AFTER_KILL: Duration = Duration::from_millis(500);
/// How often the length of the output is looked at: only a client that says too much is found by this.
const TURN: Duration = Duration::from_millis(100);

pub(super) fn run(invocation: &Invocation) -> Result<Reply, InvokeError> {
    let deadline = Instant::now() + invocation.deadline;
    let system = |source| SpawnError::System { binary: invocation.binary.clone(), source };
    let input = match &invocation.stdin {
        Some(bytes) => filled(bytes),
        None => File::open("NUL"),
    }
    .map_err(system)?;
    let (out, err) = (passing().map_err(system)?, passing().map_err(system)?);
    let child = start(invocation, &input, &out, &err)?;
    let lost = |source: io::Error| InvokeError::LostTrack { binary: invocation.binary.clone(), source };
    let (ended, timed_out) = follow(&child, [&out, &err], invocation.limit, deadline).map_err(lost)?;
    let (stdout, more) = said(out, invocation.limit).map_err(lost)?;
    let (stderr, still_more) = said(err, invocation.limit).map_err(lost)?;
    Ok(Reply { code: ended, signal: None, timed_out, truncated: more || still_more, stdout, stderr })
}

/// Waits for the client's end. Its exit code, if it ended by itself, and whether the deadline passed.
fn follow(
    child: &Child,
    streams: [&File; 2],
    limit: usize,
    deadline: Instant,
) -> io::Result<(Option<i32>, bool)> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if let Some(code) = child.wait(Some(left.min(TURN)))? {
            return Ok((Some(code), false));
        }
        let timed_out = left.is_zero();
        let mut too_long = false;
        for stream in streams {
            too_long |= stream.metadata()?.len() > limit as u64;
        }
        if timed_out || too_long {
            child.kill()?;
            child.wait(Some(AFTER_KILL))?;
            return Ok((None, timed_out));
        }
    }
}

fn start(invocation: &Invocation, input: &File, out: &File, err: &File) -> Result<Child, SpawnError> {
    let binary = &invocation.binary;
    if let Some(dir) = &invocation.cwd {
        // The system reports a directory that cannot be entered in more than one way.
        match std::fs::metadata(dir) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                let source = io::Error::from_raw_os_error(ERROR_DIRECTORY.cast_signed());
                return Err(SpawnError::Directory { dir: dir.clone(), source });
            }
            Err(source) => return Err(SpawnError::Directory { dir: dir.clone(), source }),
        }
    }
    let mut vars: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    for (name, value) in invocation.environment() {
        vars.retain(|(known, _)| !same_name(known, name));
        vars.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    }
    let start = |more| Start {
        program: binary,
        args: &invocation.args,
        vars: &vars,
        cwd: invocation.cwd.as_deref(),
        streams: Some(Streams { input: input.as_handle(), out: out.as_handle(), err: err.as_handle() }),
        inherited: &[],
        job: None,
        flags: CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP | more,
    };
    // A server that it starts outlives this process, and the job of a window around it, where that lets it go.
    let outside = start(CREATE_BREAKAWAY_FROM_JOB).spawn();
    let denied = |e: &io::Error| e.raw_os_error() == Some(ERROR_ACCESS_DENIED.cast_signed());
    let started = match outside {
        Err(e) if denied(&e) => start(0).spawn(),
        other => other,
    };
    started.map_err(|source| match source.raw_os_error().map(i32::cast_unsigned) {
        Some(ERROR_FILE_NOT_FOUND | ERROR_PATH_NOT_FOUND) => SpawnError::NoProgram(binary.clone()),
        Some(ERROR_ACCESS_DENIED | ERROR_BAD_EXE_FORMAT | ERROR_EXE_MACHINE_TYPE_MISMATCH) => {
            SpawnError::NotExecutable { binary: binary.clone(), source }
        }
        Some(ERROR_FILENAME_EXCED_RANGE) => SpawnError::TooLong(binary.clone()),
        _ if source.kind() == io::ErrorKind::ArgumentListTooLong => SpawnError::TooLong(binary.clone()),
        _ => SpawnError::System { binary: binary.clone(), source },
    })
}

/// Names of variables are the same here in capitals and small letters.
fn same_name(a: &OsStr, b: &OsStr) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// A file that nobody else finds, and that goes with its last handle.
fn passing() -> io::Result<File> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let dir = std::env::temp_dir();
    loop {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("loopmux-{}-{n}.tmp", std::process::id()));
        let made = File::options()
            .access_mode(FILE_GENERIC_READ | FILE_GENERIC_WRITE | DELETE)
            .create_new(true)
            .write(true)
            .custom_flags(FILE_FLAG_DELETE_ON_CLOSE | FILE_ATTRIBUTE_TEMPORARY)
            .open(path);
        match made {
            // Of an earlier process of this number.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other,
        }
    }
}

fn filled(bytes: &[u8]) -> io::Result<File> {
    let mut file = passing()?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// What is in a stream, and whether that is more than the bound.
fn said(mut stream: File, limit: usize) -> io::Result<(Vec<u8>, bool)> {
    stream.rewind()?;
    let mut bytes = Vec::new();
    stream.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    let more = bytes.len() > limit;
    bytes.truncate(limit);
    Ok((bytes, more))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANG: Duration = Duration::from_secs(60);

    fn cmd(script: &str) -> Invocation {
        Invocation::new("cmd.exe").args(["/d", "/c", script]).deadline(HANG)
    }

    #[test]
    fn tells_code_and_streams_apart() {
        let reply = cmd("echo out& echo err>&2& exit 3").run().unwrap();
        assert_eq!((reply.code, reply.timed_out, reply.truncated), (Some(3), false, false));
        assert_eq!((reply.out().trim(), reply.err().trim()), ("out", "err"));
    }

    #[test]
    fn a_client_is_ended_at_the_deadline() {
        let reply =
            Invocation::new("ping.exe").args(["-n", "600", "127.0.0.1"]).deadline(Duration::from_millis(500));
        let reply = reply.run().unwrap();
        assert_eq!((reply.code, reply.timed_out), (None, true));
    }

    #[test]
    fn the_names_of_a_run_never_reach_the_client() {
        let mut invocation = cmd("set").env("KEPT", "1");
        for name in super::super::NEVER_INHERITED {
            invocation = invocation.env(name, "leaked");
        }
        let out = invocation.run().unwrap().out();
        assert!(out.contains("KEPT=1"), "{out}");
        assert!(!out.contains("leaked"), "{out}");
    }

    #[test]
    fn what_cannot_be_executed_says_why() {
        let failed = |i: Invocation| match i.run() {
            Err(InvokeError::NotStarted(e)) => e,
            other => panic!("{other:?}"),
        };
        assert!(matches!(failed(Invocation::new(r"C:\no\such.exe")), SpawnError::NoProgram(_)));
        let nowhere = cmd("exit").cwd(r"C:\no\such\directory");
        assert!(matches!(failed(nowhere), SpawnError::Directory { .. }));
    }
}
