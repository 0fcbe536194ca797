//! The scenes.

pub(crate) mod ending;
pub(crate) mod launch;
pub(crate) mod removal;
pub(crate) mod storing;

use crate::scene::Scene;

/// Every scene there is.
pub(crate) fn all() -> Vec<Scene> {
    [launch::SCENES, ending::SCENES, removal::SCENES, storing::SCENES].concat()
}
