//! Symbols that a receiver reads, or computes, for others of its site.

use super::object::OpenObject;
use super::places::places;
use crate::content::Content;
use crate::error::Error;
use fontana_fec::{Esi, PlanCache};
use fontana_proto::BlockId;
use fontana_store::{ObjectEncoder, SolvedStore};
use fontana_wire::Manifest;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Symbols of a block that are to be read.
pub(super) struct SymbolRead {
    pub(super) block: BlockId,
    /// The number of this batch.
    pub(super) batch: u32,
    pub(super) esis: Vec<Esi>,
    pub(super) from: ReadFrom,
}

/// What was read.
pub(super) struct SymbolsRead {
    pub(super) block: BlockId,
    pub(super) batch: u32,
    /// The symbols, one after another; `None` if they cannot be read.
    pub(super) symbols: Option<Vec<u8>>,
}

/// Where symbols are read from.
pub(super) enum ReadFrom {
    /// A block that lacks symbols, of which these repair symbols are in its slots, in order.
    Part { object: Arc<OpenObject>, repair: Vec<Esi> },
    /// A block that is complete, of an object whose files have no names yet.
    Whole { object: Arc<OpenObject>, plans: Arc<PlanCache> },
    /// An object whose files have their names.
    Files(Arc<CommittedObject>),
}

/// An object whose files have their names. They are opened when a symbol is wanted.
pub(super) struct CommittedObject {
    pub(super) manifest: Arc<Manifest>,
    pub(super) directory: PathBuf,
    pub(super) plans: Arc<PlanCache>,
    /// `None`: a file is missing, or has changed.
    pub(super) encoder: OnceLock<Option<ObjectEncoder>>,
}

impl SymbolRead {
    /// Reads the symbols, one after another, or computes them with at most `budget` bytes.
    pub(super) fn read(&self, budget: usize) -> Result<Vec<u8>, Error> {
        let sbn = self.block.sbn;
        let bytes = |size: u16| vec![0; self.esis.len() * usize::from(size)];
        match &self.from {
            ReadFrom::Part { object, repair } => {
                let mut symbols = bytes(object.staged.layout().oti().symbol_size);
                object.staged.read_symbols(sbn, &self.esis, places(repair), &mut symbols)?;
                Ok(symbols)
            }
            ReadFrom::Whole { object, plans } => {
                let layout = object.staged.layout();
                let mut symbols = bytes(layout.oti().symbol_size);
                let k = layout.source_symbols(sbn).unwrap_or(0);
                if self.esis.iter().all(|esi| esi.0 < k) {
                    object.staged.read_symbols(sbn, &self.esis, places(&[]), &mut symbols)?;
                } else {
                    let plan = plans.source_plan(layout.oti().scheme, k);
                    let plan = plan.map_err(fontana_store::EncodeError::from)?;
                    object.staged.compute_symbols(sbn, &self.esis, &plan, budget, &mut symbols)?;
                }
                Ok(symbols)
            }
            ReadFrom::Files(object) => {
                let encoder = object.encoder(self.block)?;
                let mut symbols = bytes(encoder.source().layout().oti().symbol_size);
                match encoder.encode(sbn, &self.esis, budget, &mut symbols)? {
                    None => Ok(symbols),
                    Some(found) => Err(encoder.source().changed(&found).into()),
                }
            }
        }
    }
}

impl CommittedObject {
    fn encoder(&self, block: BlockId) -> Result<&ObjectEncoder, Error> {
        let encoder = self.encoder.get_or_init(|| {
            let source = Content::object_of_directory(&self.manifest, &self.directory, block.toi);
            let encoder = |source| {
                let store = SolvedStore::new(0);
                ObjectEncoder::new(source, Arc::clone(&self.plans), store)
            };
            let note = |why: &Error| tracing::info!(%why, "a received file is not shared");
            source.inspect_err(note).ok().map(encoder)
        });
        let gone = || Error::system("share a file")(std::io::ErrorKind::NotFound.into());
        encoder.as_ref().ok_or_else(gone)
    }
}
