//! Plain FLUTE sessions (RFC 6726, and RFC 3926 before it): the file delivery table replaces the
//! manifest.
//!
//! A table arrives as an object of its own, in packets with EXT_FDT, EXT_FTI and, if it is
//! compressed, EXT_CENC. A file that it names is opened once its transmission information is known,
//! from the table or from EXT_FTI in a packet of the file, whichever comes first. Nothing is
//! authenticated. A file that cannot be received is refused alone, and the others arrive.
//!
//! The bytes of a file are compared with the table when it is complete. If they differ, a packet
//! was wrong, or several senders were mixed: the file is [collected again](Collection).
//!
//! Tables complement each other. If one contradicts what an earlier one says of a file, or its
//! number does not follow, the sender was restarted, and gives the same numbers to other files: the
//! [new definition](Listed::on_definition) holds. A file that is complete is not affected. One that
//! is incomplete is replaced by the next packet that fits the new definition, so that a table alone
//! drops nothing. Incomplete files without MD5 are collected again, since a mixture of two files
//! would not be noticed.
//!
//! A file whose name an earlier one has is a newer version of it. Both are received until the newer
//! one is complete ([`Names`]). Files that are complete do not count for the limits, and are
//! forgotten when tables do not name them any more.
//!
//! Reception is complete with every file of the tables that were read, if one of them says
//! `Complete`. Otherwise later tables may add files, and the driver decides when to
//! [conclude](crate::Receiver::conclude).

mod definition;
mod expiry;
mod listed;
mod names;

use super::collection::{Collection, EVERY};
use super::demand::Demand;
use super::discovery::{Content, Context, Discovery, Finding, NewObject};
use crate::collection::sent_toi;
use crate::endpoint::SessionKey;
use crate::event::{DropReason, FileRefusal, ReceiverEvent, Rejection, TableStatus, TableWarning};
use crate::job::Opening;
use crate::receiver::config::ReceiverLimits;
use crate::receiver::sessions::{
    Announced, ContentId, InBand, SessionState, Table, TableCollector,
};
use crate::time::Instant;
use definition::Definition;
use expiry::Expiries;
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::{CodeError, EncodingId, FecScheme, ObjectLayout, Oti};
use fontana_wire::{
    ContentEncoding, Fdt, FdtFile, FdtMd5, Hash, InvalidEntry, Packet, Payload, Toi,
    UnverifiedHead, fti,
};
use listed::{Fate, FileState, Listed};
use names::{Admission, Names};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Time between two warnings that the sender was restarted.
const WARNS_EVERY: Duration = Duration::from_secs(60);

/// The files of the accepted session.
#[derive(Debug, Default)]
pub(in crate::receiver) struct FluteCatalog {
    /// The files that the tables name, by the TOI of their packets.
    files: BTreeMap<Toi, Listed>,
    /// Those of which nothing is received yet, although they are wanted.
    awaited: BTreeSet<Toi>,
    /// Files whose definition the next packet that fits another one replaces.
    unconfirmed: usize,
    demand: Demand,
    names: Names,
    /// Files and names at which those are forgotten that are not named any more.
    prunes_at: usize,
    /// Tables that were read so far.
    tables: u64,
    /// Definitions so far.
    versions: u64,
    /// The kinds of defects that were reported.
    warned: Warned,
    /// No later table adds files: a table says so, or the driver has concluded the session.
    is_complete: bool,
    /// Only the driver concludes the session.
    is_watched: bool,
    /// Present if the driver deletes files that are not named any more.
    expiries: Option<Expiries>,
    /// Runs of the sender before the present one.
    run: u32,
    /// When the sender was restarted last.
    restarted_at: Option<Instant>,
    /// No packet has confirmed the last restart. Then the files that the present run does not name
    /// are dropped.
    awaits_confirmation: bool,
}

/// Files and names from which on those are forgotten that no table has named for a while. The next
/// time is when they are twice as many, so that a table costs no more than its own entries.
const PRUNED_FROM: usize = 4096;
/// Tables after which a file is forgotten that they do not name: as many as are remembered, so that
/// a table that is read again names nothing new.
const NAMED_FOR: u64 = TableCollector::MAX_READ as u64;

/// Which [`TableWarning`]s were reported.
#[derive(Debug, Default)]
struct Warned {
    expired: bool,
    md5: bool,
    of_fontana: bool,
    /// A few.
    entries: Vec<InvalidEntry>,
    restarted_at: Option<Instant>,
}

