//! Windows tells nobody who has a file open: a free lease has no holder, and who holds a held one is not known.

use crate::process::Scan;
use crate::run::store::AttemptRead;
use crate::verdict::Lease;

pub(super) fn holders(read: &AttemptRead) -> Result<Scan, String> {
    match read.lease() {
        Lease::Free | Lease::NoFile => Ok(Scan::default()),
        Lease::Held => Err("its lease is held, and Windows does not tell by whom".to_owned()),
        Lease::Unknown(why) => Err(format!("cannot look at its lease: {why}")),
    }
}
