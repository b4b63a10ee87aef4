//! Plain FLUTE sessions (RFC 6726, and RFC 3926 before it): the file delivery table replaces the
//! manifest.
//!
//! A table arrives as an object of its own, in packets with EXT_FDT, EXT_FTI and, if it is
//! compressed, EXT_CENC. A file that it names is opened once its transmission information is known,
//! from the table or from EXT_FTI in a packet of the file, whichever comes first. Nothing is
//! authenticated. A file that cannot be received is refused alone, and the others arrive.
//!
//! The bytes of a file are compared with the table when it is complete. If they differ, a packet was
//! wrong, or several senders were mixed: the file is [collected again](Collection).
//!
//! Reception is complete with every file of the tables that were read, if one of them says
//! `Complete`. Otherwise later tables may add files, and the driver decides when to
//! [conclude](crate::Receiver::conclude).

use super::collection::Collection;
use super::demand::Demand;
use super::discovery::{Content, Context, Discovery, Finding, NewObject};
use crate::collection::sent_toi;
use crate::endpoint::SessionKey;
use crate::event::{FileRefusal, ReceiverEvent, Rejection, TableWarning};
use crate::job::Opening;
use crate::receiver::config::ReceiverLimits;
use crate::receiver::sessions::{Announced, ContentId, SessionState};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::{CodeError, EncodingId, FecScheme, ObjectLayout, Oti};
use fontana_wire::{Fdt, FdtFile, FdtMd5, Hash, Packet, Payload, Toi, fti};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The files of the accepted session.
#[derive(Debug, Default)]
pub(in crate::receiver) struct FluteCatalog {
    /// The files that the tables name, by the TOI of their packets.
    files: BTreeMap<Toi, Listed>,
    /// Those that wait for their transmission information, or to be collected again.
    awaited: BTreeSet<Toi>,
    demand: Demand,
    /// The kinds of defects that were reported.
    warned: Warned,
    /// No later table adds files: a table says so, or the driver has concluded the session.
    is_complete: bool,
}

/// A file that a table names.
#[derive(Debug)]
struct Listed {
    file: Arc<FdtFile>,
    /// `None`: its transmission information is not known yet.
    layout: Option<ObjectLayout>,
    collection: Collection,
}

