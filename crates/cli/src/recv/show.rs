//! How the events of a receiver are shown: as lines for programs, and as sentences for people.

use super::{Watch, clock, explain, mirrors, too_long, unheard};
use crate::events::{self, Content, Named, ReceiveEvent as Line};
use crate::hook::Described;
use crate::interfaces::{self, Side};
use crate::progress::ReceiveBar;
use crate::send::listing;
use fontana::wire::{AnnouncedSchedule, Manifest, Printable, Toi};
use fontana::{DropReason, ReceiveEvent, Rejection, SessionKey, TableWarning};
use fontana_console::failure::Failure;
use fontana_console::units::{Bytes, Count};
use std::sync::Arc;

/// Largest number of offers that are shown: an attacker can forge any number of manifests.
const MAX_OFFERS: usize = 256;

/// Messages that are remembered, so that none is shown twice: a session may have no end.
const MAX_MESSAGES: usize = 4096;

impl Watch<'_> {
    pub(super) fn show(&mut self, event: &ReceiveEvent) {
        match event {
            ReceiveEvent::Offered(_)
            | ReceiveEvent::FluteFound { .. }
            | ReceiveEvent::Rejected { .. }
            | ReceiveEvent::Accepted { .. }
            | ReceiveEvent::StreamOffered { .. }
            | ReceiveEvent::StreamAccepted { .. } => self.show_session(event),
            ReceiveEvent::Silence { .. }
            | ReceiveEvent::Reporting { .. }
            | ReceiveEvent::Sharing { .. }
            | ReceiveEvent::SharingFailed { .. }
            | ReceiveEvent::SiteLacks { .. }
            | ReceiveEvent::Level { .. }
            | ReceiveEvent::ChannelRefused { .. } => self.show_network(event),
            ReceiveEvent::MirrorWrong { mirror, toi, block } => {
                mirrors::show_wrong(mirror, events::object(*toi), *block, self.console);
            }
            ReceiveEvent::MirrorFailed { mirror, failure, pause } => {
                mirrors::show_failed(mirror, failure, *pause, self.console);
            }
            ReceiveEvent::MirrorDropped { mirror, failure } => {
                mirrors::show_dropped(mirror, failure, self.console);
            }
            ReceiveEvent::FileNamed(file) => {
                if let Some(audit) = &mut self.audit {
                    audit.file(file);
                }
            }
            _ => self.show_content(event),
        }
    }

    /// Shows an event about a session on the group.
    fn show_session(&mut self, event: &ReceiveEvent) {
        let console = self.console;
        match event {
            ReceiveEvent::Offered(offer) => {
                self.offers_shown += 1;
                if self.offers_shown > MAX_OFFERS {
                    return;
                }
                console.event(&Line::Offered {
                    source: offer.session.source.to_string(),
                    tsi: offer.session.tsi.0,
                    schedule: AnnouncedSchedule::of(&offer.head.records)
                        .map(|schedule| schedule.to_string()),
                    content: Content::offered(offer),
                });
                if std::mem::take(&mut self.lists) {
                    console.result(format_args!("{}", Printable(offer.manifest.label())));
                    listing::show(&offer.manifest, console, Line::Entry);
                    self.stop.cancel();
                }
                if let Some(chooser) = &mut self.chooser {
                    chooser.offer(offer, console);
                }
            }
            ReceiveEvent::Rejected { session, reason } => {
                console.event(&Line::Rejected {
                    source: session.source.to_string(),
                    tsi: session.tsi.0,
                    reason: events::rejection(*reason).into(),
                    number: events::rejected_number(*reason),
                });
                if *reason == Rejection::OtherSession {
                    self.flute.name_other(*session, console);
                    if let Some(unheard) = &mut self.unheard {
                        unheard.note_other(*session);
                    }
                }
            }
            ReceiveEvent::FluteFound { session, files } => self.show_flute(*session, *files),
            ReceiveEvent::Accepted { session, manifest, hash, verified } => {
                console.event(&Line::Accepted {
                    source: session.source.to_string(),
                    tsi: session.tsi.0,
                    verified: events::verified(*verified).into(),
                    content: Content::new(manifest, hash.to_string()),
                });
                self.described = Described::new(*session, manifest);
                self.manifest = Some(Arc::clone(manifest));
                self.too_long.begin();
                if let Some(audit) = &mut self.audit {
                    audit.begin(*session, *hash, manifest.version());
                }
                if let Some(holding) = &self.holding {
                    holding.announce(*hash, console);
                }
                self.begin(manifest, session.source);
            }
            ReceiveEvent::StreamOffered { session, index } => {
                self.offers_shown += 1;
                if self.offers_shown > MAX_OFFERS {
                    return;
                }
                console.event(&Line::stream_offered(*session, index));
                if std::mem::take(&mut self.lists) {
                    // A stream has no list of names.
                    console.result(format_args!("{}  a stream", Printable(index.name.as_bytes())));
                    self.stop.cancel();
                }
                if let Some(chooser) = &mut self.chooser {
                    chooser.offer_stream(*session, index, console);
                }
            }
            ReceiveEvent::StreamAccepted { session, index, key, verified } => {
                console.event(&Line::stream_accepted(*session, index, key, *verified));
                let name = Printable(index.name.as_bytes());
                console.say(format_args!("receiving the stream {name} from {}", session.source));
                if self.is_piped {
                    let message = "a stream goes to a file, and standard output is a pipe";
                    console.warning(message, "to have it there: add --to -");
                }
                self.chooser = None;
                self.files = 1;
                self.bar = Some(ReceiveBar::of_stream(console));
            }
            _ => {}
        }
    }

    /// A session of plain FLUTE was found beside those of Fontana.
    fn show_flute(&mut self, session: SessionKey, files: u64) {
        let (source, tsi) = (session.source.to_string(), session.tsi.0);
        self.console.event(&Line::FluteFound { source, tsi, files });
        if !self.flute.find(session) {
            // The ticket names it.
            let message = format!("session {tsi} of {} is plain FLUTE", session.source);
            let hint = "receive it with --flute; its files are not authenticated";
            return self.console.warning(&message, hint);
        }
        self.offers_shown += 1;
        match &mut self.chooser {
            Some(chooser) => chooser.offer_flute(session, files, self.console),
            None => _ = self.flute.take(session),
        }
    }

    /// Shows an event about the channels and their packets.
    fn show_network(&mut self, event: &ReceiveEvent) {
        let console = self.console;
        match event {
            ReceiveEvent::Silence { duration, ever_since_start } => {
                let (seconds, ever_since_start) = (duration.as_secs_f64(), *ever_since_start);
                console.event(&Line::Silence { seconds, ever_since_start });
                console.note(format_args!("silent for {seconds} s; joined again"));
            }
            ReceiveEvent::Reporting { to } => {
                console.event(&Line::RollCall { collector: to.to_string() });
                console.note(format_args!("the sender asks for reports: they go to {to}"));
            }
            ReceiveEvent::Sharing { stays, .. } => {
                let seconds = fontana_console::json::seconds(*stays);
                console.event(&Line::Sharing { seconds });
                console.say(format_args!(
                    "everything is received; it stays until no other receiver has asked for {seconds} s"
                ));
            }
            ReceiveEvent::SiteLacks { blocks, symbols } => {
                console.event(&Line::SiteLacks { blocks: *blocks, symbols: *symbols });
                let (blocks, symbols) =
                    (Count((*blocks).into(), "block"), Count(*symbols, "symbol"));
                console.warning(
                    &format!(
                        "lacking: {symbols} of {blocks}, which no receiver of this network has; \
                         nothing comes of the session"
                    ),
                    "start the sender again: this receiver goes on with what it has",
                );
            }
            ReceiveEvent::SharingFailed { error } => {
                let failure = Failure::from(&**error);
                let reason = failure.message.clone();
                console.event(&Line::SharingFailed { reason });
                let message = format!("nothing is shared: {}", failure.message);
                console.warning(&message, &failure.hint);
            }
            ReceiveEvent::Level { channels, received_bytes_per_second } => {
                console.event(&Line::Level {
                    channels: *channels,
                    received_bits_per_second: received_bytes_per_second * 8,
                });
            }
            ReceiveEvent::ChannelRefused { channel, error } => {
                let failure = Failure::from(&**error);
                let message = format!("channel {channel} cannot be joined: {}", failure.message);
                console.warning(&message, "the session continues without it, at a lower rate");
                console.event(&Line::ChannelRefused { channel: *channel, reason: failure.message });
            }
            _ => {}
        }
    }

    fn show_corrupt(&mut self, object: u64, block: u32, times: u32) {
        let console = self.console;
        console.event(&Line::Corrupt { object, block, times });
        if !std::mem::replace(&mut self.is_corrupt, true) {
            console.note(format_args!(
                "block {block} of object {object} is corrupt: packets are forged or damaged; more \
                 symbols are received until the wrong ones are found",
            ));
        }
    }

    /// Shows how much of what is on the disk was read.
    fn show_read(&self, event: &ReceiveEvent) {
        let console = self.console;
        match *event {
            ReceiveEvent::Hashed { bytes, of } => {
                console.event(&Line::Hashed { bytes, of_bytes: of });
                let (bytes, of) = (Bytes(bytes), Bytes(of));
                console.note(format_args!("hashed {bytes} of {of} for the audit log"));
            }
            ReceiveEvent::Compared { bytes, of } => {
                console.event(&Line::Compared { bytes, of_bytes: of });
                let (bytes, of) = (Bytes(bytes), Bytes(of));
                console.note(format_args!("compared {bytes} of {of} that may be here already"));
            }
            _ => {}
        }
    }

    fn warn_of_system(&self, event: &ReceiveEvent) {
        let console = self.console;
        let (message, hint) = match event {
            ReceiveEvent::Interface(change) => {
                return interfaces::show(change, Side::Receiver, console);
            }
            ReceiveEvent::ClocksDiffer { difference } => clock::differ(*difference),
            ReceiveEvent::Ungranted(refused) => {
                return interfaces::show_ungranted(refused, console);
            }
            ReceiveEvent::LittleRoom(room) => explain::little_room(*room),
            ReceiveEvent::Tolerated { call, path, error } => explain::tolerated(*call, path, error),
            _ => return,
        };
        self.console.warning(&message, hint);
    }

    /// Shows an event about a file of a session without a manifest.
    fn show_file(&mut self, event: &ReceiveEvent) {
        let console = self.console;
        match event {
            ReceiveEvent::FileFound { name, bytes, .. } if self.lists => {
                let (kind, name) = ("file".into(), Printable(name).to_string());
                console.result(format_args!("  {name}  {}", Bytes(*bytes)));
                console.event(&Line::Entry(Named {
                    kind,
                    name,
                    bytes: Some(*bytes),
                    target: None,
                }));
            }
            ReceiveEvent::FileKept { toi, name, compared } => self.show_kept(*toi, name, *compared),
            ReceiveEvent::FileFound { toi, name, bytes } => {
                let name = Printable(name).to_string();
                console.note(format_args!("receiving {name}, {}", Bytes(*bytes)));
                console.event(&Line::FileFound {
                    object: events::object(*toi),
                    name,
                    bytes: *bytes,
                });
                self.files += 1;
                self.bar.get_or_insert_with(|| ReceiveBar::new(console));
            }
            ReceiveEvent::FileUpdated { toi, name } => self.show_update(*toi, name),
            ReceiveEvent::FileDeleted { name } => {
                let name = Printable(name).to_string();
                console.note(format_args!("{name} is deleted: the sender names it no more"));
                console.event(&Line::Deleted { name });
            }
            _ => {}
        }
    }

    fn show_update(&self, toi: Toi, name: &str) {
        let (object, name) = (events::object(toi), Printable(name).to_string());
        self.console.note(format_args!("{name} is replaced by a newer version"));
        self.console.event(&Line::Updated { object, name });
    }

    fn show_kept(&self, toi: Toi, name: &str, compared: bool) {
        let (object, name) = (events::object(toi), Printable(name).to_string());
        self.console.note(match compared {
            true => format!("{name} is here already"),
            false => format!("{name} exists, and is not compared: the sender gives no MD5"),
        });
        self.console.event(&Line::Kept { object, name, compared });
    }

    fn show_dropped(&self, toi: Toi, names: &[String], reason: &DropReason) {
        let message = explain::dropped(names, reason);
        self.console.note(&message);
        self.console.event(&Line::object_dropped(toi, names, message));
    }

    /// Shows an event about the content of the session that is received.
    fn show_content(&mut self, event: &ReceiveEvent) {
        let console = self.console;
        match event {
            ReceiveEvent::Selected(part) => {
                let (files, bytes, objects) = (part.files, part.bytes, part.objects);
                console.event(&Line::Selected { files, bytes, objects });
                console.note(format_args!(
                    "of these {}, {}, in {}",
                    Count(files, "file"),
                    Bytes(bytes),
                    Count(objects, "object"),
                ));
                self.files = files;
                self.described.select(files);
            }
            ReceiveEvent::Hashed { .. } | ReceiveEvent::Compared { .. } => self.show_read(event),
            ReceiveEvent::Resumed { symbols, source_symbols } => {
                let (symbols, source_symbols) = (*symbols, *source_symbols);
                self.is_here_already = symbols == source_symbols;
                self.is_partial = true;
                console.event(&Line::Resumed { symbols, source_symbols });
                console.note(format_args!(
                    "going on with {symbols} of {} that were here already",
                    Count(source_symbols, "symbol"),
                ));
            }
            ReceiveEvent::LittleRoom(_)
            | ReceiveEvent::Tolerated { .. }
            | ReceiveEvent::Interface(_)
            | ReceiveEvent::ClocksDiffer { .. }
            | ReceiveEvent::Ungranted(_) => self.warn_of_system(event),
            ReceiveEvent::CarouselFound { session } => {
                let (source, tsi) = (session.source.to_string(), session.tsi.0);
                console.say(format_args!("receiving the objects that {source} sends"));
                console.event(&Line::CarouselFound { source, tsi });
                self.bar.get_or_insert_with(|| ReceiveBar::new(console));
            }
            ReceiveEvent::FileFound { .. }
            | ReceiveEvent::FileKept { .. }
            | ReceiveEvent::FileUpdated { .. }
            | ReceiveEvent::FileDeleted { .. } => self.show_file(event),
            ReceiveEvent::TableWarning(warning) => {
                if *warning == TableWarning::OfFontana {
                    self.flute.on_head();
                }
                let (message, hint) = explain::table(warning);
                console.warning(&message, hint);
            }
            ReceiveEvent::AllAnnouncedReceived if self.lists => {}
            ReceiveEvent::AllAnnouncedReceived => {
                console.event(&Line::AllAnnouncedReceived {});
                console.note(
                    "everything that was announced is here; more may be announced, as no table \
                     says that it is complete (--silence)",
                );
            }
            ReceiveEvent::SessionClosed => {
                console.event(&Line::SessionClosed {});
                console.note("the sender has closed the session");
            }
            ReceiveEvent::CorruptBlock { toi, block, times } => {
                self.show_corrupt(events::object(*toi), *block, *times);
            }
            ReceiveEvent::SymbolsDropped { toi, block, count } => {
                let (object, block, symbols) = (events::object(*toi), *block, *count);
                console.event(&Line::WrongSymbols { object, block, symbols });
            }
            ReceiveEvent::ReceptionComplete => {
                console.event(&Line::ReceptionComplete {});
            }
            ReceiveEvent::ObjectDone(report) => console.event(&Line::object_done(report)),
            ReceiveEvent::ObjectDropped { toi, names, reason } => {
                self.show_dropped(*toi, names, reason);
            }
            ReceiveEvent::ObjectFailed { toi, names, error } => {
                let failure = explain::object(names, error.as_deref());
                console.event(&Line::object_failed(*toi, names, &failure));
                self.show_failure(&failure);
            }
            ReceiveEvent::Progress(progress) => {
                if self.gate.passes(progress.elapsed) {
                    console.event(&Line::progress(progress));
                }
                if let Some(unheard) =
                    self.unheard.take_if(|_| unheard::is_due(progress, self.offers_shown))
                {
                    unheard.warn(progress, console);
                }
                let symbol_size = self.manifest.as_deref().and_then(too_long::symbol_size);
                if let Some((message, hint)) = self.too_long.poll(progress, symbol_size) {
                    console.warning(&message, &hint);
                }
                if let Some(bar) = &mut self.bar {
                    bar.show(progress);
                    if let Some(line) = bar.minute(progress) {
                        console.progress(line);
                    }
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, manifest: &Manifest, source: std::net::IpAddr) {
        // What arrived while a person thought is not what the reception needed.
        self.is_partial = self.chooser.take().is_some();
        self.files = manifest.files().count() as u64;
        self.is_here_already = false;
        let label = Printable(manifest.label());
        let (files, bytes) = (Count(self.files, "file"), Bytes(manifest.content_length()));
        self.console.say(format_args!("receiving {label} ({files}, {bytes}) from {source}"));
        self.bar = Some(ReceiveBar::new(self.console));
    }

    /// Shows a failure once.
    pub(super) fn show_failure(&mut self, failure: &Failure) {
        if self.messages_shown.len() >= MAX_MESSAGES {
            self.messages_shown.clear();
        }
        if self.messages_shown.insert(failure.message.clone()) {
            self.console.failure(failure);
        }
    }
}