/// An object without a byte.
const EMPTY: Oti = Oti {
    transfer_length: 0,
    symbol_size: 1,
    scheme: FecScheme::NoCode(NoCode { max_source_block_length: 1 }),
};

impl FluteCatalog {
    /// A packet of a file delivery table.
    pub(super) fn on_control(
        &mut self,
        cx: &Context<'_>,
        session: &mut SessionState,
        packet: &Packet<'_>,
        payload: &Payload<'_>,
    ) -> Discovery {
        let Announced::Tables(tables) = &mut session.announced else { return Discovery::Nothing };
        if packet.header.toi != Some(Toi::FDT) {
            return self.on_head(packet, payload);
        }
        match tables.on_symbol(cx.now, packet, payload, &cx.config.limits.fdt) {
            None if session.content.is_some() && session.content.as_ref() == cx.accepted => self
                .find_expired(cx, tables)
                .map_or(Discovery::Nothing, |it| Discovery::Objects(vec![it])),
            None => Discovery::Nothing,
            Some(Ok(table)) => self.on_table(cx, session, table),
            Some(Err(error)) => Discovery::Unreadable(error),
        }
    }

    /// A packet with a number that Fontana has for its own objects.
    fn on_head(&mut self, packet: &Packet<'_>, payload: &Payload<'_>) -> Discovery {
        let is_head = packet.header.toi == Some(Toi::HEAD)
            && UnverifiedHead::claimed_version(payload.symbol).is_some();
        if !is_head || std::mem::replace(&mut self.warned.of_fontana, true) {
            return Discovery::Nothing;
        }
        Discovery::Foreign(ReceiverEvent::TableWarning(TableWarning::OfFontana))
    }

    /// Finds files that are not named any more. Called when a part of a table was received.
    fn find_expired(&mut self, cx: &Context<'_>, tables: &TableCollector) -> Option<Finding> {
        let (now, unix_seconds) = (cx.now, cx.unix_seconds());
        let expiries = self.expiries.as_mut()?;
        if !expiries.is_due(now, unix_seconds)
            || !tables.hears_valid(now, unix_seconds, expiry::HEARD_WITHIN)
        {
            return None;
        }
        let is_opened =
            |listed: &Listed| !matches!(listed.state, FileState::Waiting | FileState::Refused);
        let names_all = self.files.values().all(is_opened);
        let expired = expiries.take(now, unix_seconds, names_all)?;
        // A table that names one of them again defines it again.
        self.files.retain(|_, listed| {
            let is_done = matches!(listed.state, FileState::Done(_)) && listed.pending.is_none();
            !(is_done && Expiries::is_of(&expired, &listed.definition.file.content_location))
        });
        Some(Finding::Expire(expired))
    }

    fn on_table(
        &mut self,
        cx: &Context<'_>,
        session: &mut SessionState,
        table: Table,
    ) -> Discovery {
        let id = ContentId::Session(session.key);
        let Announced::Tables(tables) = &mut session.announced else { return Discovery::Nothing };
        match cx.accepted {
            // A session without files is not accepted.
            None if table.fdt.files.is_empty() && table.invalid.is_empty() => {
                tables.note(TableStatus::WithoutFiles);
                return Discovery::Nothing;
            }
            Some(accepted) if *accepted != id => {
                return Discovery::Refused(Rejection::OtherSession);
            }
            None | Some(_) => session.content = Some(id),
        }
        let findings = self.take_table(cx, session.key, tables, table);
        match cx.accepted {
            None => {
                Discovery::Content(Box::new(Content { id, version: None, event: None, findings }))
            }
            Some(_) => Discovery::Objects(findings),
        }
    }

