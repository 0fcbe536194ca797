//! What became of the panes that were asked to end: a reply is not an effect.

use super::{Asked, Kept, Report, is_gone};
use crate::observe::{Look, look};
use crate::process::Identity;
use loopmux_mux::{Multiplexer, Snapshot, TagScope};
use std::time::{Duration, Instant};

/// How long a pane may take to go, and a server after its last one.
const PATIENCE: Duration = Duration::from_secs(2);

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);

enum Seen {
    Gone,
    There,
    Unknown(String),
}

/// Looks until everything has gone, at most for [`PATIENCE`].
pub(super) fn verify(
    mux: &dyn Multiplexer,
    server: Option<&Identity>,
    mut asked: Vec<Asked>,
    report: &mut Report,
) {
    let end = Instant::now() + PATIENCE;
    loop {
        let now = look(mux);
        let last = Instant::now() >= end;
        let mut open = Vec::new();
        for one in asked {
            match seen(&now, server, &one) {
                Seen::Gone => {
                    report.listed.retain(|tags| *tags != one.tags);
                    report.ended.push(one.window);
                }
                _ if !last => open.push(one),
                Seen::There => report.survived.push(one.window),
                Seen::Unknown(reason) => report.unverifiable.push(Kept {
                    session: one.window.session,
                    socket: one.window.socket,
                    run: Some(one.window.run),
                    reason,
                }),
            }
        }
        if open.is_empty() {
            return;
        }
        asked = open;
        std::thread::sleep(PAUSE);
    }
}

/// Gone is: the same server answers without it, or its process has ended.
fn seen(now: &Look, server: Option<&Identity>, one: &Asked) -> Seen {
    if is_gone(server) {
        return Seen::Gone;
    }
    let Look::Asked(side) = now else { return Seen::Unknown("nobody could be asked".to_owned()) };
    match &side.snapshot {
        Snapshot::Answered(answered) if side.server.as_ref() == server => {
            let there = answered
                .panes
                .iter()
                .any(|row| row.pane == one.pane && row.tags(TagScope::Pane) == Some(&one.tags));
            if there { Seen::There } else { Seen::Gone }
        }
        Snapshot::Answered(_) => {
            Seen::Unknown("another server answers, and the one before still runs".to_owned())
        }
        Snapshot::NotServed(trouble) | Snapshot::Unknown(trouble) => Seen::Unknown(trouble.to_string()),
    }
}
