//! The staging directory of a session without a manifest (plain FLUTE, FCAST).

use crate::error::{Error, SetupError};
use crate::receive::staging_root::StagingRoot;
use fontana_proto::SessionKey;
use fontana_store::{Identity, Kept, Staging, StagingError, TargetName};
use fontana_wire::{RelativePath, parse_content_location};
use std::sync::Arc;

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
        self.root.directory.check_free(&named.target, self.root.overwrites())?;
        Ok(named)
    }

    /// The state of the file with a name in the target directory; `None` if there is none.
    pub(super) fn state_of(&self, name: &TargetName) -> Result<Option<Identity>, Error> {
        Ok(self.root.directory.identity(name)?)
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