    /// Takes a table of the accepted session.
    fn take_table(
        &mut self,
        cx: &Context<'_>,
        key: SessionKey,
        tables: &mut TableCollector,
        table: Table,
    ) -> Vec<Finding> {
        let Table { instance, fdt, invalid, shows_restart } = table;
        let expires = fdt.expires.to_unix_seconds(cx.unix_seconds());
        tables.set_expiry(instance, expires);
        self.tables = self.tables.saturating_add(1);
        self.prune(cx.now);
        if let Some(expiries) = &mut self.expiries {
            expiries.on_table(expires);
            fdt.files.iter().for_each(|file| expiries.name(&file.content_location, expires));
        }
        let mut findings = Vec::new();
        findings.extend(self.warn_of_expiry(cx, &fdt));
        findings.extend(invalid.into_iter().filter_map(|entry| self.warn_of_entry(entry)));
        let (mut changed, mut is_ignored, mut contradicts) = (Vec::new(), false, false);
        let (mut known, mut named) = (Vec::new(), Vec::with_capacity(fdt.files.len()));
        for file in fdt.files {
            let toi = file.toi;
            named.push(toi);
            findings.extend(self.warn_of_md5(&file));
            // Its target has no use for the type, and there may be many files.
            let file = FdtFile { content_type: None, ..file };
            let mut definition = Definition { file: Arc::new(file), fti: None, instance, expires };
            let version = self.next_version();
            let Some(listed) = self.files.get_mut(&toi) else {
                definition.add(tables.take_in_band(toi));
                let listed = Listed::new(definition, Collection::first(cx.now), version);
                self.list(cx, key, listed, &mut findings);
                continue;
            };
            if let FileState::Obsolete = listed.state {
                definition.add(tables.take_in_band(toi));
                listed.replace(cx.now, definition, version);
                changed.push(toi);
                continue;
            }
            let has_expired = listed.definition.expires < cx.unix_seconds();
            let before = listed.definition.instance;
            let heard_at = tables.heard_at(before);
            if shows_restart {
                known.push(definition.clone());
            }
            match listed.on_definition(cx.now, definition, heard_at) {
                Fate::Known if matches!(listed.state, FileState::Waiting) => changed.push(toi),
                Fate::Known => {}
                Fate::Ignored => is_ignored = true,
                Fate::New => {
                    // If it is still sent, it holds.
                    tables.read_again(before);
                    self.is_complete = false;
                    contradicts |= !has_expired;
                    changed.push(toi);
                }
            }
        }
        if is_ignored {
            // It may hold later.
            tables.forget(instance);
        }
        if (contradicts || (shows_restart && !is_ignored)) && self.restarts(cx.now) {
            findings.extend(self.on_restart(cx, tables, instance));
            known.into_iter().for_each(|definition| self.define_again(cx, definition));
        }
        for toi in named {
            if let Some(listed) = self.files.get_mut(&toi) {
                (listed.run, listed.named_in) = (self.run, self.tables);
            }
        }
        self.is_complete |= fdt.complete && !is_ignored && !self.is_watched;
        for toi in changed {
            self.settle(cx, key, toi, &mut findings);
        }
        if !self.awaited.is_empty() {
            tables.note(TableStatus::WithoutGeometryOfFiles);
        }
        self.count_unconfirmed();
        findings.extend(self.find_expired(cx, tables));
        findings
    }

    /// A session is not complete while what it sends may be of other files.
    fn count_unconfirmed(&mut self) {
        let is_pending = |listed: &&Listed| listed.pending.is_some();
        self.unconfirmed = self.files.values().filter(is_pending).count();
    }

    /// Goes on with a file whose definition has changed, if no packet has to confirm it.
    fn settle(&mut self, cx: &Context<'_>, key: SessionKey, toi: Toi, findings: &mut Vec<Finding>) {
        let Some(listed) = self.files.get_mut(&toi) else { return };
        let is_empty = listed.pending.as_ref().is_some_and(|d| d.file.transfer_length == Some(0));
        if listed.pending.is_some() && cx.transfer.is_incomplete(listed.object()) && !is_empty {
            return;
        }
        match listed.pending.take() {
            Some(definition) => self.replace(cx, key, toi, definition, findings),
            None => {
                // It waits for its transmission information, or was obsolete.
                if let Some(listed) = self.files.remove(&toi) {
                    self.awaited.remove(&toi);
                    self.list(cx, key, listed, findings);
                }
            }
        }
    }

    /// Replaces the definition of a file.
    fn replace(
        &mut self,
        cx: &Context<'_>,
        key: SessionKey,
        toi: Toi,
        definition: Definition,
        findings: &mut Vec<Finding>,
    ) {
        let Some(mut listed) = self.files.remove(&toi) else { return };
        self.awaited.remove(&toi);
        let reason = match listed.definition.contradicts(&definition) {
            true => DropReason::Redefined,
            false => DropReason::Restarted,
        };
        self.drop_object(cx, &listed, reason, findings);
        listed.replace(cx.now, definition, self.next_version());
        listed.run = self.run;
        self.list(cx, key, listed, findings);
    }

    fn next_version(&mut self) -> u64 {
        self.versions = self.versions.saturating_add(1);
        self.versions
    }

