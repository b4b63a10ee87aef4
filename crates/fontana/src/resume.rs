//! The state that interrupted receptions have left in a directory: listed, or discarded. Receiving
//! again resumes from it.
//!
//! ```no_run
//! for interrupted in fontana::interrupted("downloads")? {
//!     let (have, all) = (interrupted.symbols, interrupted.source_symbols);
//!     println!("{}: {have} of {all} symbols", interrupted.tag);
//! }
//! # Ok::<(), fontana::Error>(())
//! ```

use crate::error::Error;
use fontana_store::{
    Errno, Kept, KeptBlock, Leftover, Staging, StagingError, StagingOptions, TargetDirectory,
};
use fontana_wire::{Hash, Manifest, ManifestLimits, ManifestObject, PublicKey, manifest_hash};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An interrupted or running reception.
#[derive(Clone, Debug)]
pub struct Interrupted {
    /// Its identifier in the directory: the hash of its manifest, or, for plain FLUTE and FCAST,
    /// the session.
    pub tag: String,
    /// The content; `None` for plain FLUTE and FCAST, and if the file with the manifest is
    /// incomplete.
    pub manifest: Option<Manifest>,
    /// Source symbols that need not be received again; 0 without a manifest.
    pub symbols: u64,
    /// Source symbols of the whole content; 0 without a manifest.
    pub source_symbols: u64,
    /// Bytes that it occupies on the disk.
    pub bytes_on_disk: u64,
    /// Time of the last symbol received.
    pub modified: SystemTime,
    /// A receiver is running on it.
    pub in_use: bool,
}

/// The interrupted and the running receptions of a directory, by tag.
///
/// # Errors
/// [`IoError::Staging`](crate::IoError::Staging) if the directory does not exist or cannot be
/// listed.
pub fn interrupted(directory: impl AsRef<Path>) -> Result<Vec<Interrupted>, Error> {
    let leftovers = open(directory.as_ref())?.leftovers()?;
    Ok(leftovers.into_iter().map(Interrupted::new).collect())
}

/// Removes the state of an interrupted reception. Files that it completed stay.
///
/// # Errors
/// [`IoError::Staging`](crate::IoError::Staging): with [`StagingError::Busy`] if a receiver is
/// running on it.
pub fn discard(directory: impl AsRef<Path>, tag: &str) -> Result<(), Error> {
    let target = Arc::new(open(directory.as_ref())?);
    let (staging, _) = Staging::create(target, tag, StagingOptions::default())?;
    Ok(staging.remove()?)
}

/// Removes what interrupted receptions of a publisher's versions below `version` have left. What
/// another receiver uses stays, and what cannot be removed.
pub(crate) fn discard_older(
    target: &Arc<TargetDirectory>,
    publisher: &PublicKey,
    version: u64,
) -> Result<(), StagingError> {
    for leftover in target.leftovers()? {
        let Leftover { tag, in_use, description, owner, .. } = leftover;
        let is_publishers = owner.as_deref() == Some(&publisher.to_bytes()[..]);
        let manifest = description.filter(|_| is_publishers && !in_use);
        let manifest = manifest.and_then(|m| parse(&m, &tag, &ManifestLimits::default()));
        if manifest.is_some_and(|manifest| manifest.version() < version) {
            let entered = Staging::create(Arc::clone(target), &tag, StagingOptions::default());
            if let Err(error) = entered.and_then(|(staging, _)| staging.remove()) {
                tracing::warn!(%error, "an older version's leftover stays");
            }
        }
    }
    Ok(())
}

/// Opens an existing directory: nothing is received into it.
fn open(path: &Path) -> Result<TargetDirectory, Error> {
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(TargetDirectory::open(path)?),
        _ => {
            let (path, doing) = (path.to_owned(), "list the directory");
            Err(StagingError::System { path, doing, errno: Errno::NOENT }.into())
        }
    }
}

