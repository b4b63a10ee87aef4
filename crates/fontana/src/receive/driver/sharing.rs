//! The deciding thread and other receivers of its site.

use super::DecidingThread;
use crate::error::Error;
use crate::event::ReceiveEvent;
use crate::receive::sharing::SiteGroup;
use fontana_net::ReceivedBatch;
use fontana_proto::{DatagramBatch, Endpoint, SymbolId};
use fontana_wire::{Hash, Manifest};
use std::sync::Arc;

impl DecidingThread<'_, '_> {
    /// Content was accepted.
    pub(super) fn begin_sharing(&mut self, hash: Hash, manifest: &Arc<Manifest>) {
        let Some(site) = &mut self.site else { return };
        self.core.runner.shared.begin(manifest);
        let begun = site.begin(hash, manifest);
        self.note_site(begun.map_err(Error::from));
    }

    /// Handles messages of other receivers.
    pub(super) fn on_messages(&mut self, mut batch: ReceivedBatch) -> Result<(), Error> {
        let now = self.now();
        let Some(site) = &mut self.site else { return Ok(()) };
        let datagrams = site.open_batch(&mut batch);
        let batch = DatagramBatch { slab: batch.as_datagrams().slab, datagrams: &datagrams };
        self.core.endpoint.handle_datagrams(now, &batch);
        self.poll(&batch)
    }

    /// Sends a message to the others.
    pub(super) fn send_to_site(&mut self, symbol: Option<SymbolId>) {
        let Some(site) = &mut self.site else { return };
        let (header, runner) = self.core.datagram();
        self.message.clear();
        self.message.extend_from_slice(header);
        if symbol.is_none_or(|symbol| runner.shared.write(&symbol, &mut self.message)) {
            let sent = site.send(&self.message);
            self.note_site(sent.map_err(Error::system("send to other receivers")));
        }
    }

    /// Nothing is shared any more if the host cannot send.
    fn note_site(&mut self, result: Result<(), Error>) {
        let Err(error) = result else { return };
        self.core.endpoint.leave_site();
        match self.site.as_ref().is_some_and(SiteGroup::is_required) {
            true => (self.emit)(ReceiveEvent::SharingFailed { error: Arc::new(error) }),
            false => tracing::info!(%error, "nothing is shared"),
        }
    }
}