    /// A file is not received any more.
    fn leave(&mut self, listed: &Listed) {
        if let FileState::Opened(layout) = listed.state {
            self.demand.leave(&layout);
            self.names.leave(&listed.definition.file.content_location, listed.version);
        }
    }

    /// Forgets complete files that tables do not name any more.
    fn prune(&mut self, now: Instant) {
        let size = |own: &Self| own.files.len().saturating_add(own.names.len());
        if size(self) < self.prunes_at.max(PRUNED_FROM) {
            return;
        }
        self.names.prune(now);
        let (tables, awaited) = (self.tables, &self.awaited);
        self.files.retain(|toi, listed| {
            let is_settled = match listed.state {
                FileState::Done(_) | FileState::Refused => listed.pending.is_none(),
                FileState::Obsolete => true,
                FileState::Opened(_) | FileState::Waiting => false,
            };
            let is_named = tables.saturating_sub(listed.named_in) <= NAMED_FOR;
            is_named || !is_settled || awaited.contains(toi)
        });
        self.prunes_at = size(self).saturating_mul(2);
    }

    /// An object is complete. Returns the objects of older versions, which are dropped.
    pub(super) fn on_committed(&mut self, object: Toi) -> Vec<Toi> {
        let toi = sent_toi(object);
        let Some(listed) = self.files.get_mut(&toi).filter(|listed| listed.object() == object)
        else {
            return Vec::new();
        };
        let FileState::Opened(layout) = listed.state else { return Vec::new() };
        listed.state = FileState::Done(layout);
        self.demand.leave(&layout);
        let location = &listed.definition.file.content_location;
        if let Some(expiries) = &mut self.expiries {
            expiries.keep(location, listed.definition.expires);
        }
        let older = self.names.complete(location, listed.version);
        let dropped = older.into_iter().filter_map(|toi| self.supersede(toi)).collect();
        if self.unconfirmed > 0 {
            self.count_unconfirmed();
        }
        dropped
    }

    /// Newer versions take the place of a file. Returns its object.
    fn supersede(&mut self, toi: Toi) -> Option<Toi> {
        let listed = self.files.get_mut(&toi)?;
        let FileState::Opened(layout) = listed.state else { return None };
        (listed.state, listed.pending) = (FileState::Done(layout), None);
        self.demand.leave(&layout);
        self.awaited.remove(&toi);
        Some(listed.object())
    }

    /// Drops the object of a file, unless it is complete.
    fn drop_object(
        &mut self,
        cx: &Context<'_>,
        listed: &Listed,
        reason: DropReason,
        findings: &mut Vec<Finding>,
    ) {
        self.leave(listed);
        let object = listed.object();
        let is_refused = matches!(listed.state, FileState::Refused);
        if is_refused || cx.transfer.is_incomplete(object) || cx.transfer.has_given_up(object) {
            findings.push(Finding::Drop { object, reason });
        }
    }

    /// Whether a sign that the sender was restarted counts: it was not lately.
    fn restarts(&self, now: Instant) -> bool {
        self.restarted_at.is_none_or(|at| now.saturating_since(at) >= EVERY)
    }

    /// Takes the definition of a run that begins, which does not contradict that of the last run:
    /// what it does not say does not hold any more.
    fn define_again(&mut self, cx: &Context<'_>, definition: Definition) {
        let Some(listed) = self.files.get_mut(&definition.file.toi) else { return };
        if listed.definition.contradicts(&definition) || definition.has_md5() {
            return;
        }
        if cx.transfer.is_incomplete(listed.object()) {
            listed.pending = Some(definition);
        } else if self.awaited.contains(&definition.file.toi) {
            listed.definition = definition;
        }
    }

    /// The sender was restarted, as a table shows. Returns a warning, unless there was one lately.
    fn on_restart(
        &mut self,
        cx: &Context<'_>,
        tables: &mut TableCollector,
        instance: u32,
    ) -> Option<Finding> {
        let now = cx.now;
        self.restarted_at = Some(now);
        self.is_complete = false;
        self.awaits_confirmation = true;
        self.run = self.run.wrapping_add(1);
        tables.begin_again(instance);
        for listed in self.files.values_mut() {
            // Symbols of two files would be mixed, and nothing would show it.
            if !listed.is_checked
                && listed.pending.is_none()
                && !listed.collection.is_due()
                && cx.transfer.is_incomplete(listed.object())
            {
                listed.pending = Some(listed.definition.clone());
            }
        }
        let warned_at = self.warned.restarted_at;
        let warns = warned_at.is_none_or(|at| now.saturating_since(at) >= WARNS_EVERY);
        warns.then(|| {
            self.warned.restarted_at = Some(now);
            Finding::Warn(TableWarning::Restarted)
        })
    }

