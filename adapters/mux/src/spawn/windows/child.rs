//! Starting a program on Windows, with exactly the handles that are meant for it.
//!
//! The standard library lets a child inherit every handle that is marked so, and a lease among them would be held for as
//! long as that child lives.

use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::windows::ffi::{OsStrExt, OsStringExt};
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::time::Duration;
use windows_sys::Win32::Foundation::{
    HANDLE, HANDLE_FLAG_INHERIT, SetHandleInformation, WAIT_FAILED, WAIT_OBJECT_0,
};
use windows_sys::Win32::System::SystemInformation::GetSystemDirectoryW;
use windows_sys::Win32::System::Threading::{
    CREATE_UNICODE_ENVIRONMENT, CreateProcessW, DeleteProcThreadAttributeList, EXTENDED_STARTUPINFO_PRESENT,
    GetExitCodeProcess, InitializeProcThreadAttributeList, LPPROC_THREAD_ATTRIBUTE_LIST,
    PROC_THREAD_ATTRIBUTE_HANDLE_LIST, PROC_THREAD_ATTRIBUTE_JOB_LIST, PROCESS_INFORMATION,
    STARTF_USESTDHANDLES, STARTUPINFOEXW, TerminateProcess, UpdateProcThreadAttribute, WaitForSingleObject,
};

/// The standard streams of a child.
#[derive(Clone, Copy, Debug)]
pub struct Streams<'a> {
    /// Input.
    pub input: BorrowedHandle<'a>,
    /// Output.
    pub out: BorrowedHandle<'a>,
    /// Errors.
    pub err: BorrowedHandle<'a>,
}

/// What is started, and with what.
#[derive(Debug)]
pub struct Start<'a> {
    /// The program: a path, or a name that is looked for as the system does.
    pub program: &'a Path,
    /// Its arguments.
    pub args: &'a [OsString],
    /// Its whole environment.
    pub vars: &'a [(OsString, OsString)],
    /// Its directory; this process's without one.
    pub cwd: Option<&'a Path>,
    /// Its standard streams; those of its console without them.
    pub streams: Option<Streams<'a>>,
    /// What it inherits beside them.
    pub inherited: &'a [BorrowedHandle<'a>],
    /// The job that it is in from its first moment on.
    pub job: Option<BorrowedHandle<'a>>,
    /// More of the system's flags.
    pub flags: u32,
}

/// A started program. It is not ended when this is dropped.
#[derive(Debug)]
pub struct Child {
    process: OwnedHandle,
    pid: u32,
}

impl Child {
    /// Its number, its own while this lives.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for its end; its exit code then, `None` after `limit`.
    ///
    /// # Errors
    /// As the operating system says.
    #[allow(unsafe_code)]
    pub fn wait(&self, limit: Option<Duration>) -> io::Result<Option<i32>> {
        let limit = limit.map_or(u32::MAX, |limit| {
            u32::try_from(limit.as_micros().div_ceil(1000)).unwrap_or(u32::MAX - 1).min(u32::MAX - 1)
        });
        // SAFETY: the handle is open.
        match unsafe { WaitForSingleObject(self.process.as_raw_handle(), limit) } {
            WAIT_OBJECT_0 => {
                let mut code = 0;
                // SAFETY: the handle is open, and the number is this function's.
                match unsafe { GetExitCodeProcess(self.process.as_raw_handle(), &raw mut code) } {
                    0 => Err(io::Error::last_os_error()),
                    _ => Ok(Some(code.cast_signed())),
                }
            }
            WAIT_FAILED => Err(io::Error::last_os_error()),
            _ => Ok(None),
        }
    }

    /// Ends it, as nobody could prevent.
    ///
    /// # Errors
    /// As the operating system says; that it has ended already is none.
    #[allow(unsafe_code)]
    pub fn kill(&self) -> io::Result<()> {
        // SAFETY: the handle is open.
        let killed = unsafe { TerminateProcess(self.process.as_raw_handle(), 1) };
        if killed != 0 || self.wait(Some(Duration::ZERO))?.is_some() {
            return Ok(());
        }
        Err(io::Error::last_os_error())
    }
}

