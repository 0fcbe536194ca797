//! Somebody who looks all the time: `list`, `status`, `wait`. A probe holds a lock shared for a moment, and that
//! moment is a step of its own.

use crate::look;
use crate::model::{Model, Out, Who};
use crate::state::{AWAY, Hold, Lock, Made, Place, Read, State};

/// Every step of the observer.
pub(crate) fn steps(m: &Model, s: &State, out: &mut Out<'_>) {
    if s.hold != Hold::None {
        let mut n = *s;
        n.hold = Hold::None;
        out.push(Who::Observer, "gives its shared lock up", n);
        return;
    }
    if s.observer.next == Read::Idle {
        if s.place == Place::Runs {
            let mut n = *s;
            n.observer = look::at_everything();
            out.push(Who::Observer, "opens the run", n);
        }
        return;
    }
    let next = s.observer.next;
    let at = s.observer.at;
    look::steps(
        m,
        s,
        Who::Observer,
        s.observer,
        out,
        |n, looker| {
            n.observer = looker;
            let free = s.place != Place::Gone;
            n.hold = match next {
                Read::Engine if free && s.engine_lock == Lock::Free => Hold::Engine,
                Read::Lease | Read::LeaseAgain
                    if free
                        && s.attempts[usize::from(at)].made == Made::Filled
                        && !m.lease_held(s, usize::from(at)) =>
                {
                    Hold::Lease(at)
                }
                _ => Hold::None,
            };
        },
        |n| n.observer = AWAY,
    );
}
