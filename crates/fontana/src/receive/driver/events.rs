//! The endpoint's events: recorded for the report, and emitted to the application.

use super::{DecidingThread, OldVersion};
use crate::error::TransferError;
use crate::event::{AcceptedManifest, ObjectReport, ReceiveEvent};
use crate::receive::options::SILENCE;
use crate::receive::outcome::Over;
use crate::receive::runner::ReceiveRunner;
use crate::report::RejectedSession;
use fontana_proto::{
    DropReason, ObjectFailure, ReceiverEvent, Rejection, Scope, SessionKey, Verified, sent_toi,
};
use fontana_wire::{Hash, Manifest, Printable, Toi, parse_content_location};
use std::sync::Arc;
use std::time::Duration;

impl DecidingThread<'_, '_> {
    pub(super) fn on_event(&mut self, event: ReceiverEvent) {
        let elapsed = self.elapsed();
        match event {
            ReceiverEvent::Offered(offer) => (self.emit)(ReceiveEvent::Offered(offer)),
            ReceiverEvent::Rejected { session, reason } => self.on_rejected(session, reason),
            ReceiverEvent::Superseded { .. } => {
                if self.follows {
                    self.outcome.over.get_or_insert(Over::Superseded);
                }
            }
            ReceiverEvent::Accepted { session, manifest, hash, verified } => {
                self.old = None;
                self.outcome.accepted = Some(verified);
                self.begin_content(hash, &manifest);
                (self.emit)(ReceiveEvent::Accepted { session, manifest, hash, verified });
            }
            ReceiverEvent::StreamOffered { session, index } => {
                (self.emit)(ReceiveEvent::StreamOffered { session, index });
            }
            ReceiverEvent::StreamAccepted { session, index, key, verified } => {
                self.begin_stream(&index, verified);
                (self.emit)(ReceiveEvent::StreamAccepted { session, index, key, verified });
            }
            ReceiverEvent::Reporting { to } => (self.emit)(ReceiveEvent::Reporting { to }),
            ReceiverEvent::ClocksDiffer { difference } => {
                (self.emit)(ReceiveEvent::ClocksDiffer { difference });
            }
            ReceiverEvent::SiteLacks { blocks, symbols } => {
                (self.emit)(ReceiveEvent::SiteLacks { blocks, symbols });
            }
            ReceiverEvent::FragmentDone { range, .. } => {
                self.outcome.bytes += range.end - range.start
            }
            ReceiverEvent::StreamBroken { at, reason } => {
                self.outcome.broken = Some((at, reason));
                self.outcome.over = Some(Over::GivenUp);
            }
            ReceiverEvent::Resumed { symbols } => {
                let source_symbols = self.core.endpoint.source_symbols();
                (self.emit)(ReceiveEvent::Resumed { symbols, source_symbols });
            }
            ReceiverEvent::CarouselFound { .. }
            | ReceiverEvent::FluteFound { .. }
            | ReceiverEvent::FileFound { .. } => self.on_found(event),
            ReceiverEvent::FileRefused { toi, content_location, reason } => {
                self.on_file_refused(toi, content_location, reason.to_string());
            }
            ReceiverEvent::BlockCorrupt { block, times } => {
                self.on_block_of_mirrors(block, false);
                let (toi, block) = (block.toi, block.sbn.0);
                (self.emit)(ReceiveEvent::CorruptBlock { toi, block, times });
            }
            ReceiverEvent::SymbolsDropped { block, count } => {
                let (toi, block) = (block.toi, block.sbn.0);
                (self.emit)(ReceiveEvent::SymbolsDropped { toi, block, count });
            }
            ReceiverEvent::Silence { ever_since_start } => {
                // Without a group, mirrors say themselves why nothing comes.
                if self.listening.is_some() {
                    (self.emit)(ReceiveEvent::Silence { duration: SILENCE, ever_since_start });
                }
            }
            ReceiverEvent::TableWarning(warning) => {
                (self.emit)(ReceiveEvent::TableWarning(warning));
            }
            ReceiverEvent::SessionClosed { is_complete } => {
                if !is_complete {
                    self.outcome.over.get_or_insert(Over::Closed);
                }
                (self.emit)(ReceiveEvent::SessionClosed);
            }
            ReceiverEvent::AllAnnouncedReceived => {
                (self.emit)(ReceiveEvent::AllAnnouncedReceived);
            }
            ReceiverEvent::ReceptionComplete => (self.emit)(ReceiveEvent::ReceptionComplete),
            ReceiverEvent::ObjectDone { toi, verified } => {
                let report = self.object_report(toi, verified, elapsed);
                self.core.runner.shared.on_committed(toi);
                self.held.iter().for_each(|held| held.on_committed(toi));
                (self.emit)(ReceiveEvent::ObjectDone(report.clone()));
                if self.has_no_manifest {
                    // Nothing is done with it any more, and a session may have no end.
                    self.core.runner.objects.remove(&toi);
                }
                self.outcome.add_object(report, self.has_no_manifest);
            }
            ReceiverEvent::ObjectDropped { toi, reason } => self.on_object_dropped(toi, reason),
            ReceiverEvent::ObjectFailed { toi, failure } => self.on_object_failed(toi, &failure),
            ReceiverEvent::Complete => self.outcome.over = Some(Over::Complete),
            ReceiverEvent::GivenUp { .. } => self.outcome.over = Some(Over::GivenUp),
            ReceiverEvent::BlockVerified { block } => {
                self.held.iter().for_each(|held| held.on_verified(block));
                self.on_block_of_mirrors(block, true);
                let ReceiveRunner { delivery, objects, .. } = &mut self.core.runner;
                delivery.on_verified(block, objects);
            }
            ReceiverEvent::Level { channels, received_bytes_per_second, .. } => {
                (self.emit)(ReceiveEvent::Level { channels, received_bytes_per_second });
            }
            ReceiverEvent::BlockSolved { .. } => {}
        }
    }

