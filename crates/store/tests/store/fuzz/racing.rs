//! Another process that replaces directories of the target by links while files are received: no
//! byte leaves the target. It acts before any call to the file system, as a fuzz target.

use fontana_store::{
    BootId, Disk, Errno, FileAttributes, HostDisk, Staging, StagingOptions, TargetDirectory,
    TargetName,
};
use fontana_testing::Script;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, Stat, Timestamps};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

type Result<T> = std::result::Result<T, Errno>;

/// A host's disk, beside which another process works.
#[derive(Debug)]
struct RacingDisk {
    host: HostDisk,
    inside: PathBuf,
    outside: PathBuf,
    /// Choices of the other process: one for each call.
    choices: Mutex<Script<'static>>,
}

impl RacingDisk {
    fn new(inside: &Path, outside: &Path, input: &[u8]) -> Self {
        let choices = Mutex::new(Script::new(input.to_vec().leak()));
        let inside = inside.canonicalize().unwrap();
        Self { host: HostDisk, inside, outside: outside.into(), choices }
    }

    /// What the other process does before a call.
    fn race(&self) -> &HostDisk {
        let mut choices = self.choices.lock().unwrap();
        let name = *choices.pick(&["a", "a/b", "a/b/file", "c", "c/file"]);
        let path = self.inside.join(name);
        // It does not follow its own links.
        let parent = path.parent().and_then(|parent| Some((parent, parent.canonicalize().ok()?)));
        let is_inside = parent.is_some_and(|(parent, resolved)| parent == resolved);
        if is_inside && choices.once_in(3) {
            let aside = self.inside.join(format!("{}.aside", name.replace('/', "-")));
            // A name that is not there, or not movable, is left.
            let _ = match choices.below(5) {
                0 => fs::rename(&path, &aside).and_then(|()| symlink(&self.outside, &path)),
                1 => fs::remove_file(&path).and_then(|()| fs::rename(&aside, &path)),
                2 => symlink(self.outside.join("witness"), &path),
                3 => symlink("..", &path),
                _ => fs::remove_file(&path),
            };
        }
        &self.host
    }
}

/// A disk whose calls all begin with those of the other process.
macro_rules! racing {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        impl Disk for RacingDisk {
            $(fn $name(&self, $($argument: $kind),*) -> $result {
                self.race().$name($($argument),*)
            })*
        }
    };
}

racing! {
    fn boot() -> BootId;
    fn open(directory: BorrowedFd<'_>, name: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd>;
    fn stat(file: BorrowedFd<'_>) -> Result<Stat>;
    fn stat_at(directory: BorrowedFd<'_>, name: &[u8]) -> Result<Stat>;
    fn available(file: BorrowedFd<'_>) -> Option<u64>;
    fn read(file: BorrowedFd<'_>, out: &mut [u8], offset: u64) -> Result<usize>;
    fn write(file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize>;
    fn append(file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize>;
    fn set_length(file: BorrowedFd<'_>, length: u64) -> Result<()>;
    fn reserve(file: BorrowedFd<'_>, offset: u64, length: u64) -> Result<()>;
    fn punch(file: BorrowedFd<'_>, offset: u64, length: u64) -> Result<()>;
    fn set_mode(file: BorrowedFd<'_>, mode: Mode) -> Result<()>;
    fn set_times(file: BorrowedFd<'_>, times: &Timestamps) -> Result<()>;
    fn set_times_at(directory: BorrowedFd<'_>, name: &[u8], times: &Timestamps) -> Result<()>;
    fn sync(file: BorrowedFd<'_>) -> Result<()>;
    fn sync_data(file: BorrowedFd<'_>) -> Result<()>;
    fn sync_directory(directory: BorrowedFd<'_>) -> Result<()>;
    fn sync_file_system(file: BorrowedFd<'_>) -> Result<()>;
    fn reports_lost_writes() -> bool;
    fn make_directory(directory: BorrowedFd<'_>, name: &[u8], mode: Mode) -> Result<()>;
    fn make_link(leads_to: &[u8], directory: BorrowedFd<'_>, name: &[u8]) -> Result<()>;
    fn rename(from: BorrowedFd<'_>, old: &[u8], to: BorrowedFd<'_>, new: &[u8]) -> Result<()>;
    fn rename_to_free(from: BorrowedFd<'_>, old: &[u8], to: BorrowedFd<'_>, new: &[u8]) -> Result<()>;
    fn unlink(directory: BorrowedFd<'_>, name: &[u8]) -> Result<()>;
    fn remove_directory(directory: BorrowedFd<'_>, name: &[u8]) -> Result<()>;
}

fn target_name(path: &str) -> TargetName {
    TargetName::new(&path.split('/').collect::<Vec<_>>()).unwrap()
}

/// Everything that lies outside, as it was.
fn assert_untouched(outside: &Path) {
    assert_eq!(crate::fixtures::names_in(outside), ["b", "file", "witness"]);
    assert_eq!(crate::fixtures::names_in(&outside.join("b")), ["file"]);
    for name in ["file", "b/file", "witness"] {
        assert_eq!(fs::read(outside.join(name)).unwrap(), b"outside", "{name}");
        let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(outside.join(name)).unwrap());
        assert_eq!(mode & 0o777, 0o604, "{name}");
    }
}

#[test]
fn any_replacements_of_directories_by_links() {
    bolero::check!().with_iterations(40).for_each(|input: &[u8]| {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(outside.path().join("b")).unwrap();
        for name in ["file", "b/file", "witness"] {
            fs::write(outside.path().join(name), "outside").unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o604);
            fs::set_permissions(outside.path().join(name), mode).unwrap();
        }
        let disk = Arc::new(RacingDisk::new(inside.path(), outside.path(), input));
        let mut script = Script::new(input).skip(Script::STEPS);
        for _ in 0..3 {
            let shared: Arc<dyn Disk> = Arc::clone(&disk) as _;
            let Ok(target) = TargetDirectory::open_on(inside.path(), shared) else { continue };
            let target = Arc::new(target);
            let options =
                StagingOptions { overwrite: script.once_in(2), ..StagingOptions::default() };
            let Ok((staging, _)) = Staging::create(Arc::clone(&target), "test", options) else {
                continue;
            };
            let mut files = Vec::new();
            for path in ["a/b/file", "c/file", "a/other"] {
                let name = target_name(path);
                let _ = target.check_free(&name, script.once_in(2));
                let _ = target.check_directory(&target_name("a/b"));
                let _ = target.has_file(&name, 100);
                let added = match script.below(4) {
                    0 => staging.add_link(name, b"b/file".to_vec()),
                    1 => staging.add_existing(name, 7),
                    _ => staging.add_file(name, 100, FileAttributes::default()),
                };
                let Ok(file) = added else { continue };
                let _ = staging.write_file(file, 0, &[7; 100]);
                files.push(file);
            }
            let _ = staging.note(&[]);
            let _ = staging.sync();
            let _ = staging.commit(&files);
            if script.once_in(2) {
                let _ = staging.remove();
            }
            assert_untouched(outside.path());
        }
    });
}
