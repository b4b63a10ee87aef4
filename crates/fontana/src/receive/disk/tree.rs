//! The files, directories and links of a manifest: refused before anything is received, or opened,
//! with what an earlier receiver left of them.

use super::existing::{Existing, Survey, to_put_right};
use super::wanted::Wanted;
use super::{Disk, OpenObject, Opened};
use crate::error::Error;
use fontana_fec::Sbn;
use fontana_proto::{BlockId, ControlError, Kept, KeptBlock, repair_slots};
use fontana_store::{
    Extent, Extents, FileAttributes, FileIndex, KeptBlock as StoredBlock, Note, StagedObject,
    Staging, StagingError, TargetName, Timestamp,
};
use fontana_wire::{
    Entry, FileEntry, Manifest, Metadata, PlacedSegment, Segment, Toi, manifest_hash,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bytes of an object, where they go, and the name of the file for people if it is wanted.
pub(super) type Part = (u64, Extent, Option<String>);

/// A file, directory or link, and where it goes.
pub(super) type Named<'a> = (&'a Entry, TargetName);

impl Disk {
    pub(super) fn open_tree(&mut self, manifest: &Manifest) -> Result<Opened, Error> {
        let selection = self.selection.clone();
        let wanted = Wanted::of(manifest, &selection)?;
        let mut entries = Vec::new();
        for entry in manifest.entries() {
            let components: Vec<_> = entry.path().components().collect();
            entries.push((entry, TargetName::new(&components).map_err(StagingError::from)?));
        }
        let description = manifest.emit();
        let tag = manifest_hash(&description).to_string();
        let (staging, kept) = Staging::create(Arc::clone(&self.target), &tag, self.options)?;
        let staging = Arc::new(staging);
        if let Some(mark) = &self.mark {
            staging.allow_replacing(mark.replaceable());
        }
        self.version = manifest.version();
        let fresh = kept == fontana_store::Kept::default();
        let opened = staging
            .describe(&description)
            .and_then(|()| {
                staging.check_case_clash(|| {
                    manifest.case_clash().map(|clash| (clash.first, clash.second))
                })
            })
            .map_err(Error::from)
            .and_then(|()| self.open_entries(manifest, &wanted, entries, &staging, kept))
            .and_then(|opened| {
                // Before any of them gets its name.
                if let Some(mark) = &mut self.mark {
                    mark.add_names(&self.target, wanted.names(manifest))?;
                }
                Ok(opened)
            });
        match &opened {
            Ok(_) => self.staging = Some(staging),
            // Nothing has been received: what was begun is of no use to anybody.
            Err(_) if fresh => _ = staging.remove(),
            Err(_) => {}
        }
        opened
    }

    fn open_entries(
        &mut self,
        manifest: &Manifest,
        wanted: &Wanted<'_>,
        entries: Vec<Named<'_>>,
        staging: &Arc<Staging>,
        mut kept: fontana_store::Kept,
    ) -> Result<Opened, Error> {
        let resumed = kept != fontana_store::Kept::default();
        let groups = Groups::of(manifest, wanted);
        self.forget_what_is_gone(&groups, wanted, &entries, staging, &mut kept)?;
        let existing = self.survey(manifest, wanted, &entries, &kept.committed)?;
        let there = existing.done_objects(&entries, wanted, |toi| groups.of_object(toi));
        let mut settled = Vec::new();
        let mut parts: BTreeMap<u32, Vec<Part>> = BTreeMap::new();
        for (number, (entry, name)) in entries.iter().enumerate() {
            let name = name.clone();
            match *entry {
                entry if !wanted.takes(entry) => {
                    self.pass_over(staging, &groups, wanted, entry, name, &mut parts)?;
                }
                Entry::Directory(directory) => {
                    staging.add_directory(name, attributes(&directory.metadata))?;
                }
                Entry::Symlink(link) => {
                    // Who has come to links has only links and directories left to make.
                    let is_there = || self.target.has_link(&name, &link.target);
                    if self.skip_existing && is_there()? {
                        staging.add_existing(name, 0)?;
                    } else if resumed && is_there()? {
                        staging.add_verified(name, 0)?;
                    } else {
                        self.left.push(staging.add_link(name, link.target.clone())?);
                    }
                }
                Entry::File(file) => {
                    let objects = objects_of(file);
                    let done = match objects.first() {
                        Some(toi) => kept.committed.contains(toi),
                        // Of zeros only: where files are replaced, it is simply made again.
                        None => {
                            resumed
                                && !self.options.overwrite
                                && self.target.has_file(&name, file.length())?
                        }
                    };
                    let index = if done {
                        let index = staging.add_verified(name, file.length())?;
                        settled.push(index);
                        index
                    } else if existing.is_same(number) {
                        self.keep(staging, &groups, &there, file, name)?
                    } else {
                        self.add_file(staging, &groups, file, name)?
                    };
                    collect_parts(file, index, true, &mut parts);
                }
            }
        }
        let objects = self.open_objects(manifest, wanted, &groups, staging, parts)?;
        staging.reconcile(objects.iter().map(|(toi, open)| (*toi, &open.staged)), &mut kept)?;
        staging.check_room()?;
        // What an earlier life had verified, and was stopped before all of it had its name.
        staging.publish(&settled)?;
        let is_settled = |toi| there.contains(toi) || kept.committed.contains(toi);
        for (toi, open) in objects.iter().filter(|(toi, _)| !is_settled(toi)) {
            for sbn in existing.copy(&self.target, &entries, staging, *toi, &open.staged)? {
                let whole = StoredBlock { whole: true, ..StoredBlock::default() };
                kept.blocks.insert((*toi, sbn), whole);
            }
        }
        kept.committed.extend(there);
        let objects = objects.into_iter().map(|(toi, open)| (Toi::from(toi), open)).collect();
        let part = (!self.selection.is_everything()).then_some(wanted.part);
        let left_out = wanted.left_out(manifest);
        Ok(Opened { objects, kept: protocol_view(kept), left_out, part })
    }

