//! A block device that is sent: not in use for writing, with blocks of zeros as holes.

use super::{LEAST_HOLE, SourceError, failed};
use crate::disk::{Disk, HostDisk};
use crate::sys;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Advice, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A device held open. If nothing else uses it, it cannot be mounted meanwhile.
pub(super) struct OpenedDevice {
    pub(super) file: OwnedFd,
    /// Its capacity in bytes.
    pub(super) size: u64,
    /// The ranges that are not zeros, ascending.
    pub(super) data: Vec<Range<u64>>,
}

/// Opens a device that no program writes to: one that is not in use, or only mounted read-only.
/// Reads all of it to find blocks of zeros, because devices do not report holes.
///
/// # Errors
/// [`SourceError::InUse`] if it, or a partition of it, is mounted read-write, belongs to a volume
/// group or an array, is a swap area, or is opened exclusively by another process.
pub(super) fn open(path: &Path) -> Result<OpenedDevice, SourceError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let open = |flags| sys::retry(|| rustix::fs::open(path, flags, Mode::empty()));
    // For a block device, O_EXCL fails while the device or a partition of it is mounted, or another
    // process has opened it with O_EXCL (open(2)).
    let file = match open(flags | OFlags::EXCL) {
        Err(Errno::BUSY) => {
            let stat = rustix::fs::stat(path).map_err(failed(path, "examine"))?;
            Uses::read(stat.st_rdev).allow_reading(path)?;
            open(flags)
        }
        result => result,
    };
    let file = file.map_err(failed(path, "open"))?;
    let size = rustix::fs::seek(&file, SeekFrom::End(0)).map_err(failed(path, "measure"))?;
    let data = data_ranges(&file, size).map_err(failed(path, "read"))?;
    Ok(OpenedDevice { file, size, data })
}

/// Whether it is a block device.
pub(super) fn is_device(stat: &Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::BlockDevice
}

/// Bytes that are read at a time.
const CHUNK: usize = 1 << 20;

/// The ranges of a device that are not zeros, in units of [`LEAST_HOLE`].
fn data_ranges(file: &OwnedFd, size: u64) -> rustix::io::Result<Vec<Range<u64>>> {
    // Advice only: an error does not matter.
    let _ = rustix::fs::fadvise(file, 0, NonZeroU64::new(size), Advice::Sequential);
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let mut chunk = vec![0; CHUNK];
    for start in (0..size).step_by(CHUNK) {
        let length = (size - start).min(CHUNK as u64) as usize;
        let chunk = chunk.get_mut(..length).unwrap_or_default();
        if HostDisk.read_full(file.as_fd(), chunk, start)? < length {
            return Err(Errno::IO); // it has become shorter
        }
        let mut at = start;
        for unit in chunk.chunks(LEAST_HOLE as usize) {
            let end = at + unit.len() as u64;
            match ranges.last_mut() {
                _ if is_zero(unit) => {}
                Some(last) if last.end == at => last.end = end,
                _ => ranges.push(at..end),
            }
            at = end;
        }
    }
    Ok(ranges)
}

/// Whether all bytes are zeros. A device with data is mostly recognized by its first bytes.
fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(256).all(|part| part.iter().fold(0, |or, byte| or | byte) == 0)
}

/// What uses a device and its partitions.
#[derive(Debug, Default, PartialEq, Eq)]
struct Uses {
    /// Where file systems on it are mounted.
    read_only: Vec<PathBuf>,
    read_write: Vec<PathBuf>,
    /// Whether a volume group, an array or a swap area is on it.
    is_held: bool,
}

impl Uses {
    fn read(device: u64) -> Self {
        let devices = with_partitions(device);
        let mut uses = Self::default();
        // What cannot be read shows no use, and then reading is not allowed.
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        for mount in mounts.lines().filter_map(Mount::parse) {
            // Of btrfs, the number is not that of its device.
            let of_source = || rustix::fs::stat(mount.source).map_or(0, |stat| stat.st_rdev);
            if devices.contains(&mount.device) || devices.contains(&of_source()) {
                let list =
                    if mount.is_read_only { &mut uses.read_only } else { &mut uses.read_write };
                list.push(PathBuf::from(mount.at));
            }
        }
        let has_holders = |device: &u64| {
            let holders = std::fs::read_dir(sys_path(*device).join("holders"));
            holders.is_ok_and(|mut holders| holders.next().is_some())
        };
        let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
        let swaps = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        let mut swaps = swaps.filter_map(|path| Some(rustix::fs::stat(path).ok()?.st_rdev));
        uses.is_held =
            devices.iter().any(has_holders) || swaps.any(|device| devices.contains(&device));
        uses
    }

