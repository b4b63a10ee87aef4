//! The entries of a manifest in a directory: refused before anything is received, or made room for,
//! with what an earlier run left of them.

use crate::cancellation::CancellationToken;
use crate::error::Error;
use crate::kept_mark::{KeptMark, VersionNames};
use crate::receive::object::{OpenObject, Opened, OpenedObject, stage};
use crate::receive::plan::{
    BlockSource, EntryAction, Existing, GroupId, ManifestTree, PlannedEntry, PlannedObject,
    SavedTree, Survey, SurveyProgress, TreePlan, Wanted,
};
use crate::receive::saved;
use crate::receive::staging_root::StagingRoot;
use crate::receive::target::complete::{self, verified_bytes};
use crate::receive::target::named::Unnamed;
use crate::receive::target::report::TargetReport;
use crate::report::{IncompleteFiles, MissingFile};
use crate::shared::Sender;
use fontana_store::{
    Correction, FailedFiles, FileIndex, Given, Kept, KeptBlock, Note, Selection, Staging,
    StagingError,
};
use fontana_wire::{Entry, FileEntry, Manifest, PublicKey, Toi, manifest_hash};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The entries of a manifest, in a directory.
pub(in crate::receive) struct TreeTarget {
    root: StagingRoot,
    options: TreeOptions,
    /// What the directory remembers of the publisher.
    mark: Option<Box<KeptMark>>,
    /// Set when the reception is over.
    abandoned: CancellationToken,
    reports: Sender<TargetReport>,
    open: Option<OpenTree>,
}

/// What is received of a manifest, and how.
pub(super) struct TreeOptions {
    pub(super) selection: Selection,
    /// Files that the directory holds are not received.
    pub(super) skip_existing: bool,
    /// Threads that compare existing files.
    pub(super) workers: usize,
    /// The expected publisher.
    pub(super) publisher: Option<PublicKey>,
    /// Each file that gets its name is reported.
    pub(super) report_files: bool,
    /// No file gets its name before all are complete.
    pub(super) all_or_nothing: bool,
}

/// A tree that is being received.
struct OpenTree {
    staging: Arc<Staging>,
    /// By TOI.
    objects: BTreeMap<u32, TreeObject>,
    /// Files that get their names together.
    groups: BTreeMap<GroupId, OpenGroup>,
    /// Files without bytes, and links: they get their names at the end.
    without_objects: Vec<FileIndex>,
    /// Existing files that get their modes and times at the end.
    corrections: Vec<Correction>,
    manifest: Arc<Manifest>,
    /// A file did not get its name: the next run may give it one.
    lacks_names: bool,
    /// Files that are still to be reported.
    unnamed: Unnamed,
    /// The wanted files that have no names yet, and the number of all of them.
    lacking: BTreeSet<FileIndex>,
    wanted: u64,
    /// Complete files that get their names at the end, if no file gets its name before.
    held: Option<Vec<FileIndex>>,
}

struct TreeObject {
    object: Arc<OpenObject>,
    group: GroupId,
    source: BlockSource,
}

struct OpenGroup {
    files: Vec<FileIndex>,
    objects: BTreeSet<u32>,
    /// Objects that are not verified yet.
    waiting: BTreeSet<u32>,
}

impl TreeTarget {
    pub(super) fn new(
        root: StagingRoot,
        options: TreeOptions,
        mark: Option<KeptMark>,
        abandoned: CancellationToken,
        reports: Sender<TargetReport>,
    ) -> Self {
        let mark = mark.map(Box::new);
        Self { root, options, mark, abandoned, reports, open: None }
    }

    pub(super) fn root(&self) -> &StagingRoot {
        &self.root
    }

