//! An end on Unix that nothing in this process sees coming.

pub(super) fn die() {
    // It is this process itself that is signalled, whose number cannot be another's.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}