impl AsHandle for Child {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.process.as_handle()
    }
}

impl Start<'_> {
    /// Starts it.
    ///
    /// # Errors
    /// As the operating system says; words that no program could take among it.
    #[allow(unsafe_code)]
    pub fn spawn(&self) -> io::Result<Child> {
        let mut line = self.command_line()?;
        let block = environment(self.vars)?;
        let program = self.application()?.map(|path| wide(&path)).transpose()?;
        let cwd = self.cwd.map(|dir| wide(dir.as_os_str())).transpose()?;
        let mut handles: Vec<HANDLE> = self.inherited.iter().map(AsRawHandle::as_raw_handle).collect();
        let mut start = MaybeUninit::<STARTUPINFOEXW>::zeroed();
        // SAFETY: it was zeroed, and is plain numbers and null pointers.
        let start = unsafe { start.assume_init_mut() };
        start.StartupInfo.cb = u32::try_from(size_of::<STARTUPINFOEXW>()).unwrap_or_default();
        if let Some(streams) = &self.streams {
            start.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
            start.StartupInfo.hStdInput = streams.input.as_raw_handle();
            start.StartupInfo.hStdOutput = streams.out.as_raw_handle();
            start.StartupInfo.hStdError = streams.err.as_raw_handle();
            for stream in [streams.input, streams.out, streams.err] {
                // The same handle twice in the list is an error.
                if !handles.contains(&stream.as_raw_handle()) {
                    handles.push(stream.as_raw_handle());
                }
            }
        }
        let marks: Vec<Inheritable> =
            handles.iter().map(|h| Inheritable::mark(*h)).collect::<io::Result<_>>()?;
        let jobs: Vec<HANDLE> = self.job.iter().map(AsRawHandle::as_raw_handle).collect();
        let attributes = Attributes::new(&handles, &jobs)?;
        start.lpAttributeList = attributes.list();
        let mut made = MaybeUninit::<PROCESS_INFORMATION>::zeroed();
        // SAFETY: every pointer is to a value of this function that outlives the call; the line may be changed by it.
        let ok = unsafe {
            CreateProcessW(
                program.as_ref().map_or(std::ptr::null(), |path| path.as_ptr()),
                line.as_mut_ptr(),
                std::ptr::null(),
                std::ptr::null(),
                i32::from(!handles.is_empty()),
                self.flags | CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT,
                block.as_ptr().cast(),
                cwd.as_ref().map_or(std::ptr::null(), |dir| dir.as_ptr()),
                (&raw const *start).cast(),
                made.as_mut_ptr(),
            )
        };
        let failed = io::Error::last_os_error();
        drop((attributes, marks));
        if ok == 0 {
            return Err(failed);
        }
        // SAFETY: the call succeeded, so both handles are open and nobody else's. One of the thread would pin the number
        // as well.
        unsafe {
            let made = made.assume_init();
            drop(OwnedHandle::from_raw_handle(made.hThread));
            Ok(Child { process: OwnedHandle::from_raw_handle(made.hProcess), pid: made.dwProcessId })
        }
    }

    /// A script of the system's shell is executed by that.
    fn is_script(&self) -> bool {
        let end = self.program.extension();
        end.is_some_and(|end| end.eq_ignore_ascii_case("bat") || end.eq_ignore_ascii_case("cmd"))
    }

    /// The path of what is executed; `None` for a name, which the system looks for.
    fn application(&self) -> io::Result<Option<OsString>> {
        if self.is_script() {
            return system_directory().map(|dir| Some(dir.join("cmd.exe").into_os_string()));
        }
        Ok(self.program.parent().filter(|dir| !dir.as_os_str().is_empty()).map(|_| self.program.into()))
    }

    fn command_line(&self) -> io::Result<Vec<u16>> {
        let mut line = Vec::new();
        if self.is_script() {
            // Without a user's own start-up commands, and with the whole in one pair of quotes, which the shell takes off.
            line.extend("cmd.exe /d /e:ON /v:OFF /c \"".encode_utf16());
            quote_for_shell(&mut line, self.program.as_os_str())?;
            for arg in self.args {
                line.push(u16::from(b' '));
                quote_for_shell(&mut line, arg)?;
            }
            line.push(u16::from(b'"'));
        } else {
            quote(&mut line, self.program.as_os_str(), true);
            for arg in self.args {
                line.push(u16::from(b' '));
                quote(&mut line, arg, false);
            }
        }
        if line.contains(&0) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a word with a zero character in it"));
        }
        if line.len() >= 32_767 {
            return Err(io::Error::new(
                io::ErrorKind::ArgumentListTooLong,
                "more than 32766 characters of words",
            ));
        }
        line.push(0);
        Ok(line)
    }
}

