//! The highest version that a key has signed, in a file beside it: `KEYFILE.version`.
//!
//! Versions of `send --watch` are times, and receivers ignore older ones. A publisher whose clock
//! was ahead, and was set right, goes on above its highest version.

use crate::key_file;
use fontana_console::console::Console;
use fontana_console::units::Time;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Digits of the largest version. The file has always as many, so that it is overwritten at once.
const DIGITS: usize = 20;
/// How far versions may be ahead of the clock before that is said.
const AHEAD: Duration = Duration::from_secs(60);

/// The file, open: a process that is confined later can still write to it.
#[derive(Debug)]
pub(crate) struct VersionFile {
    path: PathBuf,
    /// Or why versions cannot be kept.
    file: io::Result<File>,
    highest: Option<u64>,
    is_warned: bool,
}

impl VersionFile {
    /// Opens the file beside a key, and creates it if there is none.
    pub(crate) fn beside(key: &Path) -> Self {
        let path = path_beside(key);
        let open = |options: &OpenOptions| -> io::Result<(File, Option<u64>)> {
            let file = options.open(&path)?;
            let highest = read(&file)?;
            Ok((file, highest))
        };
        let mut writable = File::options();
        writable.read(true).write(true).create(true).truncate(false).mode(key_file::MODE);
        let (file, highest) = match open(&writable) {
            Ok((file, highest)) => (Ok(file), highest),
            // A place that is read-only may have it nevertheless.
            Err(error) => {
                let there = open(File::options().read(true));
                (Err(error), there.ok().and_then(|(_, highest)| highest))
            }
        };
        Self { path, file, highest, is_warned: false }
    }

    /// The highest version so far.
    pub(crate) fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// Keeps a version that follows the others. Warns once if that cannot be done, and says if the
    /// clock is behind.
    pub(crate) fn keep(&mut self, version: u64, console: &Console) {
        if let Err(error) = self.raise(version)
            && !std::mem::replace(&mut self.is_warned, true)
        {
            let path = &self.path;
            console.warning(
                &format!("the highest version cannot be kept in {path:?}: {error}"),
                "if this host's clock is set back, receivers ignore new versions for as long; move \
                 the key to a directory that this user may write to",
            );
        }
    }

    /// Says that the clock is behind the versions of the key.
    pub(crate) fn compare_with_clock(&self, console: &Console) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ahead = self.highest.and_then(|ms| Duration::from_millis(ms).checked_sub(now));
        if let Some(ahead) = ahead.filter(|ahead| *ahead > AHEAD) {
            console.say(format_args!(
                "the highest version of the key is {} ahead of this host's clock: versions go on \
                 above it",
                Time(Duration::from_secs(ahead.as_secs())),
            ));
        }
    }

    /// Keeps a version that the user has chosen, or warns if receivers that follow the key will
    /// ignore it. A first version is that of many keys, and not kept.
    pub(crate) fn keep_chosen(key: &Path, version: u64, console: &Console) {
        /// That of content whose user has chosen none.
        const FIRST: u64 = 1;
        if version == FIRST && !path_beside(key).exists() {
            return;
        }
        let mut kept = Self::beside(key);
        match kept.highest.filter(|highest| *highest > version) {
            Some(highest) => console.warning(
                &format!("the key has signed version {highest}, and this is version {version}"),
                &format!(
                    "receivers that have had the other one ignore it; to replace that: \
                     --content-version {}",
                    highest.saturating_add(1)
                ),
            ),
            None => kept.keep(version, console),
        }
    }

    /// Another process may have written to the file.
    fn raise(&mut self, version: u64) -> io::Result<()> {
        let refused = |error: &io::Error| io::Error::new(error.kind(), error.to_string());
        let file = self.file.as_ref().map_err(refused)?;
        let highest = read(file)?.max(self.highest);
        self.highest = highest.max(Some(version));
        if self.highest != highest || highest.is_none() {
            let text = format!("{:0DIGITS$}\n", self.highest.unwrap_or_default());
            file.write_all_at(text.as_bytes(), 0)?;
            file.sync_data()?;
        }
        Ok(())
    }
}

fn path_beside(key: &Path) -> PathBuf {
    let mut path = OsString::from(key);
    path.push(".version");
    path.into()
}

/// Reads the version; `None` from an empty file.
fn read(file: &File) -> io::Result<Option<u64>> {
    let mut text = [0; DIGITS + 1];
    let mut length = 0;
    while let Some(rest) = text.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, length as u64)? {
            0 => break,
            more => length += more,
        }
    }
    let text = text.get(..length).and_then(|text| str::from_utf8(text).ok()).map(str::trim_ascii);
    match text {
        Some("") => Ok(None),
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().map(Some).map_err(io::Error::other)
        }
        _ => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "it has something else than a version"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn versions_only_grow_in_a_file_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let key = directory.path().join("key");
        let mut kept = VersionFile::beside(&key);
        assert_eq!(kept.highest(), None);
        for (version, highest) in [(7, 7), (12, 12), (9, 12)] {
            kept.raise(version).unwrap();
            assert_eq!(VersionFile::beside(&key).highest(), Some(highest));
        }
        VersionFile::beside(&key).raise(20).unwrap();
        kept.raise(15).unwrap();
        assert_eq!(kept.highest(), Some(20), "another process has signed it");
        let metadata = fs::metadata(directory.path().join("key.version")).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        kept.raise(u64::MAX).unwrap();
        assert_eq!(VersionFile::beside(&key).highest(), Some(u64::MAX));
    }

    #[test]
    fn a_file_that_is_none_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let key = directory.path().join("key");
        for text in ["a letter\n", "12 13\n", "-1\n"] {
            fs::write(directory.path().join("key.version"), text).unwrap();
            let mut kept = VersionFile::beside(&key);
            assert_eq!(kept.highest(), None);
            assert!(kept.raise(7).unwrap_err().to_string().contains("something else"));
            assert_eq!(fs::read(directory.path().join("key.version")).unwrap(), text.as_bytes());
        }
        let nowhere = VersionFile::beside(&directory.path().join("none/key")).raise(7);
        assert_eq!(nowhere.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
