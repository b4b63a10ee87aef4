//! A copy of standard input, read to its end before it is sent.

use crate::error::{Error, IoError};
use std::fs::{File, Permissions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The bytes of a reader, copied to an unnamed file. The file is deleted when this value is
/// dropped.
///
/// ```no_run
/// use fontana::{Sender, StdinCopy};
///
/// let copy = StdinCopy::read(&mut std::io::stdin(), "/var/tmp")?;
/// let sender = Sender::builder([copy.path()]).name("dump").start()?;
/// # Ok::<(), fontana::Error>(())
/// ```
#[derive(Debug)]
pub struct StdinCopy {
    file: File,
    length: u64,
}

impl StdinCopy {
    /// Reads to the end, into a file on the disk of `directory`, which must have room for all of
    /// it.
    ///
    /// # Errors
    /// [`IoError::System`] if the file cannot be created or written; [`IoError::Producer`] if
    /// reading fails.
    pub fn read(reader: &mut impl Read, directory: impl AsRef<Path>) -> Result<Self, Error> {
        let failed = |error| IoError::System { doing: "spool what is to be sent", error };
        let file = tempfile::tempfile_in(directory).map_err(failed)?;
        let mut writer = Writer { file: &file, error: None };
        let length = match io::copy(reader, &mut writer) {
            Ok(length) => length,
            Err(error) => {
                return Err(match writer.error {
                    Some(error) => failed(error).into(),
                    None => IoError::Producer { error }.into(),
                });
            }
        };
        // The mode that receivers give their file. No other process can open this one by name.
        file.set_permissions(Permissions::from_mode(0o644)).map_err(failed)?;
        Ok(Self { file, length })
    }

    /// The path under which this process can open the file until this value is dropped.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// Length of the copy in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }
}

/// A writer that records its errors, to tell them from those of the reader.
struct Writer<'a> {
    file: &'a File,
    error: Option<io::Error>,
}

impl io::Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| {
            let kind = error.kind();
            self.error = Some(error);
            kind.into()
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