    /// Opens the objects that hold bytes of what is wanted, for symbols, by TOI.
    fn open_objects(
        &mut self,
        manifest: &Manifest,
        wanted: &Wanted<'_>,
        groups: &Groups,
        staging: &Arc<Staging>,
        mut parts: BTreeMap<u32, Vec<Part>>,
    ) -> Result<Vec<(u32, Arc<OpenObject>)>, Error> {
        let mut objects = Vec::new();
        for object in manifest.objects().iter().filter(|object| wanted.takes_object(object.toi)) {
            let mut parts = parts.remove(&object.toi).unwrap_or_default();
            parts.sort_by_key(|(offset, ..)| *offset);
            let layout = object.oti.layout().map_err(ControlError::from)?;
            let extents = Extents::new(parts.iter().map(|(_, extent, _)| *extent))
                .map_err(StagingError::from)?;
            let slots = repair_slots(layout.oti().scheme, layout.max_source_symbols());
            let files = parts.iter().map(|(_, extent, _)| extent.file).collect();
            let mut names: Vec<_> = parts.into_iter().filter_map(|(.., name)| name).collect();
            names.dedup(); // a file with holes has several parts
            let staged = StagedObject::new(Arc::clone(staging), layout, extents, slots)?;
            let open = OpenObject {
                names,
                group: groups.of_object(object.toi),
                journal: Some(Arc::clone(staging)),
                ..OpenObject::new(staged, files)
            };
            objects.push((object.toi, Arc::new(open)));
            self.groups.entry(groups.of_object(object.toi)).or_default().add(object.toi);
        }
        Ok(objects)
    }