/// Which [`TableWarning`]s were reported.
#[derive(Debug, Default)]
struct Warned {
    expired: bool,
    md5: bool,
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
            return Discovery::Nothing;
        }
        match tables.on_symbol(packet, payload, &cx.config.limits.fdt) {
            None => Discovery::Nothing,
            Some(Ok(table)) => self.on_table(cx, session, table),
            // The next table may be better.
            Some(Err(_)) => Discovery::Ignored(Rejection::BadManifest),
        }
    }

    fn on_table(&mut self, cx: &Context<'_>, session: &mut SessionState, table: Fdt) -> Discovery {
        let id = ContentId::Session(session.key);
        match cx.accepted {
            // A session without files is not accepted.
            None if table.files.is_empty() => return Discovery::Nothing,
            Some(accepted) if *accepted != id => {
                return Discovery::Refused(Rejection::OtherSession);
            }
            None | Some(_) => session.content = Some(id),
        }
        let Announced::Tables(tables) = &mut session.announced else { return Discovery::Nothing };
        let key = session.key;
        self.is_complete |= table.complete;
        let mut findings = Vec::new();
        findings.extend(self.warn_of_expiry(cx, &table));
        for file in table.files {
            // The first table that names a file holds: a file does not change (RFC 6726, section
            // 3.4.1).
            if !cx.transfer.contains(file.toi) && !self.files.contains_key(&file.toi) {
                let fti = tables.take_fti(file.toi);
                findings.extend(self.warn_of_md5(&file));
                findings.extend(self.list(cx, key, file, fti));
            }
        }
        match cx.accepted {
            None => {
                Discovery::Content(Box::new(Content { id, version: None, event: None, findings }))
            }
            Some(_) => Discovery::Objects(findings),
        }
    }

    fn warn_of_expiry(&mut self, cx: &Context<'_>, table: &Fdt) -> Option<Finding> {
        let now = cx.unix_seconds();
        let unix_seconds = table.expires.to_unix_seconds(now);
        let warns = unix_seconds < now && !std::mem::replace(&mut self.warned.expired, true);
        warns.then_some(Finding::Warn(TableWarning::Expired { unix_seconds }))
    }

    fn warn_of_md5(&mut self, file: &FdtFile) -> Option<Finding> {
        let is_invalid = matches!(file.content_md5, Some(FdtMd5::Invalid(_)));
        let warns = is_invalid && !std::mem::replace(&mut self.warned.md5, true);
        let content_location = file.content_location.clone();
        warns.then_some(Finding::Warn(TableWarning::InvalidMd5 { content_location }))
    }

    /// A packet of a file: it may have EXT_FTI, and begins a collection that is due.
    pub(super) fn on_object(
        &mut self,
        cx: &Context<'_>,
        session: &mut SessionState,
        object: Toi,
        packet: &Packet<'_>,
    ) -> Discovery {
        let toi = sent_toi(object);
        let is_accepted = session.content.is_some() && session.content.as_ref() == cx.accepted;
        let listed = self.files.get_mut(&toi).filter(|_| is_accepted);
        match listed {
            Some(listed) if listed.collection.is_due() => {
                if !listed.collection.begins(cx.now) {
                    return Discovery::Nothing;
                }
                listed.collection.begin(cx.now);
                let finding = listed.open(session.key, toi);
                self.awaited.remove(&toi);
                return Discovery::Objects(finding.into_iter().collect());
            }
            Some(Listed { layout: Some(_), .. }) => return Discovery::Nothing,
            Some(_) | None => {}
        }
        let Some(content) = packet.header.extensions.fti() else { return Discovery::Nothing };
        let codepoint = EncodingId(packet.header.codepoint);
        let Ok(oti) = fti::parse(codepoint, content) else { return Discovery::Nothing };
        let waiting = if is_accepted { self.files.remove(&toi) } else { None };
        match waiting {
            Some(Listed { file, .. }) => {
                self.awaited.remove(&toi);
                let file = Arc::unwrap_or_clone(file);
                let finding = self.list(cx, session.key, file, Some(oti));
                Discovery::Objects(finding.into_iter().collect())
            }
            None => {
                if !cx.transfer.contains(toi)
                    && let Announced::Tables(tables) = &mut session.announced
                {
                    tables.remember_fti(toi, oti);
                }
                Discovery::Nothing
            }
        }
    }

    /// Opens a file, or refuses it, or waits until its transmission information is known.
    fn list(
        &mut self,
        cx: &Context<'_>,
        session: SessionKey,
        file: FdtFile,
        fti: Option<Oti>,
    ) -> Option<Finding> {
        let (toi, limits) = (file.toi, &cx.config.limits);
        let reason = match self.admit(&file, fti, limits) {
            Ok(layout) if layout.is_some() || self.awaited.len() < limits.max_files => {
                let (file, collection) = (Arc::new(file), Collection::first(cx.now));
                let listed = Listed { file, layout, collection };
                let finding = listed.open(session, toi);
                self.files.insert(toi, listed);
                if finding.is_none() {
                    self.awaited.insert(toi);
                }
                return finding;
            }
            Ok(_) => FileRefusal::Limit("files"),
            Err(reason) => reason,
        };
        Some(Finding::Refuse { toi, content_location: file.content_location, reason })
    }

    /// The bytes of an object are not what the table says. Whether it is collected again.
    pub(super) fn on_mismatch(&mut self, object: Toi, digest: Hash) -> bool {
        let toi = sent_toi(object);
        let current = |listed: &&mut Listed| listed.collection.object(toi) == object;
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
        self.files.get(&toi).map_or(toi, |listed| listed.collection.object(toi))
    }

    /// Whether symbols of an object that is not open are of no use: its collection is not due yet.
    pub(super) fn is_useless(&self, object: Toi) -> bool {
        self.files.get(&sent_toi(object)).is_some_and(|listed| listed.collection.is_due())
    }

    /// The geometry of a file, `None` if it is not known yet. `fti` is what its packets said.
    fn admit(
        &mut self,
        file: &FdtFile,
        fti: Option<Oti>,
        limits: &ReceiverLimits,
    ) -> Result<Option<ObjectLayout>, FileRefusal> {
        if matches!(file.toi, Toi::HEAD | Toi::MANIFEST) {
            return Err(FileRefusal::ReservedToi);
        }
        let oti = match (file.oti, fti) {
            // No packet belongs to an empty file, so its code does not matter; some senders write
            // that it has 0 blocks.
            _ if file.transfer_length == Some(0) => EMPTY,
            (Some(oti), _) | (None, Some(oti)) => oti,
            (None, None) => {
                let is_ours = |&id: &u8| {
                    fti::parse(EncodingId(id), &[]) != Err(CodeError::EncodingId(id).into())
                };
                return match file.fec_encoding_id.filter(|id| !is_ours(id)) {
                    Some(id) => Err(FileRefusal::Code(id)),
                    None => Ok(None),
                };
            }
        };
        self.demand.admit(oti, limits).map(Some)
    }

    /// Whether every file that the tables name was opened or refused, and no later table adds any.
    pub(super) fn is_final(&self) -> bool {
        self.is_complete && self.awaited.is_empty()
    }

    /// Whether every file that the tables name was opened or refused, and a later table may add
    /// others.
    pub(super) fn is_open_ended(&self) -> bool {
        !self.is_complete && self.awaited.is_empty()
    }

    /// Waits for no further table.
    pub(super) fn conclude(&mut self) {
        self.is_complete = true;
    }
}

