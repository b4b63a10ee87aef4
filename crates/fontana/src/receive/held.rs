//! What a receiver holds: verified blocks, which a web server gives out while it receives.

use super::object::{OpenObject, Opened};
use crate::content::Content;
use crate::error::Error;
use crate::shared::Lock;
use fontana_fec::{ObjectLayout, Sbn};
use fontana_proto::BlockId;
use fontana_proto::pull::RangeSet;
use fontana_wire::{FileEntry, Hash, HeldIndex, HeldRun, Manifest, Toi};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// What a receiver holds of its content while it receives: [`ReceiverBuilder::hold`] fills it, and
/// a [`WebServer`] gives it out.
///
/// [`ReceiverBuilder::hold`]: crate::ReceiverBuilder::hold
/// [`WebServer`]: crate::WebServer
#[derive(Clone, Default)]
pub struct HeldContent {
    held: Arc<Lock<Option<Held>>>,
}

/// The verified blocks of accepted content.
struct Held {
    hash: Hash,
    manifest: Arc<Manifest>,
    directory: PathBuf,
    objects: BTreeMap<u32, HeldObject>,
}

struct HeldObject {
    /// Its files; `None`: all of them have their names.
    staged: Option<Arc<OpenObject>>,
    layout: ObjectLayout,
    blocks: RangeSet,
}

impl HeldContent {
    /// Nothing: no content is accepted.
    pub fn new() -> Self {
        Self::default()
    }

    /// Content was accepted, which is received into this directory.
    pub(super) fn begin(&self, hash: Hash, manifest: &Arc<Manifest>, directory: PathBuf) {
        let (manifest, objects) = (Arc::clone(manifest), BTreeMap::new());
        *self.held.lock() = Some(Held { hash, manifest, directory, objects });
    }

    /// Its objects were opened, with what an earlier run has left of them.
    pub(super) fn on_opened(&self, opened: &Opened) {
        let mut held = self.held.lock();
        let Some(held) = &mut *held else { return };
        for opened in &opened.objects {
            let Ok(toi) = u32::try_from(opened.toi.0) else { continue };
            let staged = Some(Arc::clone(&opened.object));
            let (layout, blocks) = (*opened.object.staged.layout(), RangeSet::default());
            held.objects.insert(toi, HeldObject { staged, layout, blocks });
        }
        opened.saved.committed.iter().for_each(|&toi| held.commit(toi));
    }

    /// A block is verified.
    pub(super) fn on_verified(&self, BlockId { toi, sbn }: BlockId) {
        let mut held = self.held.lock();
        let object = u32::try_from(toi.0).ok().zip(held.as_mut());
        if let Some(object) = object.and_then(|(toi, held)| held.objects.get_mut(&toi)) {
            let sbn = u64::from(sbn.0);
            object.blocks.insert(sbn..sbn + 1);
        }
    }

    /// The reception is over: what has no name is not given out any more.
    pub(super) fn end(&self) {
        if let Some(held) = &mut *self.held.lock() {
            held.objects.retain(|_, object| object.staged.is_none());
        }
    }

    /// The files of an object have their names.
    pub(super) fn on_committed(&self, toi: Toi) {
        if let Some(held) = &mut *self.held.lock() {
            held.commit(toi);
        }
    }
}

impl Held {
    fn commit(&mut self, toi: Toi) {
        let Ok(toi) = u32::try_from(toi.0) else { return };
        let Some(layout) = self.manifest.object(toi).and_then(|own| own.oti.layout().ok()) else {
            return;
        };
        let blocks = std::iter::once(0..u64::from(layout.block_count())).collect();
        self.objects.insert(toi, HeldObject { staged: None, layout, blocks });
    }
}

/// What a web server asks.
impl HeldContent {
    /// The accepted content; `None` before it is.
    pub(crate) fn accepted(&self) -> Option<(Hash, Arc<Manifest>)> {
        let held = self.held.lock();
        held.as_ref().map(|held| (held.hash, Arc::clone(&held.manifest)))
    }

    /// What clients are told. `None` before content is accepted.
    pub(crate) fn index(&self) -> Option<HeldIndex> {
        let held = self.held.lock();
        let held = held.as_ref()?;
        let of_object = |(&toi, object): (&u32, &HeldObject)| {
            let run = move |range: Range<u64>| {
                let (first, count) = (range.start as u32, (range.end - range.start) as u32);
                HeldRun { toi, first: Sbn(first), count }
            };
            object.blocks.iter().map(run).collect::<Vec<_>>()
        };
        let runs = held.objects.iter().flat_map(of_object).take(HeldIndex::MAX_RUNS).collect();
        Some(HeldIndex { manifest: held.hash, runs })
    }