    /// A packet of the present run of the sender has arrived: what the run does not name is
    /// dropped, unless it is complete.
    fn confirm(&mut self, cx: &Context<'_>, findings: &mut Vec<Finding>) {
        if !std::mem::replace(&mut self.awaits_confirmation, false) {
            return;
        }
        let is_unlisted = |(toi, listed): (&Toi, &Listed)| {
            let is_wanted = self.awaited.contains(toi)
                || cx.transfer.is_incomplete(listed.object())
                || cx.transfer.has_given_up(listed.object());
            (listed.run != self.run && is_wanted).then_some(*toi)
        };
        for toi in self.files.iter().filter_map(is_unlisted).collect::<Vec<_>>() {
            if let Some(mut listed) = self.files.remove(&toi) {
                self.drop_object(cx, &listed, DropReason::Unlisted, findings);
                self.obsolete(cx.now, toi, &mut listed);
                self.awaited.remove(&toi);
                self.files.insert(toi, listed);
            }
        }
    }

    /// Takes the definition of a file for one that does not hold any more.
    fn obsolete(&mut self, now: Instant, toi: Toi, listed: &mut Listed) {
        (listed.state, listed.pending) = (FileState::Obsolete, None);
        listed.collection.renew(now);
        self.awaited.insert(toi);
    }

    fn warn_of_expiry(&mut self, cx: &Context<'_>, table: &Fdt) -> Option<Finding> {
        let now = cx.unix_seconds();
        let unix_seconds = table.expires.to_unix_seconds(now);
        let warns = unix_seconds < now && !std::mem::replace(&mut self.warned.expired, true);
        warns.then_some(Finding::Warn(TableWarning::Expired { unix_seconds }))
    }

    fn warn_of_entry(&mut self, entry: InvalidEntry) -> Option<Finding> {
        let is_new =
            self.warned.entries.len() < InvalidEntry::MAX && !self.warned.entries.contains(&entry);
        is_new.then(|| {
            self.warned.entries.push(entry.clone());
            Finding::Warn(TableWarning::InvalidEntry(entry))
        })
    }

    fn warn_of_md5(&mut self, file: &FdtFile) -> Option<Finding> {
        let is_invalid = matches!(file.content_md5, Some(FdtMd5::Invalid(_)));
        let warns = is_invalid && !std::mem::replace(&mut self.warned.md5, true);
        let content_location = file.content_location.clone();
        warns.then_some(Finding::Warn(TableWarning::InvalidMd5 { content_location }))
    }

    /// A packet of a file: it may have EXT_FTI, confirm another definition, or begin a collection
    /// that is due.
    pub(super) fn on_object(
        &mut self,
        cx: &Context<'_>,
        session: &mut SessionState,
        object: Toi,
        packet: &Packet<'_>,
        payload: &Payload<'_>,
    ) -> Discovery {
        let Announced::Tables(tables) = &mut session.announced else { return Discovery::Nothing };
        let toi = sent_toi(object);
        let codepoint = packet.header.codepoint;
        let InBand { fti, encoding } = in_band(packet);
        let is_accepted = session.content.is_some() && session.content.as_ref() == cx.accepted;
        let Some(listed) = self.files.get_mut(&toi).filter(|_| is_accepted) else {
            let fti = fti.filter(|&fti| is_plausible(fti, &cx.config.limits));
            tables.remember(toi, InBand { fti, encoding });
            return Discovery::Nothing;
        };
        let mut findings = Vec::new();
        if let Some(encoding) = encoding
            && listed.definition.file.content_encoding.is_none()
        {
            self.on_encoding(cx, session.key, toi, encoding, &mut findings);
        }
        let Some(listed) = self.files.get_mut(&toi) else { return Discovery::Objects(findings) };
        match (listed.state, fti) {
            // One packet may be wrong.
            (FileState::Waiting, Some(fti))
                if !is_plausible(fti, &cx.config.limits)
                    && listed.other_fti.replace(fti) != Some(fti) => {}
            (FileState::Waiting, Some(fti)) => {
                listed.definition.fti = Some(fti);
                self.settle(cx, session.key, toi, &mut findings);
            }
            (FileState::Obsolete, Some(_)) => tables.remember(toi, InBand { fti, encoding }),
            (FileState::Waiting | FileState::Obsolete, _) => {}
            (FileState::Opened(_) | FileState::Done(_) | FileState::Refused, Some(fti))
                if !listed.is_empty() && listed.on_fti(cx.now, fti) =>
            {
                self.on_other_fti(cx, tables, toi, fti, &mut findings);
            }
            (FileState::Opened(_) | FileState::Done(_) | FileState::Refused, _) => {
                self.on_packet(cx, session.key, toi, (codepoint, payload), &mut findings);
            }
        }
        if findings.is_empty() {
            return Discovery::Nothing;
        }
        if self.unconfirmed > 0 {
            self.count_unconfirmed();
        }
        Discovery::Objects(findings)
    }

