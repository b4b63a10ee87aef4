//! The head of a mirror, of `fontana publish` and `fontana serve`.

use crate::args::HeadSigning;
use crate::key_file;
use fontana::wire::{Manifest, SecretKey};
use fontana::{Error, MirrorHead, NewFile, Outcome};
use fontana_console::failure::Failure;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// How heads are signed. By default they are not.
#[derive(Default)]
pub(crate) struct Signing {
    key: Option<SecretKey>,
    lifetime: Option<Duration>,
}

impl std::fmt::Debug for Signing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signing").finish_non_exhaustive()
    }
}

impl Signing {
    pub(crate) fn read(arguments: &HeadSigning) -> Result<Self, Failure> {
        let read = |path| key_file::read(path, key_file::KEYGEN);
        let key = arguments.sign.as_deref().map(read).transpose()?;
        let lifetime = Some(arguments.expires).filter(|time| key.is_some() && !time.is_zero());
        Ok(Self { key, lifetime })
    }

    /// The head of a manifest.
    pub(crate) fn head(&self, manifest: &Manifest) -> Result<MirrorHead, Error> {
        MirrorHead::issue(manifest, self.key.as_ref(), self.lifetime)
    }
}

/// Writes a head to its file in a directory, atomically. It replaces that of earlier content.
pub(crate) fn write(directory: &Path, head: &MirrorHead) -> Result<(), Failure> {
    let path = directory.join(MirrorHead::FILE_NAME);
    let written = NewFile::create_in(directory).and_then(|mut file| {
        file.write_all(head.file_bytes())?;
        file.replace(&path)
    });
    written.map_err(|error| {
        let message = format!("cannot write {path:?}: {error}");
        Failure::new(Outcome::Refused, message, "choose a directory that this user may write to")
    })
}
