//! Files and links that get their names, for the application's record of them.

use super::report::TargetReport;
use crate::cancellation::CancellationToken;
use crate::error::Error;
use crate::event::NamedFile;
use crate::receive::plan::{EntryAction, PlannedEntry};
use crate::shared::Sender;
use fontana_store::{FileIndex, TargetDirectory, TargetName};
use fontana_wire::Hash;
use std::collections::BTreeMap;

/// Bytes that are hashed at a time: the cancellation token is looked at in between.
const CHUNK: usize = 64 << 10;
/// Bytes of a file after which it is said how far its hash is.
const SAID_EVERY: u64 = 4 << 30;

/// The files and links of a reception that do not have their names yet.
#[derive(Default)]
pub(super) struct Unnamed(BTreeMap<FileIndex, UnnamedFile>);

struct UnnamedFile {
    name: TargetName,
    /// `None` for a link.
    length: Option<u64>,
}

impl Unnamed {
    /// Those of planned entries.
    pub(super) fn of(entries: &[PlannedEntry]) -> Self {
        let is_directory = |action: &EntryAction| {
            matches!(action, EntryAction::MakeDirectory(_) | EntryAction::SkipDirectory(_))
        };
        let indexed = entries.iter().filter(|entry| !is_directory(&entry.action));
        let unnamed = |(index, entry): (u32, &PlannedEntry)| {
            let length = match &entry.action {
                EntryAction::Receive(file) => Some(file.length),
                EntryAction::Link { .. } => None,
                _ => return None,
            };
            Some((FileIndex(index), UnnamedFile { name: entry.name.clone(), length }))
        };
        Self((0..).zip(indexed).filter_map(unnamed).collect())
    }

    /// Reports those of `files` that now have their names. Their bytes are read again, mostly from
    /// the page cache, and holes are not read. If the reception is `abandoned`, the others are not
    /// reported.
    pub(super) fn report(
        &mut self,
        files: &[FileIndex],
        directory: &TargetDirectory,
        abandoned: &CancellationToken,
        reports: &Sender<TargetReport>,
    ) -> Result<(), Error> {
        for file in files {
            let Some(UnnamedFile { name, length }) = self.0.remove(file) else { continue };
            let say = |bytes| {
                let of = length.unwrap_or(0);
                let _ = reports.send(TargetReport::Hashed { bytes, of });
                !abandoned.is_cancelled()
            };
            let hash = match length {
                Some(length) => {
                    let next = |bytes: u64| match bytes.is_multiple_of(SAID_EVERY) && bytes > 0 {
                        true => say(bytes),
                        false => !abandoned.is_cancelled(),
                    };
                    hash(directory, &name, length, next)?
                }
                None => None,
            };
            if abandoned.is_cancelled() {
                return Ok(());
            }
            let path = name.as_bytes().to_vec();
            let named = NamedFile { path, length: length.unwrap_or(0), hash };
            // The driver has dropped its end when the reception is over.
            let _ = reports.send(TargetReport::Named(named));
        }
        Ok(())
    }
}

/// The BLAKE3 hash of a file; `None` if it was replaced meanwhile, or `goes_on` says so, which is
/// asked for each chunk with its offset.
fn hash(
    directory: &TargetDirectory,
    name: &TargetName,
    length: u64,
    mut goes_on: impl FnMut(u64) -> bool,
) -> Result<Option<Hash>, Error> {
    let Some(file) = directory.existing(name, length)? else { return Ok(None) };
    let mut hasher = blake3::Hasher::new();
    let (mut chunk, zeros) = (vec![0; CHUNK], vec![0; CHUNK]);
    // Up to `data` is a hole.
    let (mut at, mut data) = (0, 0);
    while at < length {
        if !goes_on(at) {
            return Ok(None);
        }
        let count = CHUNK.min(usize::try_from(length - at).unwrap_or(CHUNK));
        if data <= at {
            data = file.next_data(at..length)?;
        }
        if data >= at + count as u64 {
            hasher.update(zeros.get(..count).unwrap_or_default());
            at += count as u64;
            continue;
        }
        let part = chunk.get_mut(..count).unwrap_or_default();
        if !file.read_at(at, part)? {
            return Ok(None);
        }
        hasher.update(part);
        at += count as u64;
    }
    Ok(Some(Hash(*hasher.finalize().as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    /// A file of 8 TiB, of which 5 bytes are not a hole: hashing it takes hours.
    #[test]
    fn the_hash_of_a_hole_ends_when_it_is_told_to_and_reads_nothing() {
        let root = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(root.path().join("sparse")).unwrap();
        file.write_all_at(b"start", 0).unwrap();
        let length = 1 << 43;
        file.set_len(length).unwrap();
        let directory = TargetDirectory::open(root.path()).unwrap();
        let name = TargetName::new(&["sparse"]).unwrap();
        let mut asked = 0_u64;
        let ended = hash(&directory, &name, length, |at| {
            asked = at;
            at < 1 << 24
        });
        assert_eq!((ended.unwrap(), asked), (None, 1 << 24));

        let short = std::fs::File::create(root.path().join("short")).unwrap();
        short.write_all_at(b"start", 0).unwrap();
        short.write_all_at(b"end", 1 << 22).unwrap();
        let bytes = std::fs::read(root.path().join("short")).unwrap();
        let name = TargetName::new(&["short"]).unwrap();
        let whole = hash(&directory, &name, bytes.len() as u64, |_| true).unwrap();
        assert_eq!(whole, Some(Hash(*blake3::hash(&bytes).as_bytes())));
    }

    #[test]
    fn an_abandoned_reception_reports_no_more_files() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a"), b"bytes").unwrap();
        let directory = TargetDirectory::open(root.path()).unwrap();
        let (sent, abandoned) = (crate::shared::unbounded(), CancellationToken::new());
        let reported = |abandoned: &CancellationToken| {
            let name = TargetName::new(&["a"]).unwrap();
            let file = UnnamedFile { name, length: Some(5) };
            let mut unnamed = Unnamed(BTreeMap::from([(FileIndex(0), file)]));
            unnamed.report(&[FileIndex(0)], &directory, abandoned, &sent.0).unwrap();
            sent.1.try_iter().count()
        };
        assert_eq!(reported(&abandoned), 1);
        abandoned.cancel();
        assert_eq!(reported(&abandoned), 0);
    }
}