    /// Plans the tree, and makes room for what is received of it.
    pub(super) fn open(&mut self, manifest: &Arc<Manifest>) -> Result<Opened, Error> {
        let selection = self.options.selection.clone();
        let wanted = Wanted::new(manifest, &selection)?;
        let tree = ManifestTree::new(manifest)?;
        let description = manifest.emit();
        let tag = manifest_hash(&description).to_string();
        // Before anything is made: what is left of a version may fill the disk.
        if let (Some(mark), Some(publisher)) = (&self.mark, &self.options.publisher)
            && mark.follows()
        {
            crate::resume::discard_older(&self.root.directory, publisher, manifest.version())?;
        }
        if let Some(mark) = &mut self.mark {
            let directories = wanted.directories(manifest);
            mark.make_way(&self.root.directory, &directories, wanted.names(manifest))?;
        }
        let (staging, left) = self.root.enter(&tag)?;
        let staging = Arc::new(staging);
        if let Some(mark) = &self.mark {
            staging.allow_replacing(mark.replaceable());
        }
        let is_new = left == Kept::default();
        let opened = staging
            .describe(&description)
            .and_then(|()| match &self.options.publisher {
                Some(publisher) => staging.assign(&publisher.to_bytes()),
                None => Ok(()),
            })
            .and_then(|()| {
                staging.check_case_clash(|| {
                    manifest.case_clash().map(|clash| (clash.first, clash.second))
                })
            })
            .map_err(Error::from)
            .and_then(|()| self.open_in(&staging, &tree, &wanted, left));
        if opened.is_err() && is_new {
            // Nothing was received: there is nothing to resume.
            let _ = staging.remove();
        }
        opened
    }

    fn open_in(
        &mut self,
        staging: &Arc<Staging>,
        tree: &ManifestTree<'_>,
        wanted: &Wanted<'_>,
        left: Kept,
    ) -> Result<Opened, Error> {
        let saved = SavedTree::read(tree, wanted, left, staging, &self.root)?;
        let existing = self.survey(tree, wanted, saved.committed())?;
        let mut plan = TreePlan::compute(tree, wanted, &existing, saved)?;
        if !self.options.skip_existing {
            // Files that the user did not ask to compare are not changed.
            plan.corrections.clear();
        }
        let (open, opened) = self.apply(plan, staging, tree, &existing)?;
        // Before a file gets its name.
        if let Some(mark) = &mut self.mark {
            let names = VersionNames {
                files: wanted.names(tree.manifest).collect(),
                found: existing.paths(tree),
                directories: wanted.directories(tree.manifest),
            };
            mark.add_names(&self.root.directory, &names)?;
        }
        self.open = Some(open);
        Ok(opened)
    }

    /// Compares what the directory holds, if that is asked for, or if everything may be there.
    fn survey(
        &self,
        tree: &ManifestTree<'_>,
        wanted: &Wanted<'_>,
        committed: &BTreeSet<u32>,
    ) -> Result<Existing, Error> {
        let is_asked = self.options.skip_existing;
        let may_be_there = || {
            committed.is_empty()
                && !self.root.overwrites()
                && wanted.is_all_named(tree, &self.root.directory)
        };
        if !is_asked && !may_be_there() {
            return Ok(Existing::default());
        }
        let report = &mut |SurveyProgress { bytes, of }| {
            // The driver has dropped its end when the reception is over.
            let _ = self.reports.send(TargetReport::Compared { bytes, of });
        };
        let survey = Survey {
            directory: &self.root.directory,
            workers: self.options.workers,
            abandoned: &self.abandoned,
            report,
        };
        let existing = survey.run(tree, wanted, committed)?;
        // Names that other contents have are refused.
        let is_used = is_asked || existing.has_all(tree, wanted);
        Ok(if is_used { existing } else { Existing::default() })
    }

