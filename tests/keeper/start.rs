//! What is started, what is refused, and what is left alone.

use crate::support::*;

#[test]
fn a_program_exits_and_its_code_is_recorded() {
    let mux = Mux::new();
    let attempt = Spec::sh("echo hello; exit 3").write(&mux);
    mux.launch(&attempt);
    attempt.exits(3);
    assert_eq!(String::from_utf8_lossy(&attempt.log()), "hello\r\n");
    let start = attempt.start().unwrap();
    assert_eq!(start.server.as_ref(), Some(mux.server()));
    assert!(start.session.is_some() && start.pane.is_some(), "{start:?}");
    assert!(!attempt.has("env.json") && !attempt.has("leftovers.json") && !attempt.has("hangup.json"));
    until("the window is gone", || (!mux.has(&attempt)).then_some(()));
}
