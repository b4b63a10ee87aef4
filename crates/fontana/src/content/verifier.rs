//! Blocks of files that may grow while they are sent.

use crate::shared::Lock;
use fontana_fec::Sbn;
use fontana_store::{Deviations, ObjectSource, SourceError};
use fontana_wire::{BlockHasher, Hash};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Decides by the hashes of an object's blocks whether files that were written to still contain
/// what is sent of them, as a log does that only grows.
///
/// A result is valid as long as the files stay in the states in which they were compared.
pub(crate) struct BlockVerifier {
    source: Arc<ObjectSource>,
    hashes: Arc<[Hash]>,
    /// The states in which a block's files were compared last.
    verified: Lock<BTreeMap<Sbn, Deviations>>,
}

impl BlockVerifier {
    pub(super) fn new(source: Arc<ObjectSource>, hashes: Arc<[Hash]>) -> Self {
        Self { source, hashes, verified: Lock::default() }
    }

    pub(super) fn source(&self) -> &Arc<ObjectSource> {
        &self.source
    }

    pub(super) fn hashes(&self) -> &Arc<[Hash]> {
        &self.hashes
    }

    /// Checks that a block still has its bytes. `deviations` are the present states of its files
    /// that differ from those that were hashed.
    ///
    /// # Errors
    /// [`SourceError::Changed`] if it has others; that a file cannot be read.
    pub(crate) fn verify(
        &self,
        sbn: Sbn,
        deviations: Option<Deviations>,
    ) -> Result<(), SourceError> {
        let Some(deviations) = deviations else { return Ok(()) };
        if self.verified.lock().get(&sbn) == Some(&deviations) {
            return Ok(());
        }
        let mut hasher = BlockHasher::new();
        self.source.for_each_chunk_of_changed_block(sbn, |bytes| hasher.update(bytes))?;
        if self.hashes.get(sbn.0 as usize) != Some(&hasher.finalize()) {
            return Err(self.source.changed(&deviations));
        }
        self.verified.lock().insert(sbn, deviations);
        Ok(())
    }

    /// [Verifies](Self::verify) a block in the present state of its files.
    pub(super) fn verify_now(&self, sbn: Sbn) -> Result<(), SourceError> {
        self.verify(sbn, self.source.deviations(sbn)?)
    }
}