    /// Creates what is planned.
    fn apply(
        &self,
        plan: TreePlan,
        staging: &Arc<Staging>,
        tree: &ManifestTree<'_>,
        existing: &Existing,
    ) -> Result<(OpenTree, Opened), Error> {
        if !plan.voided.is_empty() {
            // Before the files are made again: a later run would take them for verified.
            staging.note(&plan.voided)?;
            staging.sync_notes()?;
        }
        let (mut lacking, wanted) = files_to_receive(&plan.entries);
        let unnamed = match self.options.report_files {
            true => Unnamed::of(&plan.entries),
            false => Unnamed::default(),
        };
        staging.allow_equal(plan.may_be_there);
        for entry in plan.entries {
            apply_entry(entry, staging)?;
        }
        let (mut objects, mut others) = (BTreeMap::new(), tree.manifest.objects().iter());
        for PlannedObject { toi, layout, files, group, source } in plan.objects {
            let before = others.by_ref().take_while(|object| object.toi != toi).count();
            staging.pass_over_spools(before as u32);
            let staged = stage(staging, layout, files.extents)?;
            let object = OpenObject::with_journal(staged, files.names, Arc::clone(staging));
            objects.insert(toi, TreeObject { object: Arc::new(object), group, source });
        }
        let mut left = plan.saved;
        staging.reconcile(objects.iter().map(|(&toi, o)| (toi, &o.object.staged)), &mut left)?;
        staging.check_room()?;
        // Files that an earlier run verified, and whose names it did not give them all.
        let (held, verified) = match self.options.all_or_nothing {
            true => (Some(plan.verified), Vec::new()),
            false => (None, plan.verified),
        };
        lacking.extend(held.iter().flatten());
        let unpublished = staging.publish_each(&verified)?;
        let errors = unpublished.iter().map(|(_, error)| error.clone());
        report_failed(errors.collect(), &self.reports);
        for (&toi, TreeObject { object, source, .. }) in &objects {
            if *source == BlockSource::ExistingFiles {
                let directory = &self.root.directory;
                for sbn in existing.copy(tree, directory, toi, &object.staged, staging)? {
                    let whole = KeptBlock { whole: true, ..KeptBlock::default() };
                    left.blocks.insert((toi, sbn), whole);
                }
            }
        }
        left.committed.extend(plan.complete);
        let groups = plan.groups.into_iter().map(|(id, group)| {
            let waiting = group.objects.clone();
            (id, OpenGroup { files: group.files, objects: group.objects, waiting })
        });
        let opened = objects.iter().map(|(&toi, open)| OpenedObject {
            toi: Toi::from(toi),
            object: Arc::clone(&open.object),
        });
        let opened = Opened {
            objects: opened.collect(),
            saved: saved::for_protocol(left),
            deselected: plan.deselected,
            part: plan.part,
        };
        let open = OpenTree {
            staging: Arc::clone(staging),
            objects,
            groups: groups.collect(),
            without_objects: plan.without_objects,
            corrections: plan.corrections,
            manifest: Arc::clone(tree.manifest),
            lacks_names: !unpublished.is_empty(),
            unnamed,
            lacking,
            wanted,
            held,
        };
        Ok((open, opened))
    }

