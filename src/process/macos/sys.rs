//! The system's calls, each in one small function.

use rustix::io::Errno;
use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::mem::{MaybeUninit, size_of};

/// What one look at a process gave.
#[derive(Debug)]
pub(super) enum Look<T> {
    /// This.
    Seen(T),
    /// The kernel has no such process, or only its zombie.
    Ended,
    /// The process is or may be there, and the look failed.
    Refused(String),
}

/// What the kernel knows of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Info {
    pub(super) parent: u32,
    pub(super) uid: u32,
    /// Microseconds since the Unix epoch.
    pub(super) start: u64,
}

/// Looks at a process. A zombie is not found.
#[allow(unsafe_code)]
pub(super) fn info(pid: u32) -> Look<Info> {
    let mut out = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let size = size_of::<libc::proc_bsdinfo>() as c_int;
    let Ok(number) = c_int::try_from(pid) else { return Look::Ended };
    // SAFETY: the buffer is as large as is said, and of plain numbers.
    let got = unsafe {
        libc::proc_pidinfo(number, libc::PROC_PIDTBSDINFO, 0, out.as_mut_ptr().cast::<c_void>(), size)
    };
    if got != size {
        return failed(pid, "look at", io::Error::last_os_error());
    }
    // SAFETY: the call filled all of it.
    let out = unsafe { out.assume_init() };
    let start = out.pbi_start_tvsec.saturating_mul(1_000_000).saturating_add(out.pbi_start_tvusec);
    Look::Seen(Info { parent: out.pbi_ppid, uid: out.pbi_uid, start })
}

/// A look failed: the kernel tells whether that is because the process has ended.
pub(super) fn failed<T>(pid: u32, what: &str, error: io::Error) -> Look<T> {
    let number = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let Some(number) = number else { return Look::Ended };
    let gone = error.raw_os_error() == Some(libc::ESRCH);
    match rustix::process::test_kill_process(number) {
        Err(Errno::SRCH) => Look::Ended,
        // A zombie can be signalled and not be looked at.
        Ok(()) if gone => Look::Ended,
        _ => Look::Refused(format!("cannot {what} process {pid}: {error}")),
    }
}

/// The numbers of all processes.
///
/// # Errors
/// As the operating system says.
#[allow(unsafe_code)]
pub(super) fn all_pids() -> io::Result<Vec<u32>> {
    list_pids(|buffer, size| {
        // SAFETY: the caller's buffer is as large as is said.
        unsafe { libc::proc_listallpids(buffer, size) }
    })
}

/// Calls for a list of numbers with a buffer that is large enough for it.
fn list_pids(call: impl Fn(*mut c_void, c_int) -> c_int) -> io::Result<Vec<u32>> {
    let mut room = 4096;
    loop {
        let mut pids = vec![0 as libc::pid_t; room];
        let size = c_int::try_from(pids.len() * size_of::<libc::pid_t>()).map_err(io::Error::other)?;
        let got = call(pids.as_mut_ptr().cast::<c_void>(), size);
        let Ok(got) = usize::try_from(got) else { return Err(io::Error::last_os_error()) };
        if got < room {
            pids.truncate(got);
            return Ok(pids.into_iter().filter_map(|pid| u32::try_from(pid).ok()).collect());
        }
        room *= 2;
    }
}

/// Device and inode of every file that a process has open.
#[allow(unsafe_code)]
pub(super) fn open_files(pid: u32) -> Look<Vec<(u64, u64)>> {
    /// `struct vnode_fdinfo` of `sys/proc_info.h`, which libc lacks.
    #[repr(C)]
    struct VnodeFdInfo {
        file: [u64; 3],
        vnode: libc::vnode_info,
    }
    const PROC_PIDFDVNODEINFO: c_int = 1;
    let Ok(number) = c_int::try_from(pid) else { return Look::Ended };
    let mut room = 256;
    let descriptors = loop {
        let mut list = vec![libc::proc_fdinfo { proc_fd: 0, proc_fdtype: 0 }; room];
        let Ok(size) = c_int::try_from(room * size_of::<libc::proc_fdinfo>()) else {
            return Look::Refused(format!("process {pid} has too many descriptors"));
        };
        // SAFETY: the buffer is as large as is said, and of plain numbers.
        let got = unsafe {
            libc::proc_pidinfo(number, libc::PROC_PIDLISTFDS, 0, list.as_mut_ptr().cast::<c_void>(), size)
        };
        if got <= 0 {
            return failed(pid, "list the descriptors of", io::Error::last_os_error());
        }
        let got = usize::try_from(got).unwrap_or(0) / size_of::<libc::proc_fdinfo>();
        if got < room {
            list.truncate(got);
            break list;
        }
        room *= 2;
    };
    let mut files = Vec::new();
    for descriptor in descriptors.iter().filter(|d| d.proc_fdtype == libc::PROX_FDTYPE_VNODE as u32) {
        let mut out = MaybeUninit::<VnodeFdInfo>::zeroed();
        let size = size_of::<VnodeFdInfo>() as c_int;
        let buffer = out.as_mut_ptr().cast::<c_void>();
        // SAFETY: as above.
        let got =
            unsafe { libc::proc_pidfdinfo(number, descriptor.proc_fd, PROC_PIDFDVNODEINFO, buffer, size) };
        // One that fails was closed meanwhile.
        if got == size {
            // SAFETY: the call filled all of it.
            let stat = unsafe { out.assume_init() }.vnode.vi_stat;
            files.push((u64::from(stat.vst_dev), stat.vst_ino));
        }
    }
    Look::Seen(files)
}