    /// Packets of a file say that it is compressed, and the table does not (RFC 6726, section
    /// 3.4.3, has EXT_CENC for tables only; some senders put it into all packets).
    fn on_encoding(
        &mut self,
        cx: &Context<'_>,
        key: SessionKey,
        toi: Toi,
        encoding: ContentEncoding,
        findings: &mut Vec<Finding>,
    ) {
        let Some(mut listed) = self.files.remove(&toi) else { return };
        let mut definition = listed.definition.clone();
        definition.add(InBand { fti: None, encoding: Some(encoding) });
        let object = listed.object();
        if cx.transfer.is_incomplete(object) || cx.transfer.has_given_up(object) {
            self.drop_object(cx, &listed, DropReason::Compressed, findings);
            listed.replace(cx.now, definition, self.next_version());
            self.list(cx, key, listed, findings);
        } else {
            listed.definition = definition;
            self.files.insert(toi, listed);
        }
    }

    /// Packets of a file have another EXT_FTI than before. Which file they are of says a table.
    fn on_other_fti(
        &mut self,
        cx: &Context<'_>,
        tables: &mut TableCollector,
        toi: Toi,
        fti: Oti,
        findings: &mut Vec<Finding>,
    ) {
        let Some(mut listed) = self.files.remove(&toi) else { return };
        tables.read_all_again();
        tables.remember(toi, InBand { fti: Some(fti), encoding: None });
        self.drop_object(cx, &listed, DropReason::Redefined, findings);
        self.obsolete(cx.now, toi, &mut listed);
        self.files.insert(toi, listed);
    }