    /// Commits the files of an object's group if this was the last object of it to be verified.
    pub(super) fn commit(&mut self, toi: Toi) -> Result<(), Error> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let mut failed = Vec::new();
        let committed = open.commit(toi, &mut failed);
        open.lacks_names |= !failed.is_empty();
        report_failed(failed, &self.reports);
        let named = committed?;
        named.iter().for_each(|file| _ = open.lacking.remove(file));
        open.unnamed.report(&named, &self.root.directory, &self.abandoned, &self.reports)
    }

    /// Commits what has no object (empty files, links, directories) and removes the staging
    /// directory, unless a file lacks its name.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let staging = Arc::clone(&open.staging);
        let OpenTree { unnamed, without_objects, held, .. } = &mut open;
        let held = held.take().unwrap_or_default();
        let mut failed = staging.publish_each(&held)?;
        failed.extend(commit_each(&staging, without_objects, || Ok(()))?);
        without_objects.extend(held);
        let unnamed_files = files_of(&failed);
        without_objects.retain(|file| !unnamed_files.contains(file));
        let directory = &self.root.directory;
        unnamed.report(without_objects, directory, &self.abandoned, &self.reports)?;
        let mut errors: Vec<_> = failed.into_iter().map(|(_, error)| error).collect();
        errors.extend(staging.correct(&open.corrections)?);
        errors.extend(staging.commit_directories()?);
        if open.lacks_names || !errors.is_empty() {
            report_failed(errors, &self.reports);
            // The next run goes on with what is there.
            return Ok(staging.sync()?);
        }
        // After everything that the mark vouches for, and before success is reported.
        if let Some(mark) = &mut self.mark {
            mark.raise(&self.root.directory, open.manifest.version())?;
            let kept = mark.delete_absent(&self.root.directory, &open.manifest)?;
            report_failed(kept, &self.reports);
        }
        staging.remove_when_done();
        Ok(())
    }

    /// Ends an incomplete reception: gives files that are complete their names, although others
    /// that share their objects are not. `None` if no tree was open.
    pub(super) fn give(&mut self) -> Option<IncompleteFiles> {
        let open = self.open.as_mut()?;
        let complete = open.complete_files().unwrap_or_else(|error| {
            tracing::warn!(%error, "no file is given that shares objects with others");
            Vec::new()
        });
        let held = match &open.held {
            // None has its name.
            Some(held) => [&complete[..], held, &open.without_objects].concat(),
            None => {
                let named = open.give(&complete).unwrap_or_else(|error| {
                    tracing::warn!(%error, "complete files could not be given");
                    Vec::new()
                });
                // The reception is over: it is not abandoned again.
                let token = CancellationToken::new();
                let directory = &self.root.directory;
                let _ = open.unnamed.report(&named, directory, &token, &self.reports);
                named.iter().for_each(|file| _ = open.lacking.remove(file));
                Vec::new()
            }
        };
        let named = open.wanted.saturating_sub(open.lacking.len() as u64);
        let held: BTreeSet<_> = held.into_iter().collect();
        let is_missing = |file: &FileIndex| open.lacking.contains(file) && !held.contains(file);
        let missing = indexed_files(&open.manifest).filter(|(file, _)| is_missing(file));
        let missing = missing.map(|(_, entry)| MissingFile::new(entry.path.clone())).collect();
        Some(IncompleteFiles { wanted: open.wanted, named, missing })
    }

    /// Syncs what a later run resumes: the host may be about to be switched off. If that fails, a
    /// power failure costs what came since the last time.
    pub(super) fn sync(&self) {
        let _ = self.open.as_ref().map(|open| open.staging.sync());
    }
}

impl OpenTree {
    /// Commits an object that is verified. Returns the files that got their names. The errors of
    /// others are in `failed`.
    fn commit(
        &mut self,
        toi: Toi,
        failed: &mut Vec<StagingError>,
    ) -> Result<Vec<FileIndex>, Error> {
        let mut named = Vec::new();
        let toi = toi.0 as u32;
        let Some(TreeObject { object, group, .. }) = self.objects.remove(&toi) else {
            return Ok(named);
        };
        if let Some(group) = self.groups.get_mut(&group)
            && group.waiting.remove(&toi)
        {
            if !group.waiting.is_empty() {
                // Without the spool the only notes that are true are those of complete blocks: the
                // disk must have these first.
                self.staging.sync()?;
                object.staged.remove_spool()?;
                return Ok(named);
            }
            let staging = &self.staging;
            let settled = || {
                // After a crash between two names, a later run gives the others theirs.
                let notes: Vec<_> =
                    group.objects.iter().map(|&toi| Note::Committed { toi }).collect();
                staging.note(&notes)?;
                staging.sync_notes()
            };
            if let Some(held) = &mut self.held {
                let unsettled = staging.settle_each(&group.files)?;
                settled()?;
                let names = files_of(&unsettled);
                held.extend(group.files.iter().filter(|file| !names.contains(file)));
                failed.extend(unsettled.into_iter().map(|(_, error)| error));
                object.staged.remove_spool()?;
                return Ok(named);
            }
            let mut errors = commit_each(staging, &group.files, settled)?;
            let unnamed = files_of(&errors);
            named.extend(group.files.iter().filter(|file| !unnamed.contains(file)));
            if named.is_empty()
                && let Some((_, first)) = errors.pop()
            {
                failed.extend(errors.into_iter().map(|(_, error)| error));
                return Err(first.into());
            }
            failed.extend(errors.into_iter().map(|(_, error)| error));
        }
        object.staged.remove_spool()?;
        Ok(named)
    }
}

