//! The deciding thread and its mirrors.

use super::DecidingThread;
use crate::error::Error;
use crate::receive::mirrors::Report;
use crate::receive::outcome::Over;
use fontana_proto::{BlockId, DatagramBatch};
use fontana_wire::Manifest;

impl DecidingThread<'_, '_> {
    /// Gives the mirrors their orders.
    pub(super) fn drive_mirrors(&mut self) -> Result<(), Error> {
        let now = self.now();
        let Some(mirrors) = &mut self.mirrors else { return Ok(()) };
        mirrors.drive(now, &mut self.core.endpoint);
        self.poll(&DatagramBatch::EMPTY)?;
        self.emit_events_of_mirrors();
        Ok(())
    }

    /// Handles what a mirror reports.
    pub(super) fn on_mirror(&mut self, report: Report) -> Result<(), Error> {
        let now = self.now();
        let Some(mirrors) = &mut self.mirrors else { return Ok(()) };
        let slab = mirrors.on_report(now, report, &mut self.core.endpoint)?;
        self.poll(&DatagramBatch { slab: &slab, datagrams: &[] })?;
        self.emit_events_of_mirrors();
        Ok(())
    }

    fn emit_events_of_mirrors(&mut self) {
        let Some(mirrors) = &mut self.mirrors else { return };
        for event in mirrors.take_events() {
            (self.emit)(event);
        }
        if mirrors.are_gone() && self.listening.is_none() {
            self.outcome.over.get_or_insert(Over::NoMirrors);
        }
    }

    /// Content was accepted.
    pub(super) fn begin_mirrors(&mut self, manifest: &Manifest) {
        if let Some(mirrors) = &mut self.mirrors {
            mirrors.begin(manifest);
        }
    }

    /// A block is verified, or corrupt.
    pub(super) fn on_block_of_mirrors(&mut self, block: BlockId, is_verified: bool) {
        let now = self.now();
        let Some(mirrors) = &mut self.mirrors else { return };
        let receiver = &mut self.core.endpoint;
        if is_verified {
            mirrors.on_verified(now, block, receiver);
        } else {
            mirrors.on_corrupt(now, block, receiver);
        }
    }
}
