//! The console of the window, opened by its own names: a program on a pseudo console may have no standard handles.

use crate::wake::{self, AsSource, Inbox, Woke};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::windows::io::{AsHandle, AsRawHandle};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use windows_sys::Win32::System::Console::{
    CONSOLE_MODE, CTRL_BREAK_EVENT, CTRL_C_EVENT, ENABLE_VIRTUAL_TERMINAL_PROCESSING,
    FlushConsoleInputBuffer, GenerateConsoleCtrlEvent, GetConsoleMode, INPUT_RECORD, KEY_EVENT,
    ReadConsoleInputW, SetConsoleCtrlHandler, SetConsoleMode, WriteConsoleW,
};

static GOING: AtomicBool = AtomicBool::new(false);
static WAKE: OnceLock<std::path::PathBuf> = OnceLock::new();

/// The console of this process, and what it tells.
#[derive(Debug)]
pub(super) struct Console {
    input: Option<File>,
    output: Option<File>,
    modes: Option<(CONSOLE_MODE, CONSOLE_MODE)>,
    /// Signalled when the console goes away.
    going: Option<Inbox>,
}

fn open(name: &str) -> Option<File> {
    File::options().read(true).write(true).open(name).ok()
}

impl Console {
    /// Opens it and remembers its modes. Without one everything here does nothing.
    pub(super) fn open() -> Self {
        let going = Inbox::bind(&format!("console-{}", std::process::id())).ok();
        if let Some(going) = &going {
            WAKE.get_or_init(|| going.path().to_owned());
        }
        take_events();
        let (input, output) = (open("CONIN$"), open("CONOUT$"));
        let modes = input.as_ref().zip(output.as_ref()).and_then(|(i, o)| Some((mode(i)?, mode(o)?)));
        Self { input, output, modes, going }
    }

    /// Its two handles, for a program.
    pub(super) fn handles(&self) -> Option<(&File, &File)> {
        self.input.as_ref().zip(self.output.as_ref())
    }

    /// Whether it is going away. Whoever has been told so is ended in a moment.
    pub(super) fn is_going(&self) -> bool {
        GOING.load(Ordering::SeqCst)
    }

    /// What tells that.
    pub(super) fn source(&self) -> Option<wake::Source<'_>> {
        self.going.as_ref().map(AsSource::as_source)
    }

    /// Writes text.
    #[allow(unsafe_code)]
    pub(super) fn say(&self, text: &str) {
        let Some(output) = &self.output else { return };
        let words: Vec<u16> = text.encode_utf16().collect();
        // A console takes no more at once.
        for part in words.chunks(8 << 10) {
            let mut written = 0;
            let count = u32::try_from(part.len()).unwrap_or_default();
            // SAFETY: the handle is open, and the text is as long as is said.
            let ok = unsafe {
                WriteConsoleW(
                    output.as_raw_handle(),
                    part.as_ptr().cast(),
                    count,
                    &raw mut written,
                    std::ptr::null(),
                )
            };
            if ok == 0 {
                return;
            }
        }
    }

    /// A line of our own, wherever the program left the cursor.
    pub(super) fn say_line(&self, text: &str) {
        self.say(&format!("\r\nloopmux: {text}\r\n"));
    }

    /// Leaves the modes in which the window was born, and every mode that a killed program may have left on.
    pub(super) fn take_back(&self) {
        let (Some((input, output)), Some(modes)) = (self.handles(), self.modes) else { return };
        set_mode(input, modes.0);
        set_mode(output, modes.1 | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
        self.say(super::super::words::RESET);
    }

    /// Asks every program on this console to end, as Ctrl-C does.
    #[allow(unsafe_code)]
    pub(super) fn interrupt(&self) -> io::Result<()> {
        // SAFETY: the call takes two numbers; 0 stands for all of this console.
        match unsafe { GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Shows `text` and waits for Enter. Ctrl-C, Ctrl-D and what `also` tells are as good.
    pub(super) fn park(&self, text: &str, also: wake::Source<'_>) {
        self.take_back();
        self.say(&format!("\r\n[{text} · press Enter to close]"));
        let Some(input) = &self.input else { return };
        set_mode(input, 0);
        forget_input(input);
        loop {
            let mut sources = vec![input.as_source(), also];
            sources.extend(self.source());
            match wake::wait(&sources, Some(Duration::from_secs(60))) {
                Ok(Woke::By(0)) if !closes(input) => {}
                Ok(Woke::Timeout | Woke::Interrupted) => {}
                Ok(Woke::By(_)) | Err(_) => return,
            }
        }
    }
}

#[allow(unsafe_code)]
fn mode(console: &File) -> Option<CONSOLE_MODE> {
    let mut mode = 0;
    // SAFETY: the handle is open, and the number is this function's.
    (unsafe { GetConsoleMode(console.as_raw_handle(), &raw mut mode) } != 0).then_some(mode)
}

#[allow(unsafe_code)]
fn set_mode(console: &File, mode: CONSOLE_MODE) {
    // SAFETY: the handle is open. A console that has gone has no modes.
    unsafe { SetConsoleMode(console.as_raw_handle(), mode) };
}

/// What was typed before was meant for the program.
#[allow(unsafe_code)]
fn forget_input(console: &File) {
    // SAFETY: the handle is open.
    unsafe { FlushConsoleInputBuffer(console.as_raw_handle()) };
}

/// Takes what was typed, and says whether it closes the window. An error does.
#[allow(unsafe_code)]
fn closes(console: &File) -> bool {
    let mut records = [const { MaybeUninit::<INPUT_RECORD>::zeroed() }; 32];
    let mut read = 0;
    // SAFETY: the handle is open, and the list is as long as is said.
    let ok = unsafe {
        ReadConsoleInputW(console.as_handle().as_raw_handle(), records.as_mut_ptr().cast(), 32, &raw mut read)
    };
    if ok == 0 {
        return true;
    }
    records[..(read as usize).min(32)].iter().any(|record| {
        // SAFETY: the list was zeroed, and of what the call wrote the part is read that its kind says.
        unsafe {
            let record = record.assume_init_ref();
            if u32::from(record.EventType) != KEY_EVENT || record.Event.KeyEvent.bKeyDown == 0 {
                return false;
            }
            // Enter, Ctrl-J, Ctrl-C, Ctrl-D.
            matches!(record.Event.KeyEvent.uChar.UnicodeChar, 0x0d | 0x0a | 0x03 | 0x04)
        }
    })
}

#[allow(unsafe_code)]
fn take_events() {
    // SAFETY: without a function the call takes back that Ctrl-C is ignored, which a server may have passed on; the
    // function lives as long as the program, and only sets a flag and an event.
    unsafe {
        SetConsoleCtrlHandler(None, 0);
        SetConsoleCtrlHandler(Some(arrived), 1);
    }
}

/// Has this process live on when its console tells it to end.
pub(super) fn ignore_events() {
    take_events();
}

/// In a thread that the system makes for it.
extern "system" fn arrived(event: u32) -> i32 {
    // The program on the same console is told by itself.
    if matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT) {
        return 1;
    }
    GOING.store(true, Ordering::SeqCst);
    if let Some(path) = WAKE.get() {
        wake::poke(path);
    }
    1
}
