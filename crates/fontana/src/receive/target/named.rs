//! Files and links that get their names, for the application's record of them.

use super::report::TargetReport;
use crate::error::Error;
use crate::event::NamedFile;
use crate::receive::plan::{EntryAction, PlannedEntry};
use crate::shared::Sender;
use fontana_store::{FileIndex, TargetDirectory, TargetName};
use fontana_wire::Hash;
use std::collections::BTreeMap;

/// Bytes that are hashed at a time.
const CHUNK: usize = 64 << 10;

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
    /// the page cache.
    pub(super) fn report(
        &mut self,
        files: &[FileIndex],
        directory: &TargetDirectory,
        reports: &Sender<TargetReport>,
    ) -> Result<(), Error> {
        for file in files {
            let Some(UnnamedFile { name, length }) = self.0.remove(file) else { continue };
            let hash = match length {
                Some(length) => hash(directory, &name, length)?,
                None => None,
            };
            let path = name.as_bytes().to_vec();
            let named = NamedFile { path, length: length.unwrap_or(0), hash };
            // The driver has dropped its end when the reception is over.
            let _ = reports.send(TargetReport::Named(named));
        }
        Ok(())
    }
}

/// The BLAKE3 hash of a file; `None` if it was replaced meanwhile.
fn hash(
    directory: &TargetDirectory,
    name: &TargetName,
    length: u64,
) -> Result<Option<Hash>, Error> {
    let Some(file) = directory.existing(name, length)? else { return Ok(None) };
    let mut hasher = blake3::Hasher::new();
    let (mut chunk, mut at) = (vec![0; CHUNK], 0);
    while at < length {
        let count = CHUNK.min(usize::try_from(length - at).unwrap_or(CHUNK));
        let part = chunk.get_mut(..count).unwrap_or_default();
        if !file.read_at(at, part)? {
            return Ok(None);
        }
        hasher.update(part);
        at += count as u64;
    }
    Ok(Some(Hash(*hasher.finalize().as_bytes())))
}