/// Where the system's own programs are.
#[allow(unsafe_code)]
fn system_directory() -> io::Result<PathBuf> {
    let mut buffer = [0u16; 512];
    // SAFETY: the buffer is as large as is said.
    let len = unsafe { GetSystemDirectoryW(buffer.as_mut_ptr(), 512) } as usize;
    if len == 0 || len >= buffer.len() {
        return Err(io::Error::last_os_error());
    }
    Ok(PathBuf::from(OsString::from_wide(&buffer[..len])))
}

/// One word, as the C library of nearly every program takes a line apart.
fn quote(line: &mut Vec<u16>, word: &OsStr, always: bool) {
    let word: Vec<u16> = word.encode_wide().collect();
    let special = |c: &u16| matches!(*c, 0x20 | 0x09 | 0x0a | 0x0b | 0x22);
    if !always && !word.is_empty() && !word.iter().any(special) {
        line.extend(word);
        return;
    }
    line.push(0x22);
    let mut backslashes = 0;
    for c in word {
        match c {
            0x5c => backslashes += 1,
            // Backslashes stand for themselves, unless a quote follows.
            0x22 => {
                line.extend(std::iter::repeat_n(0x5c, backslashes + 1));
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
        line.push(c);
    }
    line.extend(std::iter::repeat_n(0x5c, backslashes));
    line.push(0x22);
}

/// One word for a script of the system's shell, which looks for its own signs first. What it could not be kept from
/// reading is refused.
fn quote_for_shell(line: &mut Vec<u16>, word: &OsStr) -> io::Result<()> {
    let word: Vec<u16> = word.encode_wide().collect();
    if word.iter().any(|c| matches!(*c, 0x0a | 0x0d)) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a script of the system's shell (.bat, .cmd) takes no word with a line break in it",
        ));
    }
    line.push(0x22);
    let mut backslashes = 0;
    for c in word {
        match c {
            0x5c => backslashes += 1,
            // Two quotes are one that does not end the word, for shell and program alike.
            0x22 => {
                line.extend(std::iter::repeat_n(0x5c, backslashes));
                line.push(0x22);
                backslashes = 0;
            }
            // A variable that is always empty keeps the sign from naming one.
            0x25 => {
                line.extend("%%cd:~,".encode_utf16());
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
        line.push(c);
    }
    line.extend(std::iter::repeat_n(0x5c, backslashes));
    line.push(0x22);
    Ok(())
}

/// The block of an environment: sorted, and each name once, whatever its letters; the last value counts.
fn environment(vars: &[(OsString, OsString)]) -> io::Result<Vec<u16>> {
    let mut sorted: Vec<(OsString, &OsString, &OsString)> = Vec::new();
    for (name, value) in vars {
        let key = name.to_ascii_uppercase();
        sorted.retain(|(known, ..)| *known != key);
        sorted.push((key, name, value));
    }
    sorted.sort();
    let mut block = Vec::new();
    for (_, name, value) in sorted {
        let from = block.len();
        block.extend(name.encode_wide());
        block.push(u16::from(b'='));
        block.extend(value.encode_wide());
        if block[from..].contains(&0) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a variable with a zero character in it",
            ));
        }
        block.push(0);
    }
    if block.is_empty() {
        block.push(0);
    }
    block.push(0);
    Ok(block)
}

fn wide(text: &OsStr) -> io::Result<Vec<u16>> {
    let mut words: Vec<u16> = text.encode_wide().collect();
    if words.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a path with a zero character in it"));
    }
    words.push(0);
    Ok(words)
}