    /// What there is of it already, if that is to be found out.
    fn survey(
        &mut self,
        manifest: &Manifest,
        wanted: &Wanted<'_>,
        entries: &[Named<'_>],
        committed: &BTreeSet<u32>,
    ) -> Result<Existing, Error> {
        if !self.skip_existing {
            return Ok(Existing::default());
        }
        let survey = Survey {
            target: &self.target,
            workers: self.workers,
            abandoned: &self.abandoned,
            tell: &mut *self.tell,
        };
        survey.run(manifest, wanted, entries, committed)
    }

    /// Leaves a file as it is whose bytes are all there. If others of its object are not, its bytes
    /// come with theirs and are not used.
    fn keep(
        &mut self,
        staging: &Staging,
        groups: &Groups,
        there: &BTreeSet<u32>,
        file: &FileEntry,
        name: TargetName,
    ) -> Result<FileIndex, StagingError> {
        self.to_put_right.push(to_put_right(file, &name));
        match objects_of(file).first() {
            Some(toi) if !there.contains(toi) => {
                let (holes, attributes) = (file.holes().collect(), attributes(&file.metadata));
                let index = staging.add_spare(&name, file.length(), holes, attributes)?;
                self.groups.entry(groups.of_object(*toi)).or_default().files.push(index);
                Ok(index)
            }
            _ => staging.add_existing(name, file.length()),
        }
    }

    /// Keeps the place of what is not wanted, or its bytes if they come for another file's sake.
    fn pass_over(
        &mut self,
        staging: &Staging,
        groups: &Groups,
        wanted: &Wanted<'_>,
        entry: &Entry,
        name: TargetName,
        parts: &mut BTreeMap<u32, Vec<Part>>,
    ) -> Result<(), StagingError> {
        match entry {
            Entry::Directory(directory) => {
                staging.pass_over_directory(name, attributes(&directory.metadata));
            }
            Entry::File(file) if wanted.touches(file) => {
                let (holes, attributes) = (file.holes().collect(), attributes(&file.metadata));
                let index = staging.add_spare(&name, file.length(), holes, attributes)?;
                // Settled with the files that it came with, it is ready for a later life.
                for toi in objects_of(file).into_iter().filter(|&toi| wanted.takes_object(toi)) {
                    let group = self.groups.entry(groups.of_object(toi)).or_default();
                    group.files.push(index);
                }
                collect_parts(file, index, false, parts);
            }
            Entry::File(_) | Entry::Symlink(_) => _ = staging.pass_over(&name)?,
        }
        Ok(())
    }

    fn add_file(
        &mut self,
        staging: &Staging,
        groups: &Groups,
        file: &FileEntry,
        name: TargetName,
    ) -> Result<FileIndex, StagingError> {
        let holes = file.holes().collect();
        let attributes = attributes(&file.metadata);
        let index = staging.add_sparse_file(name, file.length(), holes, attributes)?;
        match objects_of(file).first() {
            Some(&toi) => {
                let group = self.groups.entry(groups.of_object(toi)).or_default();
                group.files.push(index);
            }
            None => self.left.push(index),
        }
        Ok(index)
    }

    /// What was verified and has been taken away since is received again, with all that it was
    /// received with.
    fn forget_what_is_gone(
        &self,
        groups: &Groups,
        wanted: &Wanted<'_>,
        entries: &[Named<'_>],
        staging: &Staging,
        kept: &mut fontana_store::Kept,
    ) -> Result<(), StagingError> {
        let mut gone = BTreeSet::new();
        // As they are added: directories have no index.
        let indexed = entries.iter().filter(|(entry, _)| !matches!(entry, Entry::Directory(_)));
        for (index, (entry, name)) in (0..).map(FileIndex).zip(indexed) {
            let Entry::File(file) = entry else { continue };
            let objects = objects_of(file);
            let committed = objects.iter().filter(|toi| kept.committed.contains(toi)).count();
            if committed == 0 || !wanted.takes(entry) {
                continue;
            }
            // Of files that share objects another life wanted only some.
            if committed < objects.len() {
                gone.extend(objects.first().map(|&toi| groups.of_object(toi)));
            }
            let length = file.length();
            let kept = staging.has_staged(index, length)? || self.target.has_file(name, length)?;
            if !kept {
                gone.extend(objects.first().map(|&toi| groups.of_object(toi)));
            }
        }
        let is_gone = |toi: u32| gone.contains(&groups.of_object(toi));
        let committed = kept.committed.iter().map(|&toi| (toi, Sbn(0)));
        let notes: Vec<_> = committed
            .chain(kept.blocks.keys().copied())
            .filter(|&(toi, _)| is_gone(toi))
            .map(|(toi, sbn)| Note::Void { toi, sbn })
            .collect();
        if !notes.is_empty() {
            // Before the files are made again: the next receiver would take them for verified.
            staging.note(&notes)?;
            staging.sync_notes()?;
        }
        kept.committed.retain(|&toi| !is_gone(toi));
        kept.blocks.retain(|&(toi, _), _| !is_gone(toi));
        Ok(())
    }
}

/// Which objects share files, directly or over others: their files get their names together, so
/// that of an object's files all or none are still to be written. Bundles share nothing; the
/// fragments of a file share it.
struct Groups(BTreeMap<u32, u32>);

impl Groups {
    fn of(manifest: &Manifest, wanted: &Wanted<'_>) -> Self {
        let mut groups = Self(manifest.objects().iter().map(|o| (o.toi, o.toi)).collect());
        for file in manifest.files() {
            let mut objects = objects_of(file).into_iter().filter(|&toi| wanted.takes_object(toi));
            if let Some(first) = objects.next() {
                objects.for_each(|toi| groups.join(first, toi));
            }
        }
        groups
    }

    /// The object that stands for the group of `toi`.
    fn of_object(&self, toi: u32) -> u32 {
        let mut at = toi;
        while let Some(&next) = self.0.get(&at).filter(|&&next| next != at) {
            at = next;
        }
        at
    }

    /// Joins two groups. The way to the one that stands for it is shortened, so that no manifest
    /// makes it long.
    fn join(&mut self, one: u32, other: u32) {
        let (a, b) = (self.of_object(one), self.of_object(other));
        let first = a.min(b);
        for mut at in [one, other] {
            while let Some(next) = self.0.insert(at, first).filter(|&next| next != at) {
                at = next;
            }
        }
    }
}

pub(super) fn attributes(metadata: &Metadata) -> FileAttributes {
    let modified =
        Timestamp { seconds: metadata.mtime_seconds, nanoseconds: metadata.mtime_nanoseconds };
    FileAttributes { mode: metadata.mode, modified: Some(modified) }
}

pub(super) fn objects_of(file: &FileEntry) -> BTreeSet<u32> {
    file.segments
        .iter()
        .filter_map(|segment| match segment {
            Segment::Extent { toi, .. } => Some(*toi),
            Segment::Hole { .. } => None,
        })
        .collect()
}

pub(super) fn collect_parts(
    file: &FileEntry,
    index: FileIndex,
    is_wanted: bool,
    parts: &mut BTreeMap<u32, Vec<Part>>,
) {
    for PlacedSegment { range, segment } in file.placed_segments() {
        if let Segment::Extent { toi, object_offset, length } = segment {
            let extent = Extent { file: index, offset: range.start, length };
            let part = (object_offset, extent, is_wanted.then(|| file.path.to_string()));
            parts.entry(toi).or_default().push(part);
        }
    }
}

pub(super) fn protocol_view(kept: fontana_store::Kept) -> Kept {
    Kept {
        session_packets: kept.packets,
        committed: kept.committed.into_iter().map(Toi::from).collect(),
        blocks: kept
            .blocks
            .into_iter()
            .map(|((toi, sbn), block)| KeptBlock {
                block: BlockId { toi: Toi::from(toi), sbn },
                whole: block.whole,
                in_place: block.in_place,
                spooled: block.spooled,
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receive::ReceiveOptions;
    use crate::stop::Stop;
    use fontana_fec::{Esi, FecScheme, Oti};
    use fontana_store::{Selection, TargetDirectory};
    use fontana_wire::{BlockHasher, ManifestObject, RelativePath};
    use std::path::Path;

    const CONTENT: &[u8; 64] = b"sixty-four bytes, which are one block of four symbols of sixteen";

    /// Opens one file of one block, as a receiver does.
    fn open(target: &Path) -> (Disk, Opened) {
        let scheme = FecScheme::NoCode { max_source_block_length: 4 };
        let oti = Oti { transfer_length: 64, symbol_size: 16, scheme };
        let mut hasher = BlockHasher::new();
        hasher.update(CONTENT);
        let object = ManifestObject { toi: 1, oti, block_hashes: vec![hasher.finalize()] };
        let path = RelativePath::new("file").unwrap();
        let file = Entry::File(FileEntry::whole_object(path, Metadata::default(), 1, 64));
        let manifest = Manifest::new(1, "", vec![object], vec![file]).unwrap();
        let (options, tell) = (ReceiveOptions::new(target), Box::new(|_, _| {}));
        let target = Arc::new(TargetDirectory::open(target).unwrap());
        let everything = Selection::new(&[]).unwrap();
        let mut disk = Disk::new(target, &options, everything, None, Stop::new(), tell);
        let opened = disk.open_tree(&manifest).unwrap();
        (disk, opened)
    }

    #[test]
    fn a_committed_file_that_was_removed_is_received_again_also_after_another_interruption() {
        let directory = tempfile::tempdir().unwrap();
        let (mut disk, opened) = open(directory.path());
        let (toi, object) = &opened.objects[0];
        object.staged.write_source_run(Sbn(0), Esi(0), CONTENT).unwrap();
        object.note(&[Note::Whole { toi: 1, sbn: Sbn(0) }]).unwrap();
        disk.commit(object, *toi).unwrap();
        let file = directory.path().join("file");
        assert_eq!(std::fs::read(&file).unwrap(), CONTENT);
        drop((disk, opened));

        std::fs::remove_file(&file).unwrap();
        let (disk, opened) = open(directory.path());
        assert!(opened.kept.committed.is_empty() && opened.kept.blocks.is_empty());
        let object = &opened.objects[0].1;
        object.staged.write_source(Sbn(0), Esi(2), &CONTENT[32..48]).unwrap();
        object.note(&[Note::InPlace { toi: 1, sbn: Sbn(0), esi: Esi(2) }]).unwrap();
        drop((disk, opened));

        let (_, opened) = open(directory.path());
        assert!(!file.exists(), "three of its symbols are missing");
        assert!(opened.kept.committed.is_empty());
        assert_eq!(opened.kept.blocks.len(), 1);
        assert_eq!(opened.kept.blocks[0].in_place, [Esi(2)]);
    }
}
