//! Plain FLUTE sessions (RFC 6726, and RFC 3926 before it): the file delivery table replaces the
//! manifest.
//!
//! A table arrives as an object of its own, in packets with EXT_FDT, EXT_FTI and, if it is
//! compressed, EXT_CENC. A file that it names is opened once its transmission information is known,
//! from the table or from EXT_FTI in a packet of the file, whichever comes first. Nothing is
//! authenticated. A file that cannot be received is refused alone, and the others arrive.
//!
//! Reception is complete with every file of the tables that were read, if one of them says
//! `Complete`. Otherwise later tables may add files, and the driver decides when to
//! [conclude](crate::Receiver::conclude).

use super::demand::Demand;
use super::discovery::{Content, Context, Discovery, Finding, NewObject};
use crate::endpoint::SessionKey;
use crate::event::{FileRefusal, ReceiverEvent, Rejection, TableWarning};
use crate::job::Opening;
use crate::receiver::config::ReceiverLimits;
use crate::receiver::sessions::{Announced, ContentId, SessionState};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::{CodeError, EncodingId, FecScheme, ObjectLayout, Oti};
use fontana_wire::{Fdt, FdtFile, FdtMd5, Packet, Payload, Toi, fti};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The files of the accepted session.
#[derive(Debug, Default)]
pub(in crate::receiver) struct FluteCatalog {
    /// Files that a table names without their transmission information.
    waiting: BTreeMap<Toi, FdtFile>,
    demand: Demand,
    /// The kinds of defects that were reported.
    warned: Warned,
    /// No later table adds files: a table says so, or the driver has concluded the session.
    is_complete: bool,
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
            if !cx.transfer.contains(file.toi) && !self.waiting.contains_key(&file.toi) {
                let fti = tables.take_fti(file.toi);
                findings.extend(self.warn_of_md5(&file));
                findings.extend(self.take_file(&cx.config.limits, key, file, fti));
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

    /// EXT_FTI in a packet of a file.
    pub(super) fn on_fti(
        &mut self,
        cx: &Context<'_>,
        session: &mut SessionState,
        toi: Toi,
        packet: &Packet<'_>,
    ) -> Discovery {
        if cx.transfer.contains(toi) {
            return Discovery::Nothing;
        }
        let Some(content) = packet.header.extensions.fti() else { return Discovery::Nothing };
        let codepoint = EncodingId(packet.header.codepoint);
        let Ok(oti) = fti::parse(codepoint, content) else { return Discovery::Nothing };
        let is_accepted = session.content.is_some() && session.content.as_ref() == cx.accepted;
        let waiting = if is_accepted { self.waiting.remove(&toi) } else { None };
        match waiting {
            Some(file) => {
                let finding = self.take_file(&cx.config.limits, session.key, file, Some(oti));
                Discovery::Objects(finding.into_iter().collect())
            }
            None => {
                if let Announced::Tables(tables) = &mut session.announced {
                    tables.remember_fti(toi, oti);
                }
                Discovery::Nothing
            }
        }
    }

    /// Opens a file, or refuses it, or waits until its transmission information is known.
    fn take_file(
        &mut self,
        limits: &ReceiverLimits,
        session: SessionKey,
        file: FdtFile,
        fti: Option<Oti>,
    ) -> Option<Finding> {
        let toi = file.toi;
        let reason = match self.admit(&file, fti, limits) {
            Ok(Some(layout)) => {
                let event = ReceiverEvent::FileFound {
                    toi,
                    content_location: file.content_location.clone(),
                    transfer_length: layout.oti().transfer_length,
                };
                let opening = Opening::File { session, file: Arc::new(file), layout };
                let object = NewObject { toi, layout, block_hashes: None };
                return Some(Finding::open(object, Some(event), opening));
            }
            Ok(None) if self.waiting.len() < limits.max_files => {
                self.waiting.insert(toi, file);
                return None;
            }
            Ok(None) => FileRefusal::Limit("files"),
            Err(reason) => reason,
        };
        Some(Finding::Refuse { toi, content_location: file.content_location, reason })
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
        self.is_complete && self.waiting.is_empty()
    }

    /// Whether every file that the tables name was opened or refused, and a later table may add
    /// others.
    pub(super) fn is_open_ended(&self) -> bool {
        !self.is_complete && self.waiting.is_empty()
    }

    /// Waits for no further table.
    pub(super) fn conclude(&mut self) {
        self.is_complete = true;
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