    /// Content was accepted.
    fn begin_content(&mut self, hash: Hash, manifest: &Arc<Manifest>) {
        let version = manifest.version();
        self.outcome.manifest = Some(AcceptedManifest { hash, version });
        self.core.runner.delivery.begin_file(manifest);
        self.begin_mirrors(manifest);
        self.begin_sharing(hash, manifest);
        if let Some(held) = &self.held {
            held.begin(hash, manifest, self.directory.path().to_owned());
        }
    }

    /// Something of a session without a manifest was found.
    fn on_found(&mut self, event: ReceiverEvent) {
        match event {
            ReceiverEvent::CarouselFound { session } => {
                self.outcome.accepted = Some(Verified::None);
                (self.emit)(ReceiveEvent::CarouselFound { session });
            }
            ReceiverEvent::FluteFound { session, files } => {
                (self.emit)(ReceiveEvent::FluteFound { session, files });
            }
            ReceiverEvent::FileFound { toi, content_location, transfer_length } => {
                self.outcome.accepted = Some(Verified::None);
                let (object, mut name, bytes) = (toi, content_location, transfer_length);
                if self.lists
                    && let Ok(path) = parse_content_location(&name)
                {
                    // As it is selected, and on the disk.
                    name = String::from_utf8_lossy(path.as_bytes()).into_owned();
                }
                let found = ReceiveEvent::FileFound { toi: sent_toi(object), name, bytes };
                if self.lists {
                    (self.emit)(found);
                } else {
                    self.found.insert(object, found);
                }
            }
            _ => {}
        }
    }

    fn on_object_dropped(&mut self, object: Toi, reason: DropReason) {
        self.outcome.failures.remove(&Scope::Object(object));
        self.found.remove(&object);
        let names = self.names_of(object);
        (self.emit)(ReceiveEvent::ObjectDropped { toi: sent_toi(object), names, reason });
    }

    fn names_of(&self, object: Toi) -> Vec<String> {
        let object = self.core.runner.objects.get(&object);
        object.map_or_else(Vec::new, |object| object.names().to_vec())
    }

    fn on_object_failed(&mut self, toi: Toi, failure: &ObjectFailure) {
        let error = match failure {
            ObjectFailure::Corrupt => {
                self.outcome.is_corrupt = true;
                None
            }
            ObjectFailure::Job(_) | ObjectFailure::Mismatched(_) => self.outcome.failure(toi),
        };
        self.found.remove(&toi);
        let names = self.names_of(toi);
        (self.emit)(ReceiveEvent::ObjectFailed { toi: sent_toi(toi), names, error });
    }

    fn on_rejected(&mut self, session: SessionKey, reason: Rejection) {
        let elapsed = self.elapsed();
        // If only one manifest is accepted, no other one can replace it. The lowest rate is a claim
        // of the head, which any host can make if no key is expected.
        let hopeless = match reason {
            Rejection::BadManifest | Rejection::TooLarge => true,
            Rejection::TooFast => self.expects_signature,
            _ => false,
        };
        if hopeless && self.only_one_manifest {
            self.outcome.over = Some(Over::Hopeless);
        }
        if matches!(reason, Rejection::OldVersion { .. }) && self.follows {
            let datagrams = self.core.endpoint.stats().datagrams;
            self.old.get_or_insert(OldVersion { since: elapsed, datagrams });
        }
        self.outcome.rejections.push(RejectedSession { session, reason });
        (self.emit)(ReceiveEvent::Rejected { session, reason });
    }

    fn on_file_refused(&mut self, toi: Toi, name: String, what: String) {
        let names = vec![Printable(name.as_bytes()).to_string()];
        let error = Arc::new(TransferError::Unsupported { name, what }.into());
        self.outcome.add_failure(Scope::Object(toi), error, self.has_no_manifest);
        let error = self.outcome.failure(toi);
        (self.emit)(ReceiveEvent::ObjectFailed { toi: sent_toi(toi), names, error });
    }

    fn object_report(&self, toi: Toi, verified: Verified, elapsed: Duration) -> ObjectReport {
        let object = self.core.runner.objects.get(&toi);
        let progress = self.core.endpoint.object_progress(toi);
        let inefficiency = progress.map_or(1.0, |p| {
            if p.source_symbols == 0 { 1.0 } else { p.packets as f64 / p.source_symbols as f64 }
        });
        ObjectReport {
            toi: sent_toi(toi),
            names: self.names_of(toi),
            verified,
            bytes: object.map_or(0, |object| object.length()),
            reception_inefficiency: inefficiency,
            loss: self.progress().loss(),
            elapsed,
        }
    }
}