/// The manifest with this hash and the hash, if an earlier run has saved it: a large manifest need
/// not be received in every run.
pub(crate) fn known_manifest(
    target: &TargetDirectory,
    hash: Hash,
    limits: &ManifestLimits,
) -> Option<(Hash, Arc<Manifest>)> {
    let bytes = target.description(&hash.to_string(), limits.bytes)?;
    let manifest = parse(&bytes, &hash.to_string(), limits)?;
    Some((hash, Arc::new(manifest)))
}

/// Parses a manifest that may be torn or written by another user. It is genuine if the tag is its
/// hash.
fn parse(description: &[u8], tag: &str, limits: &ManifestLimits) -> Option<Manifest> {
    let is_whole = manifest_hash(description).to_string() == tag;
    is_whole.then(|| Manifest::parse(description, limits).ok()).flatten()
}

impl Interrupted {
    fn new(leftover: Leftover) -> Self {
        let Leftover { tag, in_use, bytes_on_disk, modified, kept, description, .. } = leftover;
        let manifest =
            description.and_then(|bytes| parse(&bytes, &tag, &ManifestLimits::default()));
        let objects = manifest.as_ref().map(Manifest::objects).unwrap_or_default();
        let sum = |(held, all): (u64, u64), object: &ManifestObject| {
            let (h, a) = held_of(object, &kept);
            (held + h, all + a)
        };
        let (symbols, source_symbols) = objects.iter().fold((0, 0), sum);
        let since = u64::try_from(modified.seconds).unwrap_or(0);
        let modified = UNIX_EPOCH + Duration::new(since, modified.nanoseconds);
        Self { tag, manifest, symbols, source_symbols, bytes_on_disk, modified, in_use }
    }
}

/// Source symbols of an object that need not be received again, and all of them.
fn held_of(object: &ManifestObject, kept: &Kept) -> (u64, u64) {
    let Ok(layout) = object.oti.layout() else { return (0, 0) };
    let all = layout.total_source_symbols();
    if kept.committed.contains(&object.toi) {
        return (all, all);
    }
    let blocks = (0..layout.block_count()).map(fontana_fec::Sbn).map(|sbn| {
        let k = u64::from(layout.source_symbols(sbn).unwrap_or(0));
        let KeptBlock { whole, in_place, spooled } = match kept.blocks.get(&(object.toi, sbn)) {
            Some(block) => block,
            None => return 0,
        };
        let distinct: BTreeSet<_> =
            in_place.iter().chain(spooled.iter().map(|(esi, _)| esi)).collect();
        if *whole { k } else { k.min(distinct.len() as u64) }
    });
    (blocks.sum(), all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_believed_only_if_it_is_what_the_directory_is_named_after() {
        let directory = tempfile::tempdir().unwrap();
        let manifest = Manifest::new(3, "nothing", Vec::new(), Vec::new()).unwrap();
        let bytes = manifest.emit();
        let hash = manifest_hash(&bytes);
        let left = directory.path().join(format!(".fontana-{hash}"));
        std::fs::create_dir(&left).unwrap();
        let target = TargetDirectory::open(directory.path()).unwrap();
        let limits = ManifestLimits::default();
        let known = || known_manifest(&target, hash, &limits).map(|(_, known)| known);
        let listed = || interrupted(directory.path()).unwrap().remove(0).manifest;
        assert_eq!((known(), listed()), (None, None), "nothing was written down");
        std::fs::write(left.join("manifest"), &bytes).unwrap();
        assert_eq!(known().as_deref(), Some(&manifest));
        assert_eq!(listed().as_ref(), Some(&manifest));
        let other = Manifest::new(4, "nothing", Vec::new(), Vec::new()).unwrap().emit();
        for wrong in [&bytes[..bytes.len() - 1], &other[..], b""] {
            std::fs::write(left.join("manifest"), wrong).unwrap();
            assert_eq!((known(), listed()), (None, None));
        }
    }
}