    /// # Errors
    /// [`SourceError::InUse`] unless the uses are known, and all of them read.
    fn allow_reading(self, path: &Path) -> Result<(), SourceError> {
        let is_only_read =
            !self.read_only.is_empty() && self.read_write.is_empty() && !self.is_held;
        if is_only_read {
            return Ok(());
        }
        let mounted_at = self.read_write.into_iter().next();
        Err(SourceError::InUse { path: path.to_owned(), mounted_at })
    }
}

fn sys_path(device: u64) -> PathBuf {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    PathBuf::from(format!("/sys/dev/block/{major}:{minor}"))
}

/// The numbers of a device and of its partitions.
fn with_partitions(device: u64) -> BTreeSet<u64> {
    let mut devices = BTreeSet::from([device]);
    let entries = std::fs::read_dir(sys_path(device)).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.path().join("partition").exists()) {
        let number = std::fs::read_to_string(entry.path().join("dev"));
        devices.extend(number.ok().as_deref().and_then(parse_device));
    }
    devices
}

/// A device number in the form `8:1`.
fn parse_device(text: &str) -> Option<u64> {
    let (major, minor) = text.trim().split_once(':')?;
    Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// A line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
#[derive(Debug, PartialEq, Eq)]
struct Mount<'a> {
    device: u64,
    at: &'a str,
    source: &'a str,
    /// Of the file system, not of this mount: another one may write to it.
    is_read_only: bool,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(2);
        let device = parse_device(mount.next()?)?;
        let at = mount.nth(1)?;
        let mut file_system = file_system.split(' ').skip(1);
        let (source, options) = (file_system.next()?, file_system.next()?);
        let is_read_only = options.split(',').any(|option| option == "ro");
        Some(Self { device, at, source, is_read_only })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_as_the_manual_describes_them() {
        // The line of the manual, and one whose mount is read-only on a file system that is not.
        let line = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let mount = Mount::parse(line).unwrap();
        assert_eq!((mount.at, mount.source, mount.is_read_only), ("/mnt2", "/dev/root", false));
        assert_eq!((rustix::fs::major(mount.device), rustix::fs::minor(mount.device)), (98, 0));
        let line = "41 35 8:1 / /snapshot ro,relatime shared:7 - ext4 /dev/sda1 rw";
        assert!(!Mount::parse(line).unwrap().is_read_only);
        let line = "41 35 8:1 / /cd ro - iso9660 /dev/sr0 ro,nojoliet";
        assert!(Mount::parse(line).unwrap().is_read_only);
        assert_eq!(Mount::parse("41 35 8:1 / /cd ro"), None);
    }

    #[test]
    fn only_known_uses_that_read_are_allowed() {
        let mounted = |read_only: &[&str], read_write: &[&str], is_held| {
            let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
            let uses = Uses { read_only: paths(read_only), read_write: paths(read_write), is_held };
            uses.allow_reading(Path::new("/dev/x"))
        };
        assert_eq!(mounted(&["/cd"], &[], false), Ok(()));
        let refused = |mounted_at: Option<&str>| {
            let mounted_at = mounted_at.map(PathBuf::from);
            Err(SourceError::InUse { path: "/dev/x".into(), mounted_at })
        };
        assert_eq!(mounted(&["/cd"], &["/"], false), refused(Some("/")));
        assert_eq!(mounted(&["/cd"], &[], true), refused(None));
        assert_eq!(mounted(&[], &[], false), refused(None));
    }

    #[test]
    fn units_of_zeros_are_holes() {
        let file = tempfile::tempfile().unwrap();
        let unit = LEAST_HOLE;
        let size = 40 * unit + 100;
        file.set_len(size).unwrap();
        let write = |at| std::os::unix::fs::FileExt::write_all_at(&file, b"x", at).unwrap();
        for at in [0, 17 * unit - 1, 17 * unit, size - 1] {
            write(at);
        }
        let data = data_ranges(&file.into(), size).unwrap();
        assert_eq!(data, [0..unit, 16 * unit..18 * unit, 40 * unit..size]);
    }
}