/// Arguments and environment of a process.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) args: Vec<Vec<u8>>,
    pub(super) vars: Vec<Vec<u8>>,
}

/// Reads the arguments and the environment that a process was started with.
#[allow(unsafe_code)]
pub(super) fn words(pid: u32) -> Look<Words> {
    let Ok(number) = c_int::try_from(pid) else { return Look::Ended };
    let mut size: usize = 1 << 20;
    let mut bytes = vec![0u8; size];
    let mut name = [libc::CTL_KERN, libc::KERN_PROCARGS2, number];
    // SAFETY: the name has three parts, and the buffer is as large as is said.
    let result = unsafe {
        libc::sysctl(
            name.as_mut_ptr(),
            3,
            bytes.as_mut_ptr().cast::<c_void>(),
            &raw mut size,
            std::ptr::null_mut(),
            0,
        )
    };
    if result != 0 {
        return failed(pid, "read the arguments of", io::Error::last_os_error());
    }
    bytes.truncate(size);
    match parse_words(&bytes) {
        Some(words) => Look::Seen(words),
        None => Look::Refused(format!("the arguments of process {pid} cannot be parsed")),
    }
}

/// The count of arguments, the program's path, padding, the arguments, the environment.
fn parse_words(bytes: &[u8]) -> Option<Words> {
    let (count, rest) = bytes.split_first_chunk::<4>()?;
    let count = usize::try_from(i32::from_ne_bytes(*count)).ok()?;
    let path_end = rest.iter().position(|b| *b == 0)?;
    let rest = &rest[path_end..];
    let rest = &rest[rest.iter().position(|b| *b != 0).unwrap_or(rest.len())..];
    let mut words = rest.split(|b| *b == 0).map(<[u8]>::to_vec);
    let args = words.by_ref().take(count).collect();
    let vars = words.take_while(|word| !word.is_empty()).collect();
    Some(Words { args, vars })
}

/// A value of the system by its name; empty where it has none.
#[allow(unsafe_code)]
pub(super) fn named_value(name: &CStr) -> String {
    let mut bytes = [0u8; 128];
    let mut size = bytes.len();
    // SAFETY: the name ends in a zero byte, and the buffer is as large as is said.
    let result = unsafe {
        libc::sysctlbyname(
            name.as_ptr(),
            bytes.as_mut_ptr().cast::<c_void>(),
            &raw mut size,
            std::ptr::null_mut(),
            0,
        )
    };
    if result != 0 {
        return String::new();
    }
    String::from_utf8_lossy(&bytes[..size.min(bytes.len())]).trim_end_matches('\0').to_owned()
}

/// The id of the machine; empty where it has none.
#[allow(unsafe_code)]
pub(super) fn machine() -> String {
    let mut id = [0u8; 16];
    let patience = libc::timespec { tv_sec: 1, tv_nsec: 0 };
    // SAFETY: the buffer holds the sixteen bytes that the call writes.
    if unsafe { libc::gethostuuid(id.as_mut_ptr(), &raw const patience) } != 0 {
        return String::new();
    }
    id.iter().map(|b| format!("{b:02x}")).collect()
}

/// Where a process finds its own descriptors.
pub const OWN_DESCRIPTORS: &str = "/dev/fd";

/// Has every descriptor from 3 on closed when this process executes a program. It may be called in a forked child.
///
/// # Errors
/// None: a number without a descriptor is passed over.
#[allow(unsafe_code)]
pub fn close_on_exec() -> io::Result<()> {
    // SAFETY: the call only reads a number.
    let most = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    for fd in 3..c_int::try_from(most.clamp(3, 1 << 16)).unwrap_or(1 << 16) {
        // SAFETY: the call takes numbers, and only sets a flag of a descriptor of our own.
        unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFD);
            if flags >= 0 {
                libc::fcntl(fd, libc::F_SETFD, flags | libc::FD_CLOEXEC);
            }
        }
    }
    Ok(())
}
