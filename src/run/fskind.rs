//! Which file systems cannot carry a lease.

use super::dir::Dir;

/// The kind of a file system whose locks do not reach every process that can see its files, by its type; `None`
/// for all others, and where the type cannot be read: the lock test then decides alone.
#[cfg(target_os = "linux")]
pub fn network_kind(dir: &Dir) -> Option<&'static str> {
    // Magic numbers of statfs(2) and linux/magic.h.
    match rustix::fs::fstatfs(dir).ok()?.f_type {
        0x6969 => Some("NFS"),
        0xFF53_4D42 | 0xFE53_4D42 | 0x517B => Some("SMB"),
        0x0102_1997 => Some("9p"),
        0x6573_5546 => Some("FUSE"),
        0x6A65_6A63 => Some("virtiofs"),
        0x00C3_6400 => Some("Ceph"),
        0x5346_414F | 0x6B41_4653 => Some("AFS"),
        0x7375_7245 => Some("Coda"),
        0x786F_4256 => Some("a VirtualBox shared folder"),
        _ => None,
    }
}

/// As on Linux; here nothing is known by type, and the lock test decides alone.
#[cfg(not(target_os = "linux"))]
pub fn network_kind(_dir: &Dir) -> Option<&'static str> {
    None
}
