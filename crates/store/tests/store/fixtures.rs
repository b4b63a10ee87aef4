//! Bytes, files and file systems for the tests.

use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{FecScheme, ObjectLayout, Oti};
use fontana_store::{
    Extents, FileIndex, Staging, StagingError, StagingOptions, TargetDirectory, TargetName,
};
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::CString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A reproducible sequence of bytes and choices (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

pub(crate) fn raptorq(length: u64, symbol_size: u16, blocks: u8, sub_blocks: u16) -> ObjectLayout {
    let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: blocks, sub_blocks, alignment: 4 });
    Oti { transfer_length: length, symbol_size, scheme }.layout().unwrap()
}

pub(crate) fn no_code(length: u64, symbol_size: u16, block_length: u32) -> ObjectLayout {
    let scheme = FecScheme::NoCode(NoCode { max_source_block_length: block_length });
    Oti { transfer_length: length, symbol_size, scheme }.layout().unwrap()
}

pub(crate) fn whole_file(length: u64) -> Extents {
    Extents::whole_file(FileIndex(0), length)
}

pub(crate) fn name(name: &str) -> TargetName {
    TargetName::new(&[name.as_bytes()]).unwrap()
}

pub(crate) fn staging_with(
    path: &Path,
    options: StagingOptions,
) -> Result<Arc<Staging>, StagingError> {
    let target = Arc::new(TargetDirectory::open(path)?);
    Ok(Arc::new(Staging::create(target, "test", options)?.0))
}

pub(crate) fn staging(path: &Path) -> Arc<Staging> {
    staging_with(path, StagingOptions::default()).unwrap()
}

/// The names in a directory, sorted.
pub(crate) fn names_in(path: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().into_string().unwrap()
    };
    let mut names: Vec<String> = std::fs::read_dir(path).unwrap().map(name).collect();
    names.sort();
    names
}

/// The number of descriptors of this process below `path`.
pub(crate) fn descriptors_below(path: &Path) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    links
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter(|link| link.starts_with(path))
        .count()
}

/// A mounted file system, unmounted when dropped.
pub(crate) struct Mount {
    pub(crate) path: PathBuf,
    _directory: tempfile::TempDir,
}

impl Mount {
    /// Mounts a tmpfs. Without root `None`, with a message; in CI that is a failure.
    pub(crate) fn tmpfs(options: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!in_ci, "mounting a tmpfs needs root, and CI skips nothing");
            // Not by `eprintln`, whose output the test harness captures.
            let _ = writeln!(std::io::stderr(), "SKIPPED: mounting a tmpfs needs root");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        let options = CString::new(options).unwrap();
        rustix::mount::mount("tmpfs", &path, "tmpfs", MountFlags::empty(), &*options).unwrap();
        Some(Self { path, _directory: directory })
    }

    pub(crate) fn make_read_only(&self) {
        rustix::mount::mount_remount(&self.path, MountFlags::RDONLY, c"").unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a failing test may still hold descriptors.
        let _ = rustix::mount::unmount(&self.path, UnmountFlags::DETACH);
    }
}

pub(crate) fn make_pipe(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}
