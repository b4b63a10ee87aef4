//! The deciding thread and other receivers of its site.

use super::{DecidingThread, STOP_LATENCY};
use crate::cancellation::CancellationToken;
use crate::error::Error;
use crate::event::ReceiveEvent;
use crate::outcome::Outcome;
use crate::receive::outcome::{Over, Results};
use crate::receive::resend::SymbolsRead;
use crate::receive::sharing::ShareStage;
use crate::receive::threads::Reports;
use crate::sharing::ShareReport;
use crate::system;
use crossbeam_channel::{Receiver as ChannelReceiver, select_biased};
use fontana_net::{ReceiveThread, ReceivedBatch};
use fontana_proto::{DatagramBatch, Instant};
use fontana_wire::{Hash, Manifest, MemberId, Toi};
use std::sync::Arc;
use std::time::Duration;

/// A complete receiver stays for so many times [`Sharing::stays`](crate::Sharing::stays) at most.
const MOST_STAYS: u32 = 10;

/// What a receiver shares, and the thread that drains the group's socket.
pub(super) struct SharingThread {
    stage: ShareStage,
    messages: ReceiveThread,
}

impl SharingThread {
    pub(super) fn new(stage: ShareStage, messages: ReceiveThread) -> Self {
        Self { stage, messages }
    }

    pub(super) fn messages(&self) -> ChannelReceiver<ReceivedBatch> {
        self.messages.batches().clone()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.stage.poll_timeout()
    }

    pub(super) fn report(&self) -> ShareReport {
        self.stage.report()
    }

    /// Symbols of others that were of use.
    pub(super) fn symbols_used(&self) -> u64 {
        self.report().symbols_used
    }
}

impl DecidingThread<'_, '_> {
    /// Content was accepted.
    pub(super) fn begin_sharing(&mut self, hash: Hash, manifest: &Arc<Manifest>) {
        let Some(sharing) = &mut self.sharing else { return };
        let random = system::random_u64().and_then(|seed| Ok((seed, system::random_bytes()?)));
        match random {
            Ok((seed, member)) => sharing.stage.begin(seed, MemberId(member), hash, manifest),
            Err(error) => tracing::warn!(%error, "nothing is shared"),
        }
    }

    /// The files of an object have their names.
    pub(super) fn share_files(&mut self, toi: Toi) {
        if let Some(sharing) = &mut self.sharing {
            sharing.stage.on_committed(toi);
        }
    }

    /// Handles messages of other receivers.
    pub(super) fn on_messages(&mut self, batch: &mut ReceivedBatch) -> Result<(), Error> {
        let now = self.now();
        let Some(sharing) = &mut self.sharing else { return Ok(()) };
        sharing.stage.on_batch(now, batch, &mut self.core.endpoint);
        self.poll(&DatagramBatch { slab: batch.as_datagrams().slab, datagrams: &[] })
    }

    /// Symbols for other receivers were read, or could not be.
    pub(super) fn on_shared_read(&mut self, read: SymbolsRead) {
        let now = self.now();
        if let Some(sharing) = &mut self.sharing {
            sharing.stage.on_read(now, read);
        }
    }

    /// Sends what is due, and has symbols read.
    pub(super) fn drive_sharing(&mut self) {
        let now = self.now();
        let Some(sharing) = &mut self.sharing else { return };
        let runner = &mut self.core.runner;
        for read in sharing.stage.drive(now, &mut self.core.endpoint, &runner.objects) {
            runner.read(read);
        }
        if let Some(error) = sharing.stage.take_failure() {
            (self.emit)(ReceiveEvent::SharingFailed { error: Arc::new(error) });
        }
    }

    /// Stays for others, after everything is received.
    pub(super) fn share_end(
        &mut self,
        over: Over,
        stop: &CancellationToken,
        reports: &Reports,
        timeout: Option<Duration>,
    ) -> Result<(), Error> {
        let is_complete = self.outcome.outcome(over) == Outcome::Complete;
        let Some(sharing) = self.sharing.as_ref().filter(|_| over == Over::Complete) else {
            return Ok(());
        };
        let (stays, messages) = (sharing.stage.stays(), sharing.messages());
        let ended_at = self.now();
        // Any host can ask for ever.
        let time_up = timeout.map(|timeout| Instant::ZERO + timeout);
        let last =
            (ended_at + stays * MOST_STAYS).min(time_up.unwrap_or(ended_at + stays * MOST_STAYS));
        if is_complete {
            let Results { manifest, accepted, bytes, .. } = &self.outcome;
            let (manifest, verified, bytes) = (*manifest, *accepted, *bytes);
            (self.emit)(ReceiveEvent::Sharing { stays, manifest, verified, bytes });
        }
        while !stop.is_cancelled() {
            self.drive_sharing();
            self.core.runner.flush(self.core.endpoint.session_packets());
            let Some(sharing) = &self.sharing else { break };
            let Some(until) = sharing.stage.serves_until() else { break };
            let (now, until) = (self.now(), until.max(ended_at + stays).min(last));
            if now >= until {
                break;
            }
            let due = sharing.poll_timeout().unwrap_or(until).min(until);
            let patience = due.saturating_since(now).min(STOP_LATENCY);
            select_biased! {
                recv(reports.workers) -> report => if let Ok(report) = report { self.on_worker(report) },
                recv(reports.panics) -> panic => if let Ok(panic) = panic { return Err(panic.into()) },
                recv(messages) -> batch => match batch {
                    Ok(mut batch) => self.on_messages(&mut batch)?,
                    Err(_) => break,
                },
                default(patience) => {}
            }
        }
        Ok(())
    }
}
