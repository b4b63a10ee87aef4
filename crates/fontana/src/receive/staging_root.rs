//! The directory that is received into, and how its staging directories are used.

use fontana_store::{Kept, Staging, StagingError, StagingOptions, TargetDirectory};
use std::sync::Arc;

/// Where staging directories are made.
#[derive(Clone)]
pub(super) struct StagingRoot {
    pub(super) directory: Arc<TargetDirectory>,
    pub(super) options: StagingOptions,
}

impl StagingRoot {
    /// Enters the staging directory of this tag: with what an earlier run left there.
    pub(super) fn enter(&self, tag: &str) -> Result<(Staging, Kept), StagingError> {
        Staging::create(Arc::clone(&self.directory), tag, self.options)
    }

    /// Whether files that exist are replaced.
    pub(super) fn overwrites(&self) -> bool {
        self.options.overwrite
    }
}