/// A handle that may be inherited, for as long as this lives.
struct Inheritable(HANDLE);

impl Inheritable {
    #[allow(unsafe_code)]
    fn mark(handle: HANDLE) -> io::Result<Self> {
        // SAFETY: the caller has the handle open.
        match unsafe { SetHandleInformation(handle, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(Self(handle)),
        }
    }
}

impl Drop for Inheritable {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { SetHandleInformation(self.0, HANDLE_FLAG_INHERIT, 0) };
    }
}

/// The list that says what is inherited, and the job.
struct Attributes<'l> {
    buffer: Vec<usize>,
    _lists: std::marker::PhantomData<&'l [HANDLE]>,
}

impl<'l> Attributes<'l> {
    #[allow(unsafe_code)]
    fn new(handles: &'l [HANDLE], jobs: &'l [HANDLE]) -> io::Result<Self> {
        let mut bytes = 0;
        // SAFETY: without a list the call only tells how large one is.
        unsafe { InitializeProcThreadAttributeList(std::ptr::null_mut(), 2, 0, &raw mut bytes) };
        let mut buffer = vec![0usize; bytes.div_ceil(size_of::<usize>()).max(1)];
        // SAFETY: the buffer is as large as the call has told.
        let ok =
            unsafe { InitializeProcThreadAttributeList(buffer.as_mut_ptr().cast(), 2, 0, &raw mut bytes) };
        if ok == 0 {
            return Err(io::Error::last_os_error());
        }
        let attributes = Self { buffer, _lists: std::marker::PhantomData };
        let both = [(PROC_THREAD_ATTRIBUTE_HANDLE_LIST, handles), (PROC_THREAD_ATTRIBUTE_JOB_LIST, jobs)];
        for (attribute, list) in both.into_iter().filter(|(_, list)| !list.is_empty()) {
            // SAFETY: the list of handles outlives the attributes, which point to it.
            let ok = unsafe {
                UpdateProcThreadAttribute(
                    attributes.list(),
                    0,
                    attribute as usize,
                    list.as_ptr().cast(),
                    size_of_val(list),
                    std::ptr::null_mut(),
                    std::ptr::null(),
                )
            };
            if ok == 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(attributes)
    }

    fn list(&self) -> LPPROC_THREAD_ATTRIBUTE_LIST {
        self.buffer.as_ptr().cast_mut().cast()
    }
}

impl Drop for Attributes<'_> {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the list was initialized, and is deleted once.
        unsafe { DeleteProcThreadAttributeList(self.list()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(words: &[&str]) -> String {
        let args: Vec<OsString> = words[1..].iter().map(OsString::from).collect();
        let start = Start {
            program: Path::new(words[0]),
            args: &args,
            vars: &[],
            cwd: None,
            streams: None,
            inherited: &[],
            job: None,
            flags: 0,
        };
        String::from_utf16_lossy(&start.command_line().unwrap()).trim_end_matches('\0').to_owned()
    }

    #[test]
    fn words_are_quoted_as_programs_take_them_apart() {
        assert_eq!(line(&["a b", "plain", ""]), r#""a b" plain """#);
        assert_eq!(line(&["a", r#"say "x" y"#]), r#""a" "say \"x\" y""#);
        assert_eq!(line(&["a", r"c:\d e\"]), r#""a" "c:\d e\\""#);
        assert_eq!(line(&["a", r#"\""#]), r#""a" "\\\"""#);
        assert_eq!(line(&["x.cmd", "50%", "&"]), r#"cmd.exe /d /e:ON /v:OFF /c ""x.cmd" "50%%cd:~,%" "&"""#);
    }

    #[test]
    fn of_a_name_that_stands_twice_the_last_value_counts() {
        let vars: Vec<(OsString, OsString)> =
            [("Path", "1"), ("B", "2"), ("PATH", "3")].map(|(n, v)| (n.into(), v.into())).into();
        let block = String::from_utf16_lossy(&environment(&vars).unwrap());
        assert_eq!(block, "B=2\0PATH=3\0\0");
    }
}
