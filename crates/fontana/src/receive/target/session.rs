//! The staging directory of a session without a manifest (plain FLUTE, FCAST).

use super::remembered::Remembered;
use super::written::WrittenFiles;
use crate::cancellation::CancellationToken;
use crate::error::{Error, SetupError};
use crate::receive::staging_root::StagingRoot;
use fontana_proto::SessionKey;
use fontana_store::{Identity, Kept, Staging, StagingError, TargetName};
use fontana_wire::{RelativePath, parse_content_location};
use md5::{Digest, Md5};
use std::sync::Arc;

/// Bytes of an existing file that are hashed at a time.
const CHUNK: usize = 64 << 10;

/// A staging directory that is made when the first object is opened, and that no later run resumes:
/// files come in any order.
pub(super) struct SessionStaging {
    root: StagingRoot,
    /// What tags begin with.
    kind: &'static str,
    staging: Option<Arc<Staging>>,
}

/// A file of the target directory: as a path for people, and as a checked name.
pub(super) struct NamedFile {
    pub(super) path: RelativePath,
    pub(super) target: TargetName,
}

impl SessionStaging {
    pub(super) fn new(root: StagingRoot, kind: &'static str) -> Self {
        Self { root, kind, staging: None }
    }

    /// The staging directory, made if there is none yet.
    pub(super) fn enter(&mut self, session: SessionKey) -> Result<Arc<Staging>, Error> {
        if let Some(staging) = &self.staging {
            return Ok(Arc::clone(staging));
        }
        let SessionKey { source, tsi } = session;
        let tag = format!("{}-{source}-{tsi}", self.kind).replace(['.', ':'], "-");
        let (mut staging, left) = self.root.enter(&tag)?;
        if left != Kept::default() {
            // The notes of a run that was killed number other files.
            staging.remove()?;
            drop(staging);
            staging = self.root.enter(&tag)?.0;
        }
        Ok(Arc::clone(self.staging.insert(Arc::new(staging))))
    }

    /// The staging directory, if an object was opened.
    pub(super) fn get(&self) -> Option<&Arc<Staging>> {
        self.staging.as_ref()
    }

    /// The file that a Content-Location names, if it may have that name here.
    pub(super) fn file_of(&self, location: &str) -> Result<NamedFile, Error> {
        let named = Self::name_of(location)?;
        self.check_free(&named)?;
        Ok(named)
    }

    /// Rejects a name that is taken.
    pub(super) fn check_free(&self, named: &NamedFile) -> Result<(), Error> {
        Ok(self.root.directory.check_free(&named.target, self.root.overwrites())?)
    }

    /// The MD5 of the file of this length with a name; `None` if it is none, is changed meanwhile,
    /// or the reception is `abandoned`.
    pub(super) fn md5_of(
        &self,
        named: &NamedFile,
        length: u64,
        abandoned: &CancellationToken,
    ) -> Result<Option<[u8; 16]>, Error> {
        let Some(file) = self.root.directory.existing(&named.target, length)? else {
            return Ok(None);
        };
        let (mut md5, mut chunk, mut at) = (Md5::new(), vec![0; CHUNK], 0);
        while at < length {
            let count = CHUNK.min(usize::try_from(length - at).unwrap_or(CHUNK));
            let part = chunk.get_mut(..count).unwrap_or_default();
            if abandoned.is_cancelled() || !file.read_at(at, part)? {
                return Ok(None);
            }
            md5.update(part);
            at += count as u64;
        }
        Ok(Some(md5.finalize().into()))
    }

    /// Recalls what earlier runs of a session have written.
    pub(super) fn recall(
        &self,
        session: SessionKey,
        written: &mut WrittenFiles,
    ) -> Result<Remembered, Error> {
        Remembered::open(Arc::clone(&self.root.directory), session, written)
    }

    /// The state of the file with a name in the target directory; `None` if there is none.
    pub(super) fn state_of(&self, name: &TargetName) -> Result<Option<Identity>, Error> {
        Ok(self.root.directory.identity(name)?)
    }

    /// Deletes a file of the target directory, and waits until that is on the disk.
    pub(super) fn delete(&self, name: &TargetName) -> Result<(), Error> {
        self.root.directory.remove_file(name)?;
        Ok(self.root.directory.sync_removed(std::iter::once(name))?)
    }

    /// The file that a Content-Location names.
    pub(super) fn name_of(location: &str) -> Result<NamedFile, Error> {
        let path = parse_content_location(location)
            .map_err(|error| SetupError::Name { name: location.to_owned(), error })?;
        let components: Vec<_> = path.components().collect();
        let target = TargetName::new(&components).map_err(StagingError::from)?;
        Ok(NamedFile { path, target })
    }

    /// Completes the directories that files brought with them, and removes the staging directory.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        if let Some(staging) = self.staging.take() {
            let failed = staging.commit_directories()?;
            staging.remove_when_done();
            return failed.into_iter().next().map_or(Ok(()), |error| Err(error.into()));
        }
        Ok(())
    }

    /// Removes the staging directory, with all that was not committed. If that fails, the next
    /// receiver of the session removes it.
    pub(super) fn discard(&mut self) {
        if let Some(staging) = self.staging.take() {
            let _ = staging.finish_directories();
            let _ = staging.remove();
        }
    }
}
