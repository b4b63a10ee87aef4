//! Bytes of unknown length, written down before they are sent: a pipe becomes a file without a name.

use crate::error::Error;
use std::fs::{File, Permissions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Everything that a reader had to give, in a file that has no name and vanishes with this value.
///
/// ```no_run
/// use fontana::{SendOptions, SendSession, Spool};
///
/// let spool = Spool::fill(&mut std::io::stdin(), "/var/tmp")?;
/// let options = SendOptions { name: Some(b"dump".to_vec()), ..SendOptions::new(vec![spool.path()]) };
/// let session = SendSession::prepare(options)?;
/// # Ok::<(), fontana::Error>(())
/// ```
#[derive(Debug)]
pub struct Spool {
    file: File,
    length: u64,
}

impl Spool {
    /// Reads to the end, into a file on the disk of `directory`: there has to be room for all of it.
    ///
    /// # Errors
    /// [`Error::System`] if the file cannot be created or written; [`Error::Producer`] if reading
    /// fails.
    pub fn fill(reader: &mut impl Read, directory: impl AsRef<Path>) -> Result<Self, Error> {
        let failed = |error| Error::System { doing: "spool what is to be sent", error };
        let file = tempfile::tempfile_in(directory).map_err(failed)?;
        let mut writer = Writer { file: &file, error: None };
        let length = match io::copy(reader, &mut writer) {
            Ok(length) => length,
            Err(error) => {
                return Err(match writer.error {
                    Some(error) => failed(error),
                    None => Error::Producer { error },
                });
            }
        };
        // What receivers give the file they make of it. Nobody can open this one by a name.
        file.set_permissions(Permissions::from_mode(0o644)).map_err(failed)?;
        Ok(Self { file, length })
    }

    /// Under which this process can open it, for as long as this value lives.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }

    /// Bytes.
    pub fn length(&self) -> u64 {
        self.length
    }
}

/// Remembers its errors, so that they are not taken for the reader's.
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
