//! What is received for a consumer instead of a directory: which verified bytes are which piece.

use super::deliver::{Deliverer, Piece, Sink};
use super::object::OpenObject;
use super::pieces::Pieces;
use super::staging_root::StagingRoot;
use super::target::unique_tag;
use crate::error::Error;
use crossbeam_channel::Receiver;
use fontana_proto::BlockId;
use fontana_store::{GrowingFile, StagingError, TargetName};
use fontana_wire::{Manifest, StreamIndex, Toi};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A consumer and what it still waits for.
pub(super) struct Pipe {
    deliverer: Deliverer,
    pieces: Pieces,
}

impl Pipe {
    pub(super) fn new(sink: Box<dyn Sink>) -> Result<Self, Error> {
        Ok(Self { deliverer: Deliverer::spawn(sink)?, pieces: Pieces::default() })
    }

    /// For a stream that goes to a directory: into a file of its name.
    pub(super) fn into_file(index: &StreamIndex, root: StagingRoot) -> Result<Self, Error> {
        let components: Vec<_> = index.name.components().collect();
        let name = TargetName::new(&components).map_err(StagingError::from)?;
        let file = GrowingFile::create(root.directory, &unique_tag()?, name, root.options)?;
        Self::new(Box::new(file))
    }

    /// The one file of a manifest is what is delivered; its holes are there already.
    pub(super) fn begin(&mut self, manifest: &Manifest) {
        let Some(file) = manifest.files().next() else { return };
        self.pieces = Pieces::of(file, manifest);
        for (number, length) in std::mem::take(&mut self.pieces.holes) {
            self.deliverer.deliver(number, Piece::Zeros(length));
        }
    }

    /// A block was verified: its bytes may go.
    pub(super) fn on_verified(&mut self, id: BlockId, objects: &BTreeMap<Toi, Arc<OpenObject>>) {
        let Some(object) = objects.get(&id.toi) else { return };
        for (number, range) in self.pieces.of_block.remove(&id).unwrap_or_default() {
            self.deliverer.deliver(number, Piece::Bytes { object: Arc::clone(object), range });
        }
    }

    /// A fragment of a stream was verified.
    pub(super) fn on_fragment(&self, toi: Toi, object: Arc<OpenObject>) {
        let range = 0..object.staged.layout().oti().transfer_length;
        if let Some(number) = StreamIndex::number(toi) {
            self.deliverer.deliver(number.into(), Piece::Bytes { object, range });
        }
    }

    pub(super) fn deliverer(&self) -> &Deliverer {
        &self.deliverer
    }

    /// Ends the delivery. Returns the bytes that the consumer has taken.
    pub(super) fn end(self) -> u64 {
        self.deliverer.end()
    }
}

/// The reports of a pipe, if there is one: a channel that is silent for ever if not.
pub(super) fn reports(pipe: Option<&Pipe>) -> Receiver<super::deliver::DeliveryReport> {
    pipe.map_or_else(crossbeam_channel::never, |pipe| pipe.deliverer.reports().clone())
}
