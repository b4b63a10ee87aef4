//! Blocks of files that may grow while they are sent, or that were not read before.

use crate::shared::Lock;
use fontana_fec::Sbn;
use fontana_store::{Deviations, ObjectSource, SourceError};
use fontana_wire::{BlockHasher, Hash};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Decides by the hashes of an object's blocks whether files that were written to still contain
/// what is sent of them, as a log does that only grows.
///
/// A result is valid as long as the files stay in the states in which they were compared.
pub(crate) struct BlockVerifier {
    source: Arc<ObjectSource>,
    hashes: Arc<[Hash]>,
    /// No byte was read since the hashes were made.
    is_unread: bool,
    /// The states in which a block's files were compared last.
    verified: Lock<BTreeMap<Sbn, Deviations>>,
    /// Blocks that were [checked](Self::check_once).
    #[cfg(feature = "serve")]
    checked: Lock<std::collections::BTreeSet<Sbn>>,
    /// A block has other bytes than its hash says, and its files are in the states that they had.
    wrong: OnceLock<SourceError>,
}

impl BlockVerifier {
    pub(super) fn new(source: Arc<ObjectSource>, hashes: Arc<[Hash]>) -> Self {
        let (verified, wrong) = Default::default();
        Self {
            source,
            hashes,
            is_unread: false,
            verified,
            #[cfg(feature = "serve")]
            checked: Default::default(),
            wrong,
        }
    }

    /// The verifier of files that have only the sizes and times that a manifest says.
    pub(super) fn unread(self) -> Self {
        Self { is_unread: true, ..self }
    }

    /// The blocks that are to be [checked](Self::check).
    pub(crate) fn unread_blocks(&self) -> impl Iterator<Item = Sbn> {
        let blocks = if self.is_unread { self.source.layout().block_count() } else { 0 };
        (0..blocks).map(Sbn)
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
        if let Some(wrong) = self.wrong.get() {
            return Err(wrong.clone());
        }
        let Some(deviations) = deviations else { return Ok(()) };
        if self.verified.lock().get(&sbn) == Some(&deviations) {
            return Ok(());
        }
        if !self.has_its_hash(sbn)? {
            return Err(self.source.changed(&deviations));
        }
        self.verified.lock().insert(sbn, deviations);
        Ok(())
    }

    /// Reads a block whose files have not been read since the manifest was made: equal sizes and
    /// times are no proof. An error of a read is met, and reported, where the block is sent.
    ///
    /// # Errors
    /// [`SourceError::Changed`] if it has other bytes; all [verification](Self::verify) fails from
    /// then on, and no further block is read.
    pub(crate) fn check(&self, sbn: Sbn) -> Result<(), SourceError> {
        if self.wrong.get().is_none()
            && let Ok(None) = self.source.deviations(sbn)
            && let Ok(false) = self.has_its_hash(sbn)
            && let Ok(None) = self.source.deviations(sbn)
            && let Some(error) = self.source.unlike(sbn)
        {
            let _ = self.wrong.set(error);
        }
        self.wrong.get().map_or(Ok(()), |wrong| Err(wrong.clone()))
    }

    /// [Checks](Self::check) a block before it is used for the first time.
    ///
    /// # Errors
    /// As there: from the first block with other bytes on.
    #[cfg(feature = "serve")]
    pub(crate) fn check_once(&self, sbn: Sbn) -> Result<(), SourceError> {
        if self.is_unread && !self.checked.lock().contains(&sbn) {
            self.check(sbn)?;
            self.checked.lock().insert(sbn);
        }
        self.wrong.get().map_or(Ok(()), |wrong| Err(wrong.clone()))
    }

    /// Whether a [check](Self::check) has failed.
    #[cfg(feature = "serve")]
    pub(crate) fn is_wrong(&self) -> bool {
        self.wrong.get().is_some()
    }

    fn has_its_hash(&self, sbn: Sbn) -> Result<bool, SourceError> {
        let mut hasher = BlockHasher::new();
        self.source.for_each_chunk_of_changed_block(sbn, |bytes| hasher.update(bytes))?;
        Ok(self.hashes.get(sbn.0 as usize) == Some(&hasher.finalize()))
    }

    /// [Verifies](Self::verify) a block in the present state of its files.
    pub(super) fn verify_now(&self, sbn: Sbn) -> Result<(), SourceError> {
        self.verify(sbn, self.source.deviations(sbn)?)
    }
}
