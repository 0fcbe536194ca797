//! What the keeper says in its window, in words for a person.

use crate::verdict::End;

/// How a program ended.
pub(super) fn ended(end: &End) -> String {
    match end {
        End::Code(code) => format!("exited {code}"),
        End::Signal(signal) => match signal_name(*signal) {
            Some(name) => format!("ended by signal {signal}, {name}"),
            None => format!("ended by signal {signal}"),
        },
        End::SpawnError(why) => format!("not started: {}", clean(why)),
    }
}

/// Without what a terminal would act upon.
pub(super) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        libc::SIGHUP => "HUP",
        libc::SIGINT => "INT",
        libc::SIGQUIT => "QUIT",
        libc::SIGILL => "ILL",
        libc::SIGTRAP => "TRAP",
        libc::SIGABRT => "ABRT",
        libc::SIGBUS => "BUS",
        libc::SIGFPE => "FPE",
        libc::SIGKILL => "KILL",
        libc::SIGUSR1 => "USR1",
        libc::SIGSEGV => "SEGV",
        libc::SIGUSR2 => "USR2",
        libc::SIGPIPE => "PIPE",
        libc::SIGALRM => "ALRM",
        libc::SIGTERM => "TERM",
        libc::SIGXCPU => "XCPU",
        libc::SIGXFSZ => "XFSZ",
        libc::SIGSYS => "SYS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_said_in_words_and_harmless() {
        assert_eq!(ended(&End::Code(3)), "exited 3");
        assert_eq!(ended(&End::Signal(9)), "ended by signal 9, KILL");
        assert_eq!(ended(&End::Signal(64)), "ended by signal 64");
        assert_eq!(ended(&End::SpawnError("a\x1b[2J".to_owned())), "not started: a\u{fffd}[2J");
    }
}
