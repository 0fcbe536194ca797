//! What Linux does in its own way.

use super::unix::kind;
use super::{Mount, Stat};
use rustix::fs::{AtFlags, FallocateFlags, FileType, RenameFlags, Statx, StatxFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

pub(super) fn stat(fd: BorrowedFd<'_>) -> io::Result<Stat> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    Ok(of(&rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, wanted)?))
}

pub(super) fn look(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<Stat> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    Ok(of(&rustix::fs::statx(dir, name, flags, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)?))
}

fn of(stat: &Statx) -> Stat {
    // Kernels before 5.8 do not tell mounts apart; the device is what is left then.
    let told = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::MNT_ID);
    let device = rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor);
    Stat {
        kind: kind(FileType::from_raw_mode(stat.stx_mode.into())),
        uid: stat.stx_uid,
        mode: u32::from(stat.stx_mode) & 0o7777,
        len: stat.stx_size,
        modified: (stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
        changed: (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
        device,
        inode: stat.stx_ino,
        mount: Mount { device, id: told.then_some(stat.stx_mnt_id) },
    }
}

pub(super) fn identity(stat: &rustix::fs::Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

pub(super) fn rename_new(
    from_dir: BorrowedFd<'_>,
    from: &OsStr,
    to_dir: BorrowedFd<'_>,
    to: &OsStr,
) -> Result<(), Errno> {
    rustix::fs::renameat_with(from_dir, from, to_dir, to, RenameFlags::NOREPLACE)
}

pub(super) fn take_room(file: &File, bytes: u64) -> io::Result<bool> {
    allocate(file, FallocateFlags::empty(), 0, bytes)
}

pub(super) fn take_room_ahead(file: &File, from: u64, bytes: u64) -> io::Result<bool> {
    allocate(file, FallocateFlags::KEEP_SIZE, from, bytes)
}

fn allocate(file: &File, flags: FallocateFlags, from: u64, bytes: u64) -> io::Result<bool> {
    loop {
        match rustix::fs::fallocate(file, flags, from, bytes) {
            Ok(()) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
            Err(e) => return Err(e.into()),
        }
    }
}

pub(super) fn random(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(got) => filled += got,
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

pub(super) fn network_kind(dir: BorrowedFd<'_>) -> Option<&'static str> {
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
