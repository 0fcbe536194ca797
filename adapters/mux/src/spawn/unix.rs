//! Executing a client on Unix.

use super::{Invocation, InvokeError, Reply, SpawnError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, ioctl_fionbio};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a killed client may take to be gone. One that is stuck in the kernel is left to it.
const AFTER_KILL: Duration = Duration::from_millis(500);

pub(super) fn run(invocation: &Invocation) -> Result<Reply, InvokeError> {
    let deadline = Instant::now() + invocation.deadline;
    let child = start(invocation)?;
    let lost = |source: io::Error| InvokeError::LostTrack { binary: invocation.binary.clone(), source };
    Talk::new(child, invocation).map_err(lost)?.follow(deadline).map_err(lost)
}

fn start(invocation: &Invocation) -> Result<Child, SpawnError> {
    let mut command = Command::new(&invocation.binary);
    command.args(&invocation.args).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if invocation.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
    for (name, value) in invocation.environment() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if let Some(dir) = &invocation.cwd {
        command.current_dir(dir);
    }
    isolate(&mut command);
    command.spawn().map_err(|source| explain(invocation, source))
}

/// Only the three standard streams reach the client, and none of our terminal's signals.
#[allow(unsafe_code)]
fn isolate(command: &mut Command) {
    let in_child = || {
        close_on_exec();
        // Fails only for a leader of a process group, which a child that was just forked is not.
        let _ = rustix::process::setsid();
        Ok(())
    };
    // SAFETY: between fork and exec it only makes system calls; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(in_child) };
}

/// Marks every descriptor from 3 on, so that the execution closes it. They cannot be closed here: one of them is
/// how the standard library reports a failed execution.
#[allow(unsafe_code)]
fn close_on_exec() {
    #[cfg(target_os = "linux")]
    {
        let cloexec = libc::CLOSE_RANGE_CLOEXEC;
        // SAFETY: the call takes three numbers and only sets a flag of our own descriptors.
        if unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, cloexec) } == 0 {
            return;
        }
    }
    // SAFETY: as above. A number without a descriptor gives an error that is ignored.
    let most = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    let most = if most < 0 { 1 << 16 } else { most.min(1 << 16) };
    for fd in 3..most {
        let Ok(fd) = libc::c_int::try_from(fd) else { return };
        // SAFETY: as above.
        unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFD);
            if flags >= 0 {
                libc::fcntl(fd, libc::F_SETFD, flags | libc::FD_CLOEXEC);
            }
        }
    }
}

fn explain(invocation: &Invocation, source: io::Error) -> SpawnError {
    let binary = invocation.binary.clone();
    if let Some(dir) = &invocation.cwd {
        // The system reports a directory that cannot be entered with the same words as a program.
        if let Err(source) = enterable(dir) {
            return SpawnError::Directory { dir: dir.clone(), source };
        }
    }
    match source.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NOTDIR) => SpawnError::NoProgram(binary),
        Some(
            Errno::ACCESS | Errno::PERM | Errno::NOEXEC | Errno::ISDIR | Errno::LOOP | Errno::NAMETOOLONG,
        ) => SpawnError::NotExecutable { binary, source },
        Some(Errno::TOOBIG) => SpawnError::TooLong(binary),
        _ => SpawnError::System { binary, source },
    }
}

fn enterable(dir: &std::path::Path) -> io::Result<()> {
    if !std::fs::metadata(dir)?.is_dir() {
        return Err(io::Error::from_raw_os_error(Errno::NOTDIR.raw_os_error()));
    }
    Ok(rustix::fs::access(dir, rustix::fs::Access::EXEC_OK)?)
}

/// A descriptor that becomes readable when the client ends.
struct EndSignal(OwnedFd);

impl EndSignal {
    fn of(child: &Child) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(fd) = super::linux::end_of(child) {
            return Ok(Self(fd));
        }
        Self::by_thread(child)
    }

    /// Where a process has no descriptor: a thread waits for the child without reaping it, so that its pid stays
    /// its own, and closes a pipe.
    fn by_thread(child: &Child) -> io::Result<Self> {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("a child without a process id"))?;
        let (read, write) = rustix::pipe::pipe()?;
        rustix::io::fcntl_setfd(&read, FdFlags::CLOEXEC)?;
        rustix::io::fcntl_setfd(&write, FdFlags::CLOEXEC)?;
        std::thread::Builder::new().name("client-end".to_owned()).spawn(move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
            drop(write);
        })?;
        Ok(Self(read))
    }
}

impl AsFd for EndSignal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// One output stream of the client.
struct Stream<R> {
    pipe: Option<R>,
    read: Vec<u8>,
    limit: usize,
}

