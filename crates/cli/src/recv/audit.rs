//! The audit log (`--audit`): one line of JSON for each file that got its name, and for each
//! complete version.

use fontana::wire::{Hash, Printable, PublicKey};
use fontana::{AcceptedManifest, NamedFile, Outcome, SessionKey};
use fontana_console::failure::Failure;
use fontana_console::units::rfc3339;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Files of earlier lines that are kept: FILE.1, the newest, to FILE.5.
const OLD_FILES: u32 = 5;

/// An audit log that is being written.
pub(super) struct AuditLog {
    path: PathBuf,
    /// A file that would be longer is renamed first.
    max_size: u64,
    file: File,
    size: u64,
    key: Option<String>,
    session: Option<String>,
    content: Option<AcceptedManifest>,
    /// The first line that could not be written.
    failure: Option<io::Error>,
}

#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blake3: Option<String>,
    bytes: u64,
    version: Option<u64>,
    manifest: Option<String>,
    session: Option<&'a str>,
    key: Option<&'a str>,
}

impl AuditLog {
    /// Opens the log, to append.
    pub(super) fn open(
        path: &Path,
        max_size: u64,
        key: Option<PublicKey>,
    ) -> Result<Self, Failure> {
        let file = open(path).map_err(|error| {
            let message = format!("cannot write the audit log {}: {error}", path.display());
            Failure::new(Outcome::Io, message, "choose another file: --audit")
        })?;
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        Ok(Self {
            path: path.to_owned(),
            max_size,
            file,
            size,
            key: key.map(|key| key.to_string()),
            session: None,
            content: None,
            failure: None,
        })
    }

    /// A version was accepted: the lines that follow are about it.
    pub(super) fn begin(&mut self, session: SessionKey, hash: Hash, version: u64) {
        self.session = Some(format!("{}/{}", session.source, session.tsi.0));
        self.content = Some(AcceptedManifest { hash, version });
    }

    /// A file or link got its name.
    pub(super) fn file(&mut self, file: &NamedFile) {
        let name = Some(Printable(&file.path).to_string());
        self.append("file", name, file.hash.map(|hash| hash.to_string()), file.length);
    }

    /// The version is complete. Waits until the lines are on the disk.
    pub(super) fn complete(&mut self, bytes: u64) {
        self.append("version", None, None, bytes);
        if let Err(error) = self.file.sync_data() {
            self.failure.get_or_insert(error);
        }
    }

    /// Why the log is not complete.
    pub(super) fn failure(&self) -> Option<Failure> {
        let error = self.failure.as_ref()?;
        let path = self.path.display();
        let message = format!("the audit log {path} is not complete: {error}");
        Some(Failure::new(Outcome::Io, message, "what was received is complete and verified"))
    }

    fn append(
        &mut self,
        event: &'static str,
        name: Option<String>,
        blake3: Option<String>,
        bytes: u64,
    ) {
        let line = Line {
            event,
            time: rfc3339(SystemTime::now()),
            name,
            blake3,
            bytes,
            version: self.content.map(|content| content.version),
            manifest: self.content.map(|content| content.hash.to_string()),
            session: self.session.as_deref(),
            key: self.key.as_deref(),
        };
        let written = serde_json::to_vec(&line).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            self.write(&line)
        });
        if let Err(error) = written {
            self.failure.get_or_insert(error);
        }
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let length = line.len() as u64;
        if self.size > 0 && self.size + length > self.max_size {
            self.rotate()?;
        }
        self.file.write_all(line)?;
        self.size += length;
        Ok(())
    }

    /// Renames the file and those before it, of which the oldest is lost.
    fn rotate(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        let old = |number| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        for number in (1..OLD_FILES).rev() {
            match std::fs::rename(old(number), old(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        std::fs::rename(&self.path, old(1))?;
        self.file = open(&self.path)?;
        self.size = 0;
        Ok(())
    }
}

/// A link in its place is not followed: another user may have put it there, to a file that only
/// this one may write.
fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    OpenOptions::new().create(true).append(true).custom_flags(flags).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_lines_are_renamed_and_the_oldest_are_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit");
        let mut log = AuditLog::open(&path, 400, None).unwrap();
        for _ in 0..40 {
            log.append("file", Some("a \"quoted\" name\n".into()), None, 7);
        }
        log.complete(40);
        assert!(log.failure().is_none());
        let mut names: Vec<_> = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["audit", "audit.1", "audit.2", "audit.3", "audit.4", "audit.5"]);
        for name in names {
            let text = std::fs::read_to_string(directory.path().join(name)).unwrap();
            assert!(text.len() <= 400);
            for line in text.lines() {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                assert!(line["event"].is_string() && line["time"].is_string());
            }
        }
    }

    #[test]
    fn a_log_that_cannot_be_continued_is_a_failure() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit");
        let mut log = AuditLog::open(&path, 100, None).unwrap();
        // A file cannot take the name of a directory.
        std::fs::write(directory.path().join("audit.4"), "old").unwrap();
        std::fs::create_dir(directory.path().join("audit.5")).unwrap();
        log.append("file", None, None, 1);
        assert!(log.failure().is_none());
        log.append("file", None, None, 2);
        assert_eq!(log.failure().unwrap().outcome, Outcome::Io);
        assert!(AuditLog::open(directory.path(), 100, None).is_err());
    }

    #[test]
    fn a_link_in_the_place_of_the_log_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("audit"), directory.path().join("other"));
        std::fs::write(&other, "of another program").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(AuditLog::open(&path, 100, None).is_err());
        std::fs::remove_file(&path).unwrap();
        let mut log = AuditLog::open(&path, 100, None).unwrap();
        // When it is renamed, too.
        log.append("file", None, None, 1);
        std::fs::rename(&path, directory.path().join("first")).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        log.append("file", None, None, 2);
        assert!(log.failure().is_none());
        assert_eq!(std::fs::read(&other).unwrap(), b"of another program");
    }
}