    /// A packet of a file that is or was received.
    fn on_packet(
        &mut self,
        cx: &Context<'_>,
        key: SessionKey,
        toi: Toi,
        (codepoint, payload): (u8, &Payload<'_>),
        findings: &mut Vec<Finding>,
    ) {
        let Some(listed) = self.files.get_mut(&toi) else { return };
        if let Some(pending) = &listed.pending {
            let oti = oti_of(&pending.file, pending.fti).ok().flatten();
            let layout = oti.and_then(|oti| oti.layout().ok());
            // Without a geometry, nothing can be compared.
            if layout.is_none_or(|layout| Listed::fits(&layout, codepoint, payload))
                && let Some(definition) = listed.pending.take()
            {
                self.confirm(cx, findings);
                self.replace(cx, key, toi, definition, findings);
            }
            return;
        }
        let Some(layout) = listed.layout() else { return };
        if !Listed::fits(&layout, codepoint, payload) {
            return;
        }
        if listed.collection.begins(cx.now) {
            listed.collection.begin(cx.now);
            self.awaited.remove(&toi);
            findings.push(listed.open(key, layout));
        } else if self.awaits_confirmation && listed.run == self.run {
            self.confirm(cx, findings);
        }
    }

    /// Opens a file, or refuses it, or waits until its transmission information is known.
    fn list(
        &mut self,
        cx: &Context<'_>,
        session: SessionKey,
        mut listed: Listed,
        findings: &mut Vec<Finding>,
    ) {
        let (toi, limits) = (listed.definition.file.toi, &cx.config.limits);
        let content_location = listed.definition.file.content_location.clone();
        let reason = match self.admit(&listed.definition, limits) {
            Ok(Some(layout)) => {
                let admission = self.names.admit(cx.now, &content_location, toi, listed.version);
                listed.state = FileState::Opened(layout);
                listed.is_checked = listed.definition.has_md5();
                match admission {
                    Admission::TooMany => {
                        self.demand.leave(&layout);
                        FileRefusal::TooManyVersions
                    }
                    Admission::StillTooMany => {
                        self.demand.leave(&layout);
                        listed.state = FileState::Done(layout);
                        self.files.insert(toi, listed);
                        return;
                    }
                    Admission::Open | Admission::InPlaceOf(_) => {
                        if let Admission::InPlaceOf(oldest) = admission
                            && let Some(object) = self.supersede(oldest)
                        {
                            findings.push(Finding::Drop { object, reason: DropReason::Superseded });
                        }
                        findings.push(listed.open(session, layout));
                        self.files.insert(toi, listed);
                        return;
                    }
                }
            }
            Ok(None) if self.awaited.len() < limits.max_files => {
                listed.state = FileState::Waiting;
                self.files.insert(toi, listed);
                self.awaited.insert(toi);
                return;
            }
            Ok(None) => FileRefusal::Limit("files"),
            Err(reason) => reason,
        };
        // As many are remembered as may be received.
        if cx.transfer.may_refuse(limits.max_files) {
            let toi_of_object = listed.object();
            listed.state = FileState::Refused;
            self.files.insert(toi, listed);
            findings.push(Finding::Refuse { toi: toi_of_object, content_location, reason });
        }
    }

    /// The bytes of an object are not what the table says. Whether it is collected again.
    pub(super) fn on_mismatch(&mut self, object: Toi, digest: Hash) -> bool {
        let toi = sent_toi(object);
        let current = |listed: &&mut Listed| {
            listed.object() == object && matches!(listed.state, FileState::Opened(_))
        };
        let Some(listed) = self.files.get_mut(&toi).filter(current) else { return false };
        // No packet belongs to an empty file.
        let is_again = !listed.is_empty() && listed.collection.on_wrong(digest);
        if is_again {
            self.awaited.insert(toi);
        }
        is_again
    }

    /// The object that is collected from packets of this TOI.
    pub(super) fn current(&self, toi: Toi) -> Toi {
        self.files.get(&toi).map_or(toi, Listed::object)
    }

    /// Whether symbols of an object that is not open are of no use: it is complete, or its
    /// collection is not due yet.
    pub(super) fn is_useless(&self, object: Toi) -> bool {
        self.files.get(&sent_toi(object)).is_some_and(|listed| {
            matches!(listed.state, FileState::Done(_)) || listed.collection.is_due()
        })
    }

    /// The geometry of a file, `None` if it is not known yet.
    fn admit(
        &mut self,
        definition: &Definition,
        limits: &ReceiverLimits,
    ) -> Result<Option<ObjectLayout>, FileRefusal> {
        if matches!(definition.file.toi, Toi::HEAD | Toi::MANIFEST) {
            return Err(FileRefusal::ReservedToi);
        }
        let oti = oti_of(&definition.file, definition.fti)?;
        oti.map(|oti| self.demand.admit(oti, limits)).transpose()
    }

    /// Whether every file that the tables name was opened or refused, and no later table adds any.
    pub(super) fn is_final(&self) -> bool {
        self.is_complete && self.awaited.is_empty() && self.unconfirmed == 0
    }

    /// Whether every file that the tables name was opened or refused, and a later table may add
    /// others.
    pub(super) fn is_open_ended(&self) -> bool {
        !self.is_complete && self.awaited.is_empty() && self.unconfirmed == 0
    }

    /// Waits for no further table.
    pub(super) fn conclude(&mut self) {
        self.is_complete = true;
    }

    /// Waits for further tables until it is concluded, whatever the sender says.
    pub(super) fn watch(&mut self) {
        self.is_watched = true;
    }

    /// Reports files that tables do not name any more.
    pub(super) fn delete_expired(&mut self) {
        self.expiries = Some(Expiries::default());
    }

    /// Whether only the driver concludes the session.
    pub(super) fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// The user does not want an object, or has its file.
    pub(super) fn deselect(&mut self, object: Toi) {
        let toi = sent_toi(object);
        let Some(listed) = self.files.get_mut(&toi).filter(|listed| listed.object() == object)
        else {
            return;
        };
        if let FileState::Opened(layout) = listed.state {
            listed.state = FileState::Done(layout);
            self.demand.leave(&layout);
            self.names.leave(&listed.definition.file.content_location, listed.version);
            if let Some(expiries) = &mut self.expiries {
                expiries.keep(&listed.definition.file.content_location, listed.definition.expires);
            }
        }
    }
}

/// What the header of a packet says of its file.
fn in_band(packet: &Packet<'_>) -> InBand {
    let extensions = packet.header.extensions;
    let parse = |content| fti::parse(EncodingId(packet.header.codepoint), content).ok();
    let encoding = extensions.cenc().and_then(ContentEncoding::from_cenc);
    InBand {
        fti: extensions.fti().and_then(parse),
        encoding: encoding.filter(|&encoding| encoding != ContentEncoding::Null),
    }
}

/// Whether an object with this transmission information can be received.
fn is_plausible(oti: Oti, limits: &ReceiverLimits) -> bool {
    Demand::default().admit(oti, limits).is_ok()
}

/// The transmission information of a file, `None` if it is not known yet. `fti` is what its packets
/// say.
fn oti_of(file: &FdtFile, fti: Option<Oti>) -> Result<Option<Oti>, FileRefusal> {
    match (file.oti, fti) {
        // No packet belongs to an empty file, so its code does not matter; some senders write that
        // it has 0 blocks.
        _ if file.transfer_length == Some(0) => Ok(Some(EMPTY)),
        (Some(oti), _) | (None, Some(oti)) => Ok(Some(oti)),
        (None, None) => {
            let is_ours =
                |&id: &u8| fti::parse(EncodingId(id), &[]) != Err(CodeError::EncodingId(id).into());
            match file.fec_encoding_id.filter(|id| !is_ours(id)) {
                Some(id) => Err(FileRefusal::Code(id)),
                None => Ok(None),
            }
        }
    }
}

impl Listed {
    /// The opening of its object.
    fn open(&self, session: SessionKey, layout: ObjectLayout) -> Finding {
        let (file, object) = (Arc::clone(&self.definition.file), self.object());
        let event = ReceiverEvent::FileFound {
            toi: object,
            content_location: file.content_location.clone(),
            transfer_length: layout.oti().transfer_length,
        };
        let (version, expires) = (self.version, self.definition.expires);
        let opening = Opening::File { session, object, file, version, expires, layout };
        let object = NewObject { toi: object, layout, block_hashes: None };
        Finding::open(object, Some(event), opening)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(toi: u128) -> FdtFile {
        FdtFile { toi: Toi(toi), content_location: "a".to_owned(), ..FdtFile::default() }
    }

    fn defined(file: FdtFile, fti: Option<Oti>) -> Definition {
        Definition { file: Arc::new(file), fti, instance: 1, expires: 0 }
    }

    fn blocks(count: u64) -> Oti {
        let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1 });
        Oti { transfer_length: count, symbol_size: 1, scheme }
    }