    /// The number of blocks that are verified.
    pub(crate) fn blocks(&self) -> u64 {
        let held = self.held.lock();
        let objects = held.iter().flat_map(|held| held.objects.values());
        objects.map(|object| object.blocks.len()).sum()
    }

    /// Whether all blocks are verified that have these bytes of an object.
    pub(crate) fn has(&self, toi: u32, bytes: &Range<u64>) -> bool {
        let held = self.held.lock();
        let object = held.as_ref().and_then(|held| held.objects.get(&toi));
        object.is_some_and(|object| object.has(bytes))
    }

    /// Reads bytes of a file, which [are verified](Self::has), from `in_file` on. They are those of
    /// an object from `in_object` on.
    ///
    /// # Errors
    /// They cannot be read, or have changed.
    pub(crate) fn read(
        &self,
        file: &FileEntry,
        in_file: u64,
        (toi, in_object): (u32, u64),
        out: &mut [u8],
    ) -> Result<(), Error> {
        let gone = || Error::system("read a received file")(std::io::ErrorKind::NotFound.into());
        let (staged, directory) = {
            let held = self.held.lock();
            let held = held.as_ref().ok_or_else(gone)?;
            let staged = held.objects.get(&toi).and_then(|object| object.staged.clone());
            (staged, held.directory.clone())
        };
        // Once it has its name, it is not staged any more, while others of its object may be.
        match staged.is_some_and(|object| object.staged.read_at(in_object, out).is_ok()) {
            true => Ok(()),
            false => Content::read_received(file, &directory, in_file, out),
        }
    }
}

impl HeldObject {
    fn has(&self, bytes: &Range<u64>) -> bool {
        if bytes.is_empty() {
            return true;
        }
        let blocks = self.block_at(bytes.start)..self.block_at(bytes.end - 1) + 1;
        self.blocks.within(blocks.clone()).next() == Some(blocks)
    }

    /// The block with the byte at an offset.
    fn block_at(&self, offset: u64) -> u64 {
        let (mut low, mut high) = (0, self.layout.block_count());
        while low < high {
            let middle = low + (high - low) / 2;
            let is_before = |block: Range<u64>| block.end <= offset;
            match self.layout.block_range(Sbn(middle)).is_some_and(is_before) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low.into()
    }
}

impl std::fmt::Debug for HeldContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeldContent").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::codes::no_code::NoCode;
    use fontana_fec::{FecScheme, Oti};
    use fontana_wire::{Entry, FileEntry, ManifestObject, Metadata, RelativePath};

    #[test]
    fn ranges_are_held_if_all_blocks_of_them_are_verified() {
        let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 4 });
        // Four blocks of 64 bytes, the last one shorter.
        let oti = Oti { transfer_length: 250, symbol_size: 16, scheme };
        let object = ManifestObject { toi: 1, oti, block_hashes: vec![Hash([0; 32]); 4] };
        let path = RelativePath::new("file").unwrap();
        let file = FileEntry::whole_object(path, Metadata::default(), 1, 250);
        let entries = vec![Entry::File(file.clone())];
        let manifest = Arc::new(Manifest::new(1, "", vec![object], entries).unwrap());
        let held = HeldContent::new();
        let block = |sbn| BlockId { toi: Toi(1), sbn: Sbn(sbn) };
        held.on_verified(block(0));
        assert_eq!(held.index(), None, "nothing is accepted");
        held.begin(Hash([7; 32]), &manifest, PathBuf::new());
        assert_eq!(held.index().unwrap().runs, []);
        let layout = oti.layout().unwrap();
        let object = HeldObject { staged: None, layout, blocks: RangeSet::default() };
        held.held.lock().as_mut().unwrap().objects.insert(1, object);
        [0, 1, 3].map(block).into_iter().for_each(|block| held.on_verified(block));
        let run = |first, count| HeldRun { toi: 1, first: Sbn(first), count };
        assert_eq!(held.index().unwrap().runs, [run(0, 2), run(3, 1)]);
        assert_eq!(held.blocks(), 3);
        for (range, is_held) in [
            (0..128, true),
            (0..129, false),
            (127..128, true),
            (128..192, false),
            (191..192, false),
            (192..250, true),
            (249..250, true),
            (250..251, false),
            (0..0, true),
        ] {
            assert_eq!(held.has(1, &range), is_held, "{range:?}");
        }
        assert!(!held.has(2, &(0..1)));
        held.on_committed(Toi(1));
        assert_eq!(held.index().unwrap().runs, [run(0, 4)]);
        assert!(held.has(1, &(0..250)));
        // The file is not there.
        assert!(held.read(&file, 0, (1, 0), &mut [0; 16]).is_err());
    }
}
