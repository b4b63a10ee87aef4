//! The answers of the driver to jobs.

use super::{Phase, Reception, Surroundings};
use crate::counter::Counter;
use crate::event::{DropReason, ObjectFailure, ReceiverEvent, ReceiverOutput};
use crate::job::{ReceiveDone, ReceiveJob, Scope};
use crate::receiver::sessions::Sessions;
use crate::time::Instant;
use fontana_wire::Toi;

impl Reception {
    pub(in crate::receiver) fn on_done(
        &mut self,
        around: &mut Surroundings<'_>,
        now: Instant,
        done: ReceiveDone,
    ) {
        let out = &mut self.outputs;
        match done {
            ReceiveDone::Opened { scope, saved } => {
                let opened = match scope {
                    Scope::Session => self.transfer.opening(),
                    Scope::Object(toi) => vec![toi],
                };
                around.stats.session_packets.count(saved.session_packets);
                let verified = self.catalog.verified(around.config);
                let symbols = self.transfer.restore(&saved, verified, out);
                if symbols > 0 {
                    out.push_back(ReceiverOutput::Event(ReceiverEvent::Resumed { symbols }));
                }
                for toi in opened {
                    self.transfer.on_opened(toi, out);
                }
                for session in around.sessions.iter_mut() {
                    self.place_early(around.config, now, session, around.stats);
                }
            }
            ReceiveDone::Solved { block, decoder, progress } => {
                self.transfer.on_solved(block, decoder, progress, out);
                self.use_unverified(block, around.stats);
            }
            ReceiveDone::Recovered { block, hash } => {
                let is_corrupt = self.transfer.on_recovered(block, hash, out);
                around.stats.corrupt_blocks.count(u64::from(is_corrupt));
                if let Some(newer) = self.newer.as_mut().filter(|_| is_corrupt) {
                    newer.on_corrupt();
                }
                self.use_unverified(block, around.stats);
            }
            ReceiveDone::Located { block, location } => {
                self.transfer.on_located(now, block, location, out);
                self.use_unverified(block, around.stats);
                // The last symbols may have arrived during the search.
                if self.transfer.has_suspects() {
                    self.idle_since = Some(now);
                }
            }
            ReceiveDone::Chosen { block, chosen } => {
                self.transfer.on_chosen(block, chosen.as_deref(), out);
                self.use_unverified(block, around.stats);
            }
            ReceiveDone::Committed(committed) => {
                let (config, transfer) = (around.config, &mut self.transfer);
                for object in self.catalog.on_committed(config, committed, transfer, out) {
                    self.drop_object(around.sessions, object, DropReason::Superseded);
                }
            }
            ReceiveDone::Mismatched { toi, digest, error } => {
                if self.catalog.on_mismatch(toi, digest) {
                    self.drop_object(around.sessions, toi, DropReason::Mismatched(error));
                } else {
                    self.transfer.fail(toi, ObjectFailure::Mismatched(error), out);
                    self.drop_unverified();
                }
            }
            ReceiveDone::Finished => {
                self.phase = Phase::Ended;
                out.push_back(ReceiverOutput::Event(ReceiverEvent::Complete));
            }
            // The files on disk are right, but the end of the session failed.
            ReceiveDone::Failed { scope: Scope::Session, error }
                if self.phase == Phase::Finishing =>
            {
                self.phase = Phase::Ended;
                let error = Some(error);
                out.push_back(ReceiverOutput::Event(ReceiverEvent::GivenUp { error }));
            }
            ReceiveDone::Failed { scope: Scope::Session, error } => {
                self.transfer.fail_all(&error, out);
                self.drop_unverified();
            }
            ReceiveDone::Failed { scope: Scope::Object(toi), error } => {
                self.transfer.fail(toi, ObjectFailure::Job(error), out);
                self.drop_unverified();
            }
            ReceiveDone::SpillRead { offset, bytes } => {
                self.on_spill_read(around, now, offset, &bytes);
            }
            ReceiveDone::SpillRefused { offset } => self.on_spill_refused(around, offset),
            ReceiveDone::Called(_) | ReceiveDone::Sealed { .. } | ReceiveDone::Read { .. } => {}
        }
        self.check_catalog(around);
        self.update_phase(around.channels);
    }

    /// Drops an object, with what was received of it.
    pub(super) fn drop_object(&mut self, sessions: &mut Sessions, toi: Toi, reason: DropReason) {
        self.transfer.withdraw(toi);
        for session in sessions.iter_mut() {
            let cost = session.early.discard(|early| early == toi);
            self.early_cost.discount(cost);
        }
        self.drop_unverified();
        let event = ReceiverEvent::ObjectDropped { toi, reason };
        self.outputs.push_back(ReceiverOutput::Event(event));
        self.outputs.push_back(ReceiverOutput::Job(ReceiveJob::Drop { toi }));
    }
}
