//! The index of a mirror, which says what it has.

use super::Common;
use super::fresh::FreshServer;
use super::shelf::Shelf;
use super::source::{Holder, Source};
use super::state::MirrorState;
use fontana_proto::Instant;
use fontana_proto::pull::{FreshPull, ShelfPull};
use fontana_wire::{FreshIndex, HeldIndex, ShelfIndex};

impl MirrorState {
    /// It has sent the index of its shelf, that of a server of fresh symbols, what it holds, or
    /// something else.
    pub(super) fn on_index(&mut self, now: Instant, bytes: &[u8], common: &mut Common) {
        let Some(files) = &common.files else { return };
        let is_of_content = |manifest| Some(manifest) == common.content;
        let shelf = ShelfIndex::parse(bytes).ok().filter(|index| is_of_content(index.manifest));
        let fresh = FreshIndex::parse(bytes).ok().filter(|index| is_of_content(index.manifest));
        let held = HeldIndex::parse(bytes).ok().filter(|index| is_of_content(index.manifest));
        let held = held.map(|index| (index.blocks(), files.held(&index)));
        self.source = match (shelf, fresh.zip(files.as_fresh()), &held) {
            (Some(index), ..) => {
                Source::Shelf(Shelf::new(ShelfPull::new(index.number, files.on_shelf(&index))))
            }
            (None, Some((index, objects)), _) => {
                Source::Fresh(FreshServer::new(FreshPull::new(index.start, objects)))
            }
            (None, None, &Some((blocks, _))) => Source::Holder(Holder { asked_at: now, blocks }),
            (None, None, None) => Source::Files,
        };
        match self.may_have_files() {
            true => self.restore_source(&mut common.pull),
            false => common.pull.remove_source(now, self.id),
        }
        common.set_held(self.id, held.map(|(_, positions)| positions));
    }
}
