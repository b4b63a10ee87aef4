//! Resolution of paths below the target directory.
//!
//! A name that is safe when it is checked may lead elsewhere a moment later, if another process
//! replaces one of its components by a symbolic link. So no path is resolved from the root of the
//! file system: resolution starts at the held descriptor of the target directory, and the kernel
//! rejects every symbolic link on the way.

use crate::sys;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, Result};

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory below `root`, named by checked components with slashes between them.
/// [`Errno::LOOP`] or [`Errno::NOTDIR`] if one of them is a symbolic link or not a directory.
pub(super) fn open_beneath(root: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd> {
    match open_at_once(root, path) {
        // Linux before 5.6, or a sandbox that does not allow the call.
        Err(Errno::NOSYS | Errno::PERM) => open_step_by_step(root, path),
        result => result,
    }
}

fn open_at_once(root: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    sys::retry(|| rustix::fs::openat2(root, path, DIRECTORY, Mode::empty(), resolve))
}

/// The fallback: each component is opened in the one before, and none may be a link.
fn open_step_by_step(root: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd> {
    let open = |directory: BorrowedFd<'_>, name: &[u8]| {
        sys::retry(|| rustix::fs::openat(directory, name, DIRECTORY, Mode::empty()))
    };
    let mut components = path.split(|&byte| byte == b'/');
    let mut directory = open(root, components.next().unwrap_or_default())?;
    for component in components {
        directory = open(directory.as_fd(), component)?;
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn both_ways_to_walk_refuse_links_and_files() {
        let outside = tempfile::tempdir().unwrap();
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("a/b")).unwrap();
        std::fs::create_dir(outside.path().join("b")).unwrap();
        std::fs::write(root.path().join("a/file"), "").unwrap();
        symlink(outside.path(), root.path().join("out")).unwrap();
        symlink("a", root.path().join("in")).unwrap();
        let fd = std::fs::File::open(root.path()).unwrap();
        for open in [open_at_once, open_step_by_step] {
            let errno = |path: &[u8]| open(fd.as_fd(), path).err();
            assert_eq!((errno(b"a"), errno(b"a/b"), errno(b".")), (None, None, None));
            assert_eq!(errno(b"a/c"), Some(Errno::NOENT));
            for path in [&b"out"[..], b"out/b", b"in", b"in/b", b"a/file", b"a/file/b"] {
                let refused = [Some(Errno::LOOP), Some(Errno::NOTDIR)];
                assert!(refused.contains(&errno(path)), "{path:?}: {:?}", errno(path));
            }
        }
    }
}