impl OpenTree {
    /// The files without names whose bytes are all verified, although an object that they have
    /// bytes in is not complete.
    fn complete_files(&self) -> Result<Vec<FileIndex>, StagingError> {
        // A file that shares its objects with no other one is complete when they are.
        let shared = self.groups.values().filter(|group| group.files.len() > 1);
        let waiting: Vec<_> = shared.filter(|group| !group.waiting.is_empty()).collect();
        let files: BTreeSet<_> = waiting.iter().flat_map(|group| &group.files).copied().collect();
        let objects: BTreeSet<_> = waiting.iter().flat_map(|group| &group.waiting).collect();
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let saved = self.staging.notes_of(|toi| objects.contains(&toi))?;
        let mut verified = BTreeMap::new();
        for &toi in objects {
            let Some(TreeObject { object, .. }) = self.objects.get(&toi) else { continue };
            let runs = self.manifest.runs(toi);
            verified.insert(toi, verified_bytes(&object.staged, toi, runs, &saved)?);
        }
        let is_complete = |(index, file): &(FileIndex, &FileEntry)| {
            files.contains(index)
                && self.lacking.contains(index)
                && complete::is_complete(file, &verified)
        };
        let complete = indexed_files(&self.manifest).filter(is_complete);
        Ok(complete.map(|(index, _)| index).collect())
    }

    /// Gives names to complete files, and to those that no object has bytes of. Returns those that
    /// have their names.
    fn give(&mut self, complete: &[FileIndex]) -> Result<Vec<FileIndex>, StagingError> {
        let Given { mut named, failed } = self.staging.give_each(complete)?;
        let unnamed = commit_each(&self.staging, &self.without_objects, || Ok(()))?;
        let without_names = files_of(&unnamed);
        named.extend(self.without_objects.iter().filter(|file| !without_names.contains(file)));
        for (_, error) in failed.iter().chain(&unnamed) {
            tracing::warn!(%error, "a complete file could not be given");
        }
        Ok(named)
    }
}

/// The files of a manifest, by the indices that they are added with: directories have none.
fn indexed_files(manifest: &Manifest) -> impl Iterator<Item = (FileIndex, &FileEntry)> {
    let indexed = manifest.entries().iter().filter(|entry| !matches!(entry, Entry::Directory(_)));
    (0..).map(FileIndex).zip(indexed).filter_map(|(index, entry)| match entry {
        Entry::File(file) => Some((index, file)),
        Entry::Directory(_) | Entry::Symlink(_) => None,
    })
}

/// The files that are to be received, and the number of all that are wanted.
fn files_to_receive(entries: &[PlannedEntry]) -> (BTreeSet<FileIndex>, u64) {
    let is_directory = |action: &EntryAction| {
        matches!(action, EntryAction::MakeDirectory(_) | EntryAction::SkipDirectory(_))
    };
    let indexed = entries.iter().filter(|entry| !is_directory(&entry.action));
    let (mut receive, mut wanted) = (BTreeSet::new(), 0);
    for (index, entry) in (0..).map(FileIndex).zip(indexed) {
        match entry.action {
            EntryAction::Receive(_) => _ = receive.insert(index),
            EntryAction::Keep { .. } | EntryAction::Verified { .. } => {}
            _ => continue,
        }
        wanted += 1;
    }
    (receive, wanted)
}

/// Commits files, and does not stop at one that fails. Calls `settled` when the others only lack
/// their names.
fn commit_each(
    staging: &Staging,
    files: &[FileIndex],
    settled: impl FnOnce() -> Result<(), StagingError>,
) -> Result<FailedFiles, StagingError> {
    let mut failed = staging.settle_each(files)?;
    settled()?;
    let unsettled = files_of(&failed);
    let rest: Vec<_> = files.iter().copied().filter(|file| !unsettled.contains(file)).collect();
    failed.extend(staging.publish_each(&rest)?);
    Ok(failed)
}

fn files_of(failed: &FailedFiles) -> BTreeSet<FileIndex> {
    failed.iter().map(|(file, _)| *file).collect()
}

fn report_failed(errors: Vec<StagingError>, reports: &Sender<TargetReport>) {
    for error in errors {
        // The driver has dropped its end when the reception is over.
        let _ = reports.send(TargetReport::ItemFailed { error: error.into() });
    }
}