impl Listed {
    /// Whether no packet belongs to it.
    fn is_empty(&self) -> bool {
        self.layout.is_some_and(|layout| layout.oti().transfer_length == 0)
    }

    /// The opening of its object, if its transmission information is known.
    fn open(&self, session: SessionKey, toi: Toi) -> Option<Finding> {
        let (layout, object) = (self.layout?, self.collection.object(toi));
        let event = ReceiverEvent::FileFound {
            toi: object,
            content_location: self.file.content_location.clone(),
            transfer_length: layout.oti().transfer_length,
        };
        let file = Arc::clone(&self.file);
        let opening = Opening::File { session, object, file, layout };
        let object = NewObject { toi: object, layout, block_hashes: None };
        Some(Finding::open(object, Some(event), opening))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(toi: u128) -> FdtFile {
        FdtFile { toi: Toi(toi), content_location: "a".to_owned(), ..FdtFile::default() }
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
            catalog.admit(&file, None, &limits).map(|layout| layout.is_some())
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
        let with_code = |toi, id| FdtFile { fec_encoding_id: Some(id), ..file(toi) };
        assert_eq!(catalog.admit(&file(1), None, &limits), Ok(None));
        assert_eq!(catalog.admit(&with_code(2, 0), None, &limits), Ok(None));
        assert_eq!(catalog.admit(&with_code(3, 6), None, &limits), Ok(None));
        assert_eq!(catalog.admit(&with_code(4, 7), None, &limits), Err(FileRefusal::Code(7)));
        let empty = FdtFile { transfer_length: Some(0), ..with_code(5, 7) };
        assert!(catalog.admit(&empty, None, &limits).unwrap().is_some());
        let layout = catalog.admit(&file(6), Some(blocks(3)), &limits).unwrap().unwrap();
        assert_eq!(layout.block_count(), 3);
    }
}
