//! Symbols that the driver has pulled from sources of its own choice, such as web servers. They
//! fill the same decoders as those of packets.
//!
//! A pulled symbol belongs to no session: the driver knows what it has requested of which source.
//! Blocks are verified as always. A block that turns out to be wrong can be [fetched
//! again](Receiver::refetch) from one source, so that its next hash is that source's.

use super::Receiver;
use super::catalog::{Catalog, Content, manifest_content};
use super::config::Expectation;
use super::reception::Reception;
use super::sources::SourceId;
use super::transfer::{Incoming, Need, SymbolContent, Taken};
use crate::counter::Counter;
use crate::endpoint::{BlockId, SessionKey};
use crate::event::{Rejection, Verified};
use crate::pull::{Pulled, PulledRun};
use crate::time::Instant;
use fontana_fec::Esi;
use fontana_wire::{Hash, Manifest, Toi};
use std::ops::Range;
use std::sync::Arc;

impl Receiver {
    /// Accepts content by its manifest, as if a session had announced it. The driver has checked
    /// that `hash` is the manifest's. `from`: where it comes from, for the event. From here on,
    /// sessions are checked for this hash, and not for a signature.
    ///
    /// # Errors
    /// The manifest is not the expected one, or exceeds the limits.
    pub fn accept_manifest(
        &mut self,
        from: SessionKey,
        hash: Hash,
        manifest: &Arc<Manifest>,
    ) -> Result<(), Rejection> {
        let (limits, expected) = (&self.config.limits, &self.config.expectation);
        let is_other = expected.manifest.is_some_and(|expected| expected != hash);
        if is_other || self.reception.has_accepted() {
            return Err(Rejection::OtherManifest);
        }
        expected.check_version(manifest.version())?;
        if manifest.largest_length() > limits.max_transfer_bytes
            || !manifest.objects().iter().all(|object| limits.have_room_to_decode(object.oti))
        {
            return Err(Rejection::TooLarge);
        }
        let Some(content) = self.reception.content_of(from, hash, manifest) else {
            return Err(Rejection::BadManifest);
        };
        self.config.expectation = Expectation {
            manifest: Some(hash),
            publisher: None,
            ..std::mem::take(&mut self.config.expectation)
        };
        let (mut around, reception) = self.parts();
        reception.accept(&mut around, None, content);
        Ok(())
    }

    /// The manifest that an earlier run has saved, and its hash, if it is the expected one.
    pub fn known_manifest(&self) -> Option<(Hash, Arc<Manifest>)> {
        let known = self.config.known_manifest.clone();
        known.filter(|&(hash, _)| self.config.expectation.manifest == Some(hash))
    }

    /// Takes pulled symbols of an open object. `slab` is that of the batch that the driver polls
    /// with next; the run says where in it their bytes are.
    pub fn handle_pulled(&mut self, now: Instant, run: &PulledRun, slab: &[u8]) -> Pulled {
        let pulled = self.reception.take_pulled(run, slab);
        let fresh = pulled.fresh_count();
        self.stats.pulled.count(fresh);
        if fresh > 0 {
            self.silence.end(now);
            self.reception.on_fresh(now, fresh);
        }
        if self.reception.may_complete() {
            self.reception.update_phase(&self.channels);
        }
        pulled
    }

    /// The first run of source symbols from `from` on that a block lacks. `None` if the block needs
    /// no more, is not received, lacks only symbols before `from`, or finds no memory for its
    /// decoder now.
    pub fn missing_source(&self, block: BlockId, from: Esi) -> Option<Range<u32>> {
        self.reception.transfer.missing_source(block, from)
    }

    /// Whether a block needs more symbols.
    pub fn needs_symbols(&self, block: BlockId) -> bool {
        self.reception.transfer.need(block) == Need::More
    }

    /// Number of symbols that a block needs, as far as is known. 0 if it needs no more, is not
    /// received, or finds no memory for its decoder now.
    pub fn block_symbols_wanted(&self, block: BlockId) -> u32 {
        self.reception.transfer.block_symbols_wanted(block)
    }

    /// The first run of repair symbols of a range that a block has not received. `None` if the
    /// block needs no more, is not received, or has all of them.
    pub fn missing_repair(&self, block: BlockId, esis: Range<u32>) -> Option<Range<u32>> {
        self.reception.transfer.missing_repair(block, esis)
    }

    /// Whether an object is open, and not complete.
    pub fn is_receiving(&self, toi: Toi) -> bool {
        self.reception.transfer.is_receiving(toi)
    }

    /// Whether a corrupt block waits until its wrong symbols are found: for more symbols, for other
    /// copies of them, or for a worker.
    pub fn is_suspect(&self, block: BlockId) -> bool {
        self.reception.transfer.is_suspect(block)
    }

    /// Drops all symbols of a block, and reserves it for pulled ones: symbols of packets are of no
    /// use until it is verified or [released](Self::release). False if that is not possible now: it
    /// is verified, or a job on it is under way.
    pub fn refetch(&mut self, block: BlockId) -> bool {
        let is_dropped = self.reception.refetch(block);
        if is_dropped {
            self.reception.update_phase(&self.channels);
        }
        is_dropped
    }

    /// Drops pulled symbols of these runs of a corrupt block: their source has sent other wrong
    /// ones. What others have brought of it stays. False if it has none of them, or a job on it is
    /// under way.
    pub fn drop_pulled(&mut self, block: BlockId, runs: &[Range<u32>]) -> bool {
        let Reception { transfer, outputs, .. } = &mut self.reception;
        let is_dropped = transfer.drop_pulled(block, runs, outputs);
        if is_dropped {
            self.reception.update_phase(&self.channels);
        }
        is_dropped
    }

    /// Lets a reserved block take symbols of packets again. False if it is not reserved.
    pub fn release(&mut self, block: BlockId) -> bool {
        self.reception.transfer.release(block)
    }
}

impl Reception {
    fn content_of(
        &self,
        from: SessionKey,
        hash: Hash,
        manifest: &Arc<Manifest>,
    ) -> Option<Content> {
        matches!(self.catalog, Catalog::Manifest(_))
            .then(|| manifest_content(from, hash, manifest, Verified::Digest))
    }

    fn take_pulled(&mut self, run: &PulledRun, bytes: &[u8]) -> Pulled {
        let mut pulled = Pulled::default();
        let Some((size, encoding_id)) = self.transfer.symbols_of(run.block.toi) else {
            return pulled;
        };
        let starts = run.bytes.clone().step_by(usize::from(size).max(1));
        for (start, at) in starts.zip(0_u32..) {
            let Some(esi) = run.first.0.checked_add(at) else { break };
            let end = run.bytes.end.min(start.saturating_add(size.into()));
            let symbol = bytes.get(start as usize..end as usize).unwrap_or_default();
            let source = SourceId::PULLED;
            let incoming = Incoming { block: run.block, esi: Esi(esi), encoding_id, source };
            let content = SymbolContent::InSlab { bytes: symbol, start };
            match self.transfer.take(&incoming, content, &mut self.outputs) {
                Taken::Fresh => pulled.add_fresh(Esi(esi)),
                _ => pulled.useless.count(1),
            }
        }
        pulled
    }

    fn refetch(&mut self, block: BlockId) -> bool {
        let is_dropped = self.transfer.refetch(block, &mut self.outputs);
        if is_dropped {
            self.early_cost.discount(self.unverified.retain(|other| other != block));
        }
        is_dropped
    }
}