/// Adds an entry to the staging directory.
fn apply_entry(entry: PlannedEntry, staging: &Staging) -> Result<(), StagingError> {
    let PlannedEntry { name, action } = entry;
    match action {
        EntryAction::MakeDirectory(attributes) => staging.add_directory(name, attributes)?,
        EntryAction::SkipDirectory(attributes) => staging.pass_over_directory(name, attributes),
        EntryAction::Skip => _ = staging.pass_over(&name)?,
        EntryAction::Spare(file) => {
            staging.add_spare(&name, file.length, file.holes, file.attributes)?;
        }
        EntryAction::Keep { length } => _ = staging.add_existing(name, length)?,
        EntryAction::Verified { length } => _ = staging.add_verified(name, length)?,
        EntryAction::Link { leads_to } => _ = staging.add_link(name, leads_to)?,
        EntryAction::Receive(file) => {
            staging.add_sparse_file(name, file.length, file.holes, file.attributes)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::codes::no_code::NoCode;
    use fontana_fec::{Esi, FecScheme, Oti, Sbn};
    use fontana_store::{StagingOptions, TargetDirectory};
    use fontana_wire::{BlockHasher, Entry, FileEntry, ManifestObject, Metadata, RelativePath};
    use std::path::Path;

    const CONTENT: &[u8; 64] = b"sixty-four bytes, which are one block of four symbols of sixteen";

    /// Opens one file of one block, as a receiver does.
    fn open(target: &Path) -> (TreeTarget, Opened) {
        let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 4 });
        let oti = Oti { transfer_length: 64, symbol_size: 16, scheme };
        let mut hasher = BlockHasher::new();
        hasher.update(CONTENT);
        let object = ManifestObject { toi: 1, oti, block_hashes: vec![hasher.finalize()] };
        let path = RelativePath::new("file").unwrap();
        let file = Entry::File(FileEntry::whole_object(path, Metadata::default(), 1, 64));
        let manifest = Arc::new(Manifest::new(1, "", vec![object], vec![file]).unwrap());
        let directory = Arc::new(TargetDirectory::open(target).unwrap());
        let root = StagingRoot { directory, options: StagingOptions::default() };
        let selection = Selection::new(&[]).unwrap();
        let options = TreeOptions {
            selection,
            skip_existing: false,
            workers: 1,
            publisher: None,
            report_files: false,
            all_or_nothing: false,
        };
        let (reports, _) = crate::shared::unbounded();
        let mut tree = TreeTarget::new(root, options, None, CancellationToken::new(), reports);
        let opened = tree.open(&manifest).unwrap();
        (tree, opened)
    }

    #[test]
    fn a_committed_file_that_was_removed_is_received_again_also_after_another_interruption() {
        let directory = tempfile::tempdir().unwrap();
        let (mut tree, opened) = open(directory.path());
        let OpenedObject { toi, object } = &opened.objects[0];
        object.staged.write_source_run(Sbn(0), Esi(0), CONTENT).unwrap();
        object.note(&[Note::Whole { toi: 1, sbn: Sbn(0) }]).unwrap();
        tree.commit(*toi).unwrap();
        let file = directory.path().join("file");
        assert_eq!(std::fs::read(&file).unwrap(), CONTENT);
        drop((tree, opened));

        std::fs::remove_file(&file).unwrap();
        let (tree, opened) = open(directory.path());
        assert!(opened.saved.committed.is_empty() && opened.saved.blocks.is_empty());
        let object = &opened.objects[0].object;
        object.staged.write_source(Sbn(0), Esi(2), &CONTENT[32..48]).unwrap();
        object.note(&[Note::InPlace { toi: 1, sbn: Sbn(0), esi: Esi(2), count: 1 }]).unwrap();
        drop((tree, opened));

        let (_, opened) = open(directory.path());
        assert!(!file.exists(), "three of its symbols are missing");
        assert!(opened.saved.committed.is_empty());
        assert_eq!(opened.saved.blocks.len(), 1);
        assert_eq!(opened.saved.blocks[0].in_place, [Esi(2)]);
    }
}
