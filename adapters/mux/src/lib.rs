//! The seam between loopmux and a terminal multiplexer.
//!
//! A multiplexer is asked three kinds of things, and every method of [`Multiplexer`] says which it is:
//!
//! * an **observation** never fails: its answer type has a value for "cannot tell", with the reason;
//! * an **act** raises, and whatever it returns, the caller must look again: a reply is not an effect;
//! * a **plan** is pure: it says what a person's terminal would have to execute.
//!
//! Nothing that a multiplexer says proves that a program ended. Its word explains an end that the kernel
//! has proven, or vetoes an act.

pub mod class;
pub mod ids;
pub mod multiplexer;
pub mod said;
pub mod scripted;
pub mod snapshot;
pub mod spawn;

pub mod conformance;

pub use class::ReplyClass;
pub use ids::{BadName, PaneId, SessionId, SessionName, Tags, WindowId};
pub use multiplexer::{
    AttachPlan, ByHand, CreateError, CreateSpec, Created, Delivery, HasSession, Here, KillReply, KillScope,
    Multiplexer, Placement, Probe, Trouble,
};
pub use said::Said;
pub use snapshot::{Answered, Owned, PaneRow, Scope, Snapshot, TagScope};