    #[test]
    fn limits_hold_for_all_tables_of_a_session_together() {
        let limits = ReceiverLimits { max_files: 3, max_blocks: 10, ..ReceiverLimits::default() };
        let mut catalog = FluteCatalog::default();
        let mut admit = |toi, oti| {
            let file = FdtFile { oti: Some(oti), ..file(toi) };
            catalog.admit(&defined(file, None), &limits).map(|layout| layout.is_some())
        };
        assert_eq!(admit(1, blocks(5)), Ok(true));
        assert_eq!(admit(2, blocks(6)), Err(FileRefusal::Limit("source blocks")));
        assert_eq!(admit(3, blocks(5)), Ok(true));
        assert_eq!(admit(4, EMPTY), Ok(true));
        assert_eq!(admit(5, EMPTY), Err(FileRefusal::Limit("files")));
    }

    #[test]
    fn a_file_without_a_geometry_waits_unless_its_code_is_not_ours() {
        let limits = ReceiverLimits::default();
        let mut catalog = FluteCatalog::default();
        let mut admit = |file, fti| catalog.admit(&defined(file, fti), &limits);
        let with_code = |toi, id| FdtFile { fec_encoding_id: Some(id), ..file(toi) };
        assert_eq!(admit(file(1), None), Ok(None));
        assert_eq!(admit(with_code(2, 0), None), Ok(None));
        assert_eq!(admit(with_code(3, 6), None), Ok(None));
        assert_eq!(admit(with_code(4, 7), None), Err(FileRefusal::Code(7)));
        let empty = FdtFile { transfer_length: Some(0), ..with_code(5, 7) };
        assert!(admit(empty, None).unwrap().is_some());
        let layout = admit(file(6), Some(blocks(3))).unwrap().unwrap();
        assert_eq!(layout.block_count(), 3);
    }
}
