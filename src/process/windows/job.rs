//! Jobs: everything that is started in one stays in it, and it ends with its last handle.

use super::sys::{self, Look, owned, wide};
use std::ffi::OsStr;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle};
use windows_sys::Win32::Foundation::{
    ERROR_ALREADY_EXISTS, ERROR_FILE_NOT_FOUND, ERROR_MORE_DATA, GetLastError,
};
use windows_sys::Win32::System::JobObjects::{
    CreateJobObjectW, IsProcessInJob, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
    JobObjectBasicAccountingInformation, JobObjectBasicProcessIdList, JobObjectExtendedLimitInformation,
    OpenJobObjectW, QueryInformationJobObject, SetInformationJobObject,
};
use windows_sys::Win32::System::SystemServices::JOB_OBJECT_QUERY;
use windows_sys::Win32::System::Threading::{PROCESS_QUERY_INFORMATION, PROCESS_QUERY_LIMITED_INFORMATION};

/// The job of an attempt, by the attempt's token.
#[derive(Debug)]
pub struct Job(OwnedHandle);

/// In the namespace of all sessions: one that is not seen has no members, whoever looks.
fn name(token: &str) -> Vec<u16> {
    wide(OsStr::new(&format!(r"Global\loopmux-{token}")))
}

fn size(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl Job {
    /// Makes the job. Its members cannot leave it, and end with the last handle of it, which should be this one.
    ///
    /// # Errors
    /// There is one of that token already, or as the operating system says.
    #[allow(unsafe_code)]
    pub fn make(token: &str) -> io::Result<Self> {
        let name = name(token);
        // SAFETY: the name ends in a zero and outlives the call; null stands for the default rights. The error is read
        // before another call can replace it.
        let (job, code) = unsafe { (CreateJobObjectW(std::ptr::null(), name.as_ptr()), GetLastError()) };
        let job = owned(job)?;
        if code == ERROR_ALREADY_EXISTS {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is a job of its token already"));
        }
        // SAFETY: all of it is plain numbers.
        let mut limits: JOBOBJECT_EXTENDED_LIMIT_INFORMATION = unsafe { std::mem::zeroed() };
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        // SAFETY: the handle is open, and the value is as large as is said.
        let ok = unsafe {
            SetInformationJobObject(
                job.as_raw_handle(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast(),
                size(size_of::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>()),
            )
        };
        if ok == 0 { Err(io::Error::last_os_error()) } else { Ok(Self(job)) }
    }

    /// The job of a token, to look at it. While the handle is open its members do not end with their keeper: it is to be
    /// closed at once.
    ///
    /// # Errors
    /// As the operating system says.
    #[allow(unsafe_code)]
    pub(super) fn existing(token: &str) -> io::Result<Option<Self>> {
        let name = name(token);
        // SAFETY: the name ends in a zero and outlives the call.
        match owned(unsafe { OpenJobObjectW(JOB_OBJECT_QUERY, 0, name.as_ptr()) }) {
            Ok(job) => Ok(Some(Self(job))),
            Err(e) if e.raw_os_error() == Some(ERROR_FILE_NOT_FOUND.cast_signed()) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// How many members live.
    ///
    /// # Errors
    /// As the operating system says.
    #[allow(unsafe_code)]
    pub fn living(&self) -> io::Result<u32> {
        let mut found = MaybeUninit::<JOBOBJECT_BASIC_ACCOUNTING_INFORMATION>::zeroed();
        // SAFETY: the handle is open, and the value is as large as is said.
        let ok = unsafe {
            QueryInformationJobObject(
                self.0.as_raw_handle(),
                JobObjectBasicAccountingInformation,
                found.as_mut_ptr().cast(),
                size(size_of::<JOBOBJECT_BASIC_ACCOUNTING_INFORMATION>()),
                std::ptr::null_mut(),
            )
        };
        if ok == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was zeroed, and is plain numbers.
        Ok(unsafe { found.assume_init() }.ActiveProcesses)
    }

    /// The members, each open for a look. One that ends meanwhile is left out.
    ///
    /// # Errors
    /// Why they cannot be told.
    pub(super) fn members(&self) -> Result<Vec<(u32, OwnedHandle)>, String> {
        let mut members = Vec::new();
        for pid in self.numbers().map_err(|e| format!("cannot list the members of a job: {e}"))? {
            // The second right is what some systems want for the question below.
            let rights = PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_QUERY_INFORMATION;
            let process = match sys::open(pid, rights) {
                Look::Seen(process) => process,
                Look::Ended => continue,
                Look::Refused(why) => return Err(why),
            };
            if self.has(process.as_handle()).map_err(|e| format!("cannot look at process {pid}: {e}"))? {
                members.push((pid, process));
            }
        }
        Ok(members)
    }

    /// Whether a process is in it: asked through a handle, since a number may be another's by now.
    #[allow(unsafe_code)]
    fn has(&self, process: BorrowedHandle<'_>) -> io::Result<bool> {
        let mut is = 0;
        // SAFETY: both handles are open.
        match unsafe { IsProcessInJob(process.as_raw_handle(), self.0.as_raw_handle(), &raw mut is) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(is != 0),
        }
    }

    #[allow(unsafe_code)]
    fn numbers(&self) -> io::Result<Vec<u32>> {
        let mut room = 128;
        loop {
            // Two numbers of 32 bits, and behind them one of 64 for each member.
            let mut buffer = vec![0usize; room + 1];
            // SAFETY: the handle is open, and the buffer is aligned and as large as is said.
            let ok = unsafe {
                QueryInformationJobObject(
                    self.0.as_raw_handle(),
                    JobObjectBasicProcessIdList,
                    buffer.as_mut_ptr().cast(),
                    size(buffer.len() * size_of::<usize>()),
                    std::ptr::null_mut(),
                )
            };
            let e = io::Error::last_os_error();
            let listed = (buffer[0] as u64 >> 32) as usize;
            if ok != 0 {
                let numbers = buffer[1..].iter().take(listed);
                return Ok(numbers.filter_map(|n| u32::try_from(*n).ok()).collect());
            }
            if e.raw_os_error() != Some(ERROR_MORE_DATA.cast_signed()) || room > 1 << 20 {
                return Err(e);
            }
            room *= 4;
        }
    }
}

impl AsHandle for Job {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.0.as_handle()
    }
}
