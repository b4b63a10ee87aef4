//! What the protocol says: remembered for the summary, and told to the application.

use super::Driver;
use crate::error::Error;
use crate::receive::outcome::Over;
use crate::receive::{ObjectReport, ReceiveEvent, SILENCE};
use fontana_proto::{Event, Rejection, Verified};
use fontana_wire::{Printable, Toi};
use std::time::Duration;

impl Driver<'_, '_> {
    pub(super) fn on_event(&mut self, event: Event) {
        let elapsed = self.elapsed();
        match event {
            Event::Offered(offer) => (self.observe)(ReceiveEvent::Offered(&offer)),
            Event::Rejected { session, reason } => {
                // Where only this manifest would do, no other can come.
                let hopeless = matches!(
                    reason,
                    Rejection::BadManifest | Rejection::TooLarge | Rejection::TooFast
                );
                if hopeless && self.only_one_manifest {
                    self.outcome.over = Some(Over::Hopeless);
                }
                if reason == Rejection::OldVersion && self.follows {
                    self.old_version_heard.get_or_insert(elapsed);
                }
                self.outcome.rejections.push((session, reason));
                (self.observe)(ReceiveEvent::Rejected { session, reason });
            }
            Event::Superseded { .. } => {
                if self.follows {
                    self.outcome.over.get_or_insert(Over::Superseded);
                }
            }
            Event::Accepted { session, manifest, hash, verified } => {
                self.old_version_heard = None;
                self.outcome.manifest = Some((hash, manifest.version()));
                self.outcome.accepted = Some(verified);
                let manifest = &*manifest;
                self.delivery.begin_file(manifest);
                (self.observe)(ReceiveEvent::Accepted { session, manifest, hash, verified });
            }
            Event::StreamOffered { session, index } => {
                (self.observe)(ReceiveEvent::StreamOffered { session, index: &index });
            }
            Event::StreamAccepted { session, index, key, verified } => {
                self.begin_stream(&index, verified);
                let index = &*index;
                (self.observe)(ReceiveEvent::StreamAccepted { session, index, key, verified });
            }
            Event::FragmentDone { range, .. } => self.outcome.bytes += range.end - range.start,
            Event::StreamBroken { at, reason } => {
                self.outcome.broken = Some((at, reason));
                self.outcome.over = Some(Over::GivenUp);
            }
            Event::Resumed { symbols } => {
                let source_symbols = self.receiver.source_symbols();
                (self.observe)(ReceiveEvent::Resumed { symbols, source_symbols });
            }
            Event::CarouselFound { session } => {
                self.outcome.accepted = Some(Verified::None);
                (self.observe)(ReceiveEvent::CarouselFound { session });
            }
            Event::FileFound { toi, content_location, transfer_length } => {
                self.outcome.accepted = Some(Verified::None);
                let name = content_location.as_str();
                (self.observe)(ReceiveEvent::FileFound { toi, name, bytes: transfer_length });
            }
            Event::FileRefused { toi, content_location, reason } => {
                let names = [Printable(content_location.as_bytes()).to_string()];
                let error = Error::Unsupported { name: content_location, what: reason.to_string() };
                let error = Some(&*self.outcome.failures.entry(toi).or_insert(error));
                (self.observe)(ReceiveEvent::ObjectFailed { toi, names: &names, error });
            }
            Event::BlockPoisoned { block, times } => {
                (self.observe)(ReceiveEvent::Poisoned { toi: block.toi, times });
            }
            Event::Silence { ever_since_start } => {
                (self.observe)(ReceiveEvent::Silence { duration: SILENCE, ever_since_start });
            }
            Event::HeardEnough => (self.observe)(ReceiveEvent::HeardEnough),
            Event::ObjectDone { toi, verified } => {
                let report = self.object_report(toi, verified, elapsed);
                (self.observe)(ReceiveEvent::ObjectDone(&report));
                self.outcome.bytes += report.bytes;
                self.outcome.objects.push(report);
            }
            Event::ObjectFailed { toi, poisoned } => {
                self.outcome.poisoned |= poisoned;
                let failures = &self.outcome.failures;
                let error = failures.get(&toi).or_else(|| failures.get(&Toi::MANIFEST));
                let names = self.objects.get(&toi).map_or(&[][..], |object| object.names());
                (self.observe)(ReceiveEvent::ObjectFailed { toi, names, error });
            }
            Event::Complete => self.outcome.over = Some(Over::Complete),
            Event::GivenUp => self.outcome.over = Some(Over::GivenUp),
            Event::BlockVerified { block } => self.delivery.on_verified(block, &self.objects),
            Event::Level { channels, received_bytes_per_second, .. } => {
                (self.observe)(ReceiveEvent::Level { channels, received_bytes_per_second });
            }
            Event::BlockSolved { .. } | Event::Finished | Event::Withdrawn { .. } => {}
        }
    }

    fn object_report(&self, toi: Toi, verified: Verified, elapsed: Duration) -> ObjectReport {
        let object = self.objects.get(&toi);
        let progress = self.receiver.object_progress(toi);
        let inefficiency = progress.map_or(1.0, |p| {
            if p.source_symbols == 0 { 1.0 } else { p.packets as f64 / p.source_symbols as f64 }
        });
        ObjectReport {
            toi,
            names: object.map_or_else(Vec::new, |object| object.names().to_vec()),
            verified,
            bytes: object.map_or(0, |object| object.length()),
            reception_inefficiency: inefficiency,
            loss: self.progress().loss(),
            elapsed,
        }
    }
}
