//! The end of a reception: the sender is told, and other receivers of the site get what they lack.

use super::{DecidingThread, STOP_LATENCY};
use crate::cancellation::CancellationToken;
use crate::error::Error;
use crate::event::ReceiveEvent;
use crate::outcome::Outcome;
use crate::receive::options::ReceiveOptions;
use crate::receive::outcome::{Over, Results};
use crate::receive::sharing::SiteGroup;
use crate::receive::threads::Reports;
use crate::receive::worker::WorkerReport;
use crossbeam_channel::{never, select_biased};
use fontana_net::ReceiveThread;
use fontana_proto::{DatagramBatch, Ending, Endpoint, Instant, ReceiverPhase};
use fontana_wire::ReceiverState;

impl DecidingThread<'_, '_> {
    /// Stays for the sender, which is to know how the reception has ended, and for other receivers
    /// of the site.
    pub(super) fn stay(
        &mut self,
        over: Over,
        stop: &CancellationToken,
        rx: &ReceiveThread,
        reports: &Reports,
        options: &ReceiveOptions,
    ) -> Result<(), Error> {
        let is_of_version = match over {
            Over::Superseded | Over::NothingNew => false,
            _ => self.outcome.manifest.is_some(),
        };
        if self.follows && !is_of_version {
            // What it reports is about the version that is here, or the next one.
            return Ok(());
        }
        let now = self.now();
        let ending = self.ending(over, options);
        self.core.endpoint.end(now, ending);
        let sharing = options.sharing.filter(|_| self.outcome.outcome(over) == Outcome::Complete);
        if let (ReceiverPhase::Staying { shares: true }, Some(sharing)) =
            (self.core.endpoint.phase(now), sharing)
        {
            let Results { manifest, accepted: verified, bytes, .. } = &self.outcome;
            let (manifest, verified, bytes) = (*manifest, *verified, *bytes);
            let stays = sharing.stays;
            (self.emit)(ReceiveEvent::Sharing { stays, manifest, verified, bytes });
        }
        // Symbols that are read for others are the only work that is still of use.
        while !stop.is_cancelled() && self.core.endpoint.phase(self.now()) != ReceiverPhase::Over {
            self.note_turn();
            self.poll(&DatagramBatch::EMPTY)?;
            self.core.runner.flush(self.core.endpoint.session_packets());
            let due = self.core.endpoint.poll_timeout();
            let patience =
                due.map_or(STOP_LATENCY, |due| due.saturating_since(self.now()).min(STOP_LATENCY));
            let messages = self.site.as_ref().map_or_else(never, SiteGroup::messages);
            select_biased! {
                recv(reports.workers) -> report => if let Ok(report @ WorkerReport::Read(_)) = report {
                    self.on_worker(report);
                },
                recv(reports.panics) -> panic => if let Ok(panic) = panic { return Err(panic.into()) },
                recv(messages) -> batch => match batch {
                    Ok(batch) => self.on_messages(batch)?,
                    Err(_) => break,
                },
                recv(rx.batches()) -> batch => match batch {
                    Ok(batch) => self.on_batch(batch)?,
                    Err(_) => break,
                },
                default(patience) => {}
            }
        }
        Ok(())
    }

    fn ending(&self, over: Over, options: &ReceiveOptions) -> Ending {
        let outcome = self.outcome.outcome(over);
        let manifest = self.outcome.manifest.map(|manifest| manifest.hash);
        let stream = || self.core.endpoint.stream_instance().map(ReceiverState::whole_stream);
        let state = match manifest.or_else(stream) {
            Some(manifest) if outcome == Outcome::Complete => ReceiverState::Complete { manifest },
            _ => {
                let reporting = options.reporting.as_ref();
                let exit_code = reporting.map_or(0, |it| (it.exit_code)(outcome));
                ReceiverState::Failed { exit_code }
            }
        };
        // Any host can ask for ever.
        let latest = options.timeout.map(|timeout| Instant::ZERO + timeout);
        Ending { state, shares: over == Over::Complete, latest }
    }
}