impl<R: Read + AsFd> Stream<R> {
    fn new(pipe: Option<R>, limit: usize) -> io::Result<Self> {
        if let Some(pipe) = &pipe {
            ioctl_fionbio(pipe, true)?;
        }
        Ok(Self { pipe, read: Vec::new(), limit })
    }

    /// Reads what is there now. True if it is more than the bound.
    fn drain(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 16 << 10];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(n) if self.read.len() + n > self.limit => {
                    self.read.extend_from_slice(&buffer[..self.limit - self.read.len()]);
                    self.pipe = None;
                    return Ok(true);
                }
                Ok(n) => self.read.extend_from_slice(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(false)
    }
}

/// A started client, until its end.
struct Talk {
    child: Child,
    ended: EndSignal,
    stdin: Option<ChildStdin>,
    to_write: Vec<u8>,
    written: usize,
    out: Stream<std::process::ChildStdout>,
    err: Stream<std::process::ChildStderr>,
    reaped: bool,
}

impl Talk {
    fn new(mut child: Child, invocation: &Invocation) -> io::Result<Self> {
        let stdin = child.stdin.take();
        let out = Stream::new(child.stdout.take(), invocation.limit);
        let err = Stream::new(child.stderr.take(), invocation.limit);
        let ended = EndSignal::of(&child);
        match (out, err, ended) {
            (Ok(out), Ok(err), Ok(ended)) => {
                if let Some(stdin) = &stdin {
                    ioctl_fionbio(stdin, true)?;
                }
                let to_write = invocation.stdin.clone().unwrap_or_default();
                Ok(Self { child, ended, stdin, to_write, written: 0, out, err, reaped: false })
            }
            (Err(e), ..) | (_, Err(e), _) | (.., Err(e)) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(e)
            }
        }
    }

    fn follow(mut self, deadline: Instant) -> io::Result<Reply> {
        loop {
            self.feed();
            if self.out.drain()? || self.err.drain()? {
                return self.cut_short(false, true);
            }
            if let Some(status) = self.child.try_wait()? {
                self.reaped = true;
                // What it wrote before its end is in the pipes by now.
                let truncated = self.out.drain()? | self.err.drain()?;
                return Ok(self.reply(Some(status), false, truncated));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return self.cut_short(true, false);
            }
            self.sleep(left)?;
        }
    }

    /// Writes what fits. A client that ends without reading is judged by its reply, not by our failed write.
    fn feed(&mut self) {
        while let Some(stdin) = &mut self.stdin {
            match stdin.write(&self.to_write[self.written..]) {
                Ok(n) => self.written += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => self.stdin = None,
            }
            if self.written == self.to_write.len() {
                self.stdin = None;
            }
        }
    }

    fn sleep(&self, left: Duration) -> io::Result<()> {
        let streams = [
            (Some(self.ended.as_fd()), PollFlags::IN),
            (self.out.pipe.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (self.err.pipe.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (self.stdin.as_ref().map(AsFd::as_fd), PollFlags::OUT),
        ];
        let open = streams.into_iter().filter_map(|(fd, flags)| Some(PollFd::from_borrowed_fd(fd?, flags)));
        let mut fds: Vec<PollFd<'_>> = open.collect();
        let left = Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut fds, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn cut_short(mut self, timed_out: bool, truncated: bool) -> io::Result<Reply> {
        self.child.kill()?;
        let until = Instant::now() + AFTER_KILL;
        let mut status = self.child.try_wait()?;
        while status.is_none() && Instant::now() < until {
            let mut fds = [PollFd::from_borrowed_fd(self.ended.as_fd(), PollFlags::IN)];
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
            match poll(&mut fds, Some(&left)) {
                Ok(_) | Err(Errno::INTR) => status = self.child.try_wait()?,
                Err(e) => return Err(e.into()),
            }
        }
        self.reaped = status.is_some();
        if timed_out {
            let _ = self.out.drain();
            let _ = self.err.drain();
        }
        Ok(self.reply(status, timed_out, truncated))
    }

    fn reply(mut self, status: Option<ExitStatus>, timed_out: bool, truncated: bool) -> Reply {
        Reply {
            code: status.and_then(|s| s.code()),
            signal: status.and_then(|s| s.signal()),
            timed_out,
            truncated,
            stdout: std::mem::take(&mut self.out.read),
            stderr: std::mem::take(&mut self.err.read),
        }
    }
}

impl Drop for Talk {
    /// An error on our side must not leave a client behind.
    fn drop(&mut self) {
        if !self.reaped {
            let _ = self.child.kill();
            let _ = self.child.try_wait();
        }
    }
}

/// Waits for a child by the means that a system without process descriptors has.
#[cfg(test)]
pub(super) fn wait_by_thread(child: &Child) {
    let ended = EndSignal::by_thread(child).expect("a thread");
    let mut fds = [PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN)];
    poll(&mut fds, None).expect("poll");
}
