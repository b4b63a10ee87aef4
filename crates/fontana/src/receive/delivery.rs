//! Delivery of verified bytes in their order: of a file to a consumer, of a stream to a consumer, a
//! device, memory or a file. Of a file in memory, what is verified.

use super::into::ReceiveInto;
use super::object::OpenObject;
use super::staging_root::StagingRoot;
use super::target::unique_tag;
use crate::error::Error;
use crossbeam_channel::Receiver;
use fontana_proto::BlockId;
use fontana_store::{Device, GrowingFile, Memory, StagingError, TargetName};
use fontana_wire::{Manifest, StreamIndex, Toi};
use pieces::{BlockPiece, FilePieces};
use sink::{Sink, StreamInMemory, StreamOnDevice};
use std::collections::BTreeMap;
use std::sync::Arc;
use thread::Piece;

mod pieces;
mod sink;
mod thread;

pub(super) use thread::{DeliveryReport, DeliveryThread};

/// What is delivered in order, and to what.
pub(super) struct OrderedDelivery {
    content: Content,
    stream_to: StreamDestination,
}

enum Content {
    /// Nothing: the target gives files their names, or writes them in place.
    None,
    /// The one file of a manifest, in pieces.
    File { thread: DeliveryThread, pieces: FilePieces },
    /// The one file of a manifest, in its place already: what is verified is said.
    Memory { memory: Arc<dyn Memory>, pieces: FilePieces },
    /// A stream, in fragments.
    Stream(DeliveryThread),
}

/// Where a stream goes without a consumer.
enum StreamDestination {
    /// A file of the stream's name.
    NewFile(StagingRoot),
    Device(Device),
    Memory(Arc<dyn Memory>),
}

impl OrderedDelivery {
    pub(super) fn new(into: ReceiveInto, root: StagingRoot) -> Result<Self, Error> {
        let (content, stream_to) = match into {
            ReceiveInto::Directory => (Content::None, StreamDestination::NewFile(root)),
            ReceiveInto::Device(device) => (Content::None, StreamDestination::Device(device)),
            ReceiveInto::Memory(memory) => {
                let pieces = FilePieces::default();
                let stream_to = StreamDestination::Memory(Arc::clone(&memory));
                (Content::Memory { memory, pieces }, stream_to)
            }
            ReceiveInto::Writer(writer) => {
                let thread = DeliveryThread::spawn(Sink::Writer(writer))?;
                let pieces = FilePieces::default();
                (Content::File { thread, pieces }, StreamDestination::NewFile(root))
            }
        };
        Ok(Self { content, stream_to })
    }

    /// Begins with the file of a manifest, if a consumer takes it. Its holes are delivered at once.
    pub(super) fn begin_file(&mut self, manifest: &Manifest) {
        let Some(file) = manifest.files().next() else { return };
        let (thread, pieces) = match &mut self.content {
            Content::File { thread, pieces } => (thread, pieces),
            Content::Memory { pieces, .. } => return *pieces = FilePieces::of(file, manifest),
            Content::None | Content::Stream(_) => return,
        };
        *pieces = FilePieces::of(file, manifest);
        for hole in pieces.holes.drain(..) {
            thread.deliver(hole.number, Piece::Zeros(hole.length));
        }
    }

    /// Begins with a stream.
    pub(super) fn begin_stream(&mut self, index: &StreamIndex) -> Result<(), Error> {
        let thread = match std::mem::replace(&mut self.content, Content::None) {
            Content::File { thread, .. } | Content::Stream(thread) => thread,
            Content::None | Content::Memory { .. } => {
                DeliveryThread::spawn(self.stream_to.sink(index)?)?
            }
        };
        self.content = Content::Stream(thread);
        Ok(())
    }

    /// Delivers the bytes of a verified block.
    pub(super) fn on_verified(&mut self, id: BlockId, objects: &BTreeMap<Toi, Arc<OpenObject>>) {
        let (thread, pieces) = match &mut self.content {
            Content::File { thread, pieces } => (thread, pieces),
            Content::Memory { memory, pieces } => {
                for BlockPiece { range, at, .. } in pieces.of_block.remove(&id).unwrap_or_default()
                {
                    memory.on_verified(at..at + (range.end - range.start));
                }
                return;
            }
            Content::None | Content::Stream(_) => return,
        };
        let Some(object) = objects.get(&id.toi) else { return };
        for part in pieces.of_block.remove(&id).unwrap_or_default() {
            let piece = Piece::Bytes { object: Arc::clone(object), range: part.range };
            thread.deliver(part.number, piece);
        }
    }

    /// The thread that delivers a stream, if it is one.
    pub(super) fn stream(&self) -> Option<&DeliveryThread> {
        match &self.content {
            Content::Stream(thread) => Some(thread),
            Content::None | Content::File { .. } | Content::Memory { .. } => None,
        }
    }

    /// The delivering thread, if something is delivered.
    pub(super) fn thread(&self) -> Option<&DeliveryThread> {
        match &self.content {
            Content::None | Content::Memory { .. } => None,
            Content::File { thread, .. } | Content::Stream(thread) => Some(thread),
        }
    }

    /// The reports of the delivery: a channel that stays silent if nothing is delivered.
    pub(super) fn reports(&self) -> Receiver<DeliveryReport> {
        self.thread().map_or_else(crossbeam_channel::never, |thread| thread.reports().clone())
    }

    /// Ends the delivery, complete or not. Returns the bytes that were taken; `None` if nothing is
    /// delivered.
    pub(super) fn end(self) -> Option<u64> {
        match self.content {
            Content::None | Content::Memory { .. } => None,
            Content::File { thread, .. } | Content::Stream(thread) => Some(thread.end()),
        }
    }
}

impl StreamDestination {
    fn sink(&self, index: &StreamIndex) -> Result<Sink, Error> {
        match self {
            Self::Device(device) => Ok(Sink::Device(Box::new(StreamOnDevice::new(device.clone())))),
            Self::Memory(memory) => Ok(Sink::Memory(StreamInMemory::new(Arc::clone(memory)))),
            Self::NewFile(StagingRoot { directory, options }) => {
                let components: Vec<_> = index.name.components().collect();
                let name = TargetName::new(&components).map_err(StagingError::from)?;
                let directory = Arc::clone(directory);
                let file = GrowingFile::create(directory, &unique_tag()?, name, *options)?;
                Ok(Sink::File(Box::new(file)))
            }
        }
    }
}
