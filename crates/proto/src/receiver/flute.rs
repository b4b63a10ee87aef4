//! Plain FLUTE sessions (RFC 6726, and RFC 3926 before it): the file delivery table stands in for
//! the manifest.
//!
//! A table arrives as an object of its own, in packets with EXT_FDT, EXT_FTI and, if it is
//! compressed, EXT_CENC. A file that it names is opened once its transmission information is known,
//! from the table or from EXT_FTI in a packet of the file, whichever comes first. Nobody vouches
//! for any of it: a file that cannot be received is refused by itself, and the others arrive.
//!
//! A receiver is done when it has every file of the tables that it has read. It does not wait for
//! `Complete`, which few senders ever say.

use super::collector::Collector;
use super::standing::Standing;
use super::{Chosen, Receiver, ReceiverLimits};
use crate::endpoint::SessionKey;
use crate::event::{FileRefusal, ReceiverEvent, ReceiverOutput, Rejection};
use crate::job::{Opening, ReceiveJob};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::{CodeError, EncodingId, FecScheme, ObjectLayout, Oti};
use fontana_wire::{ContentEncoding, Fdt, FdtError, FdtFile, FdtLimits, Packet, Payload, Toi, fti};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The file delivery tables of one session, as far as they have been heard.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// Instances being collected.
    open: BTreeMap<u32, Instance>,
    /// Instance that was read last.
    read: Option<u32>,
    /// EXT_FTI as heard in packets of files that no table has named yet.
    heard: BTreeMap<Toi, Oti>,
    /// Files that a table has named without saying how they are encoded.
    waiting: BTreeMap<Toi, FdtFile>,
    /// What the files that were accepted ask for.
    demand: Demand,
}

/// An instance on its way.
#[derive(Debug)]
struct Instance {
    collector: Collector,
    encoding: ContentEncoding,
}

/// What the files that were accepted from a session ask for, all together.
#[derive(Debug, Default)]
pub(super) struct Demand {
    pub(super) files: usize,
    bytes: u64,
    blocks: u64,
}

impl Demand {
    /// The geometry of one more file, if the limits allow it.
    pub(super) fn admit(
        &mut self,
        oti: Oti,
        limits: &ReceiverLimits,
    ) -> Result<ObjectLayout, FileRefusal> {
        let layout = oti.layout()?;
        let demand = Self {
            files: self.files + 1,
            bytes: self.bytes.saturating_add(oti.transfer_length),
            blocks: self.blocks + u64::from(layout.block_count()),
        };
        for (too_much, what) in [
            (demand.files > limits.max_files, "files"),
            (demand.bytes > limits.max_transfer_bytes, "bytes"),
            (demand.blocks > limits.max_blocks, "source blocks"),
            (!limits.have_room_to_decode(oti), "bytes of memory to decode a block"),
        ] {
            if too_much {
                return Err(FileRefusal::Limit(what));
            }
        }
        *self = demand;
        Ok(layout)
    }
}

/// Instances that are collected at the same time. An instance is a few packets, and one follows
/// another: more than these are somebody's game.
const MAX_OPEN_INSTANCES: usize = 4;
/// Files whose EXT_FTI is remembered before a table names them. Packets of a file that is not
/// among them say it again.
const MAX_HEARD: usize = 256;

impl Tables {
    /// Takes a packet of a table; the table once it is whole.
    fn on_symbol(
        &mut self,
        packet: &Packet<'_>,
        payload: &Payload<'_>,
        limits: &FdtLimits,
    ) -> Option<Result<Fdt, FdtError>> {
        let extensions = packet.header.extensions;
        let id = extensions.fdt()?.instance_id;
        if self.read == Some(id) {
            return None;
        }
        let encoding = ContentEncoding::from_cenc(extensions.cenc().unwrap_or(0))?;
        let oti = match extensions.fti() {
            Some(content) => fti::parse(EncodingId(packet.header.codepoint), content).ok()?,
            None => self.open.get(&id)?.collector.oti(),
        };
        // An instance that says something else of itself is a new one: its sender began again.
        if self.open.get(&id).is_none_or(|i| i.collector.oti() != oti || i.encoding != encoding) {
            let collector = Collector::new(oti, limits.encoded_bytes)?;
            while self.open.len() >= MAX_OPEN_INSTANCES {
                self.open.pop_first();
            }
            self.open.insert(id, Instance { collector, encoding });
        }
        let collector = &mut self.open.get_mut(&id)?.collector;
        let bytes = collector.push(payload.sbn, payload.esi, payload.symbol)?;
        self.open.remove(&id);
        let table = Fdt::parse_encoded(encoding, &bytes, limits);
        if table.is_ok() {
            self.read = Some(id);
        }
        Some(table)
    }

    /// Learns from EXT_FTI in a packet of a file; the file, if it was waiting for that.
    fn on_fti(&mut self, toi: Toi, oti: Oti) -> Option<FdtFile> {
        let file = self.waiting.remove(&toi);
        if file.is_some() || self.heard.len() < MAX_HEARD {
            self.heard.entry(toi).or_insert(oti);
        }
        file
    }

    /// The geometry of a file, `None` if it is not known yet. Counts what the file asks for.
    fn admit(
        &mut self,
        file: &FdtFile,
        limits: &ReceiverLimits,
    ) -> Result<Option<ObjectLayout>, FileRefusal> {
        if matches!(file.toi, Toi::HEAD | Toi::MANIFEST) {
            return Err(FileRefusal::ReservedToi);
        }
        let oti = match (file.oti, self.heard.remove(&file.toi)) {
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
}

/// An object without a byte.
const EMPTY: Oti = Oti {
    transfer_length: 0,
    symbol_size: 1,
    scheme: FecScheme::NoCode(NoCode { max_source_block_length: 1 }),
};

impl Receiver {
    /// A packet of a file delivery table.
    pub(super) fn on_table_symbol(
        &mut self,
        session: SessionKey,
        packet: &Packet<'_>,
        payload: &Payload<'_>,
    ) {
        let Some(state) = self.sessions.get_mut(&session) else { return };
        match state.tables.on_symbol(packet, payload, &self.config.limits.fdt) {
            None => {}
            Some(Ok(table)) => self.take_table(session, table),
            // The next one may be better.
            Some(Err(_)) => self.tell_rejection(session, Rejection::BadManifest),
        }
    }

    fn take_table(&mut self, session: SessionKey, table: Fdt) {
        match self.chosen {
            // A session that has nothing to offer yet is not the one.
            None if table.files.is_empty() => return,
            None => self.chosen = Some(Chosen::Flute(session)),
            Some(Chosen::Flute(chosen)) if chosen == session => {}
            Some(_) => return self.reject(session, Rejection::OtherSession),
        }
        if let Some(state) = self.sessions.get_mut(&session) {
            state.standing = Standing::Accepted;
        }
        for file in table.files {
            self.take_file(session, file);
        }
    }

    /// EXT_FTI in a packet of a file.
    pub(super) fn on_file_fti(&mut self, session: SessionKey, toi: Toi, packet: &Packet<'_>) {
        if self.transfer.contains(toi) {
            return;
        }
        let Some(content) = packet.header.extensions.fti() else { return };
        let Ok(oti) = fti::parse(EncodingId(packet.header.codepoint), content) else { return };
        let Some(state) = self.sessions.get_mut(&session) else { return };
        if let Some(file) = state.tables.on_fti(toi, oti) {
            self.take_file(session, file);
        }
    }

    /// Opens a file, or refuses it, or waits until enough is known of it.
    fn take_file(&mut self, session: SessionKey, file: FdtFile) {
        let toi = file.toi;
        let Some(state) = self.sessions.get_mut(&session) else { return };
        let tables = &mut state.tables;
        // What was said of a file first holds (RFC 6726, section 3.4.1: it does not change).
        if self.transfer.contains(toi) || tables.waiting.contains_key(&toi) {
            return;
        }
        let limits = &self.config.limits;
        match tables.admit(&file, limits) {
            Ok(Some(layout)) => {
                self.transfer.insert(toi, layout, None);
                self.outputs.push_back(ReceiverOutput::Event(ReceiverEvent::FileFound {
                    toi,
                    content_location: file.content_location.clone(),
                    transfer_length: layout.oti().transfer_length,
                }));
                let file = Arc::new(file);
                let opening = Opening::File { session, file, layout };
                self.outputs.push_back(ReceiverOutput::Job(ReceiveJob::Open(opening)));
            }
            Ok(None) if tables.waiting.len() < limits.max_files => {
                tables.waiting.insert(toi, file);
            }
            Ok(None) => self.refuse_file(file, FileRefusal::Limit("files")),
            Err(reason) => self.refuse_file(file, reason),
        }
    }

    fn refuse_file(&mut self, file: FdtFile, reason: FileRefusal) {
        // Every file that is refused is remembered, so that it is told once: as many as may be
        // accepted.
        if self.transfer.refuse(file.toi, self.config.limits.max_files) {
            let (toi, content_location) = (file.toi, file.content_location);
            self.outputs.push_back(ReceiverOutput::Event(ReceiverEvent::FileRefused {
                toi,
                content_location,
                reason,
            }));
        }
    }

    /// Whether every file that the tables of a session name has been opened or refused.
    pub(super) fn tables_are_settled(&self, session: SessionKey) -> bool {
        self.sessions
            .get(&session)
            .is_some_and(|state| state.tables.read.is_some() && state.tables.waiting.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::{Esi, Sbn};
    use fontana_wire::{FdtExtension, HeaderFields, Tsi};

    /// A packet with symbol `esi` of a table of `length` bytes in symbols of 10.
    fn packet(instance_id: u32, length: u64, esi: u32, symbol: &[u8]) -> Vec<u8> {
        let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 100 });
        let fields = HeaderFields {
            fdt: Some(FdtExtension { version: 2, instance_id }),
            fti: Some(Oti { transfer_length: length, symbol_size: 10, scheme }),
            ..HeaderFields::new(Tsi(1), Some(Toi::FDT))
        };
        let mut packet = Vec::new();
        fields.emit(&mut packet);
        fontana_wire::emit_payload_id(EncodingId::NO_CODE, Sbn(0), Esi(esi), &mut packet);
        packet.extend_from_slice(symbol);
        packet
    }

    fn push(tables: &mut Tables, packet: &[u8]) -> Option<Result<Fdt, FdtError>> {
        let packet = Packet::parse(packet).unwrap();
        let payload = packet.payload(EncodingId::NO_CODE).unwrap().unwrap();
        tables.on_symbol(&packet, &payload, &FdtLimits::default())
    }

    fn table() -> Vec<u8> {
        Fdt { files: vec![file(1)], ..Fdt::default() }.emit()
    }

    /// The packets of a table.
    fn instance(id: u32, table: &[u8]) -> Vec<Vec<u8>> {
        let symbols = table.chunks(10).zip(0..);
        symbols.map(|(symbol, esi)| packet(id, table.len() as u64, esi, symbol)).collect()
    }

    fn file(toi: u128) -> FdtFile {
        FdtFile { toi: Toi(toi), content_location: "a".to_owned(), ..FdtFile::default() }
    }

    fn blocks(count: u64) -> Oti {
        let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1 });
        Oti { transfer_length: count, symbol_size: 1, scheme }
    }

    #[test]
    fn a_table_is_read_once() {
        let (mut tables, table) = (Tables::default(), table());
        let packets = instance(7, &table);
        let (last, others) = packets.split_last().unwrap();
        assert!(others.iter().all(|packet| push(&mut tables, packet).is_none()));
        assert!(push(&mut tables, last).unwrap().is_ok());
        assert!(packets.iter().all(|packet| push(&mut tables, packet).is_none()));
        assert!(tables.open.is_empty());
    }

    #[test]
    fn four_tables_are_collected_at_a_time_and_a_fifth_one_displaces_the_oldest() {
        let (mut tables, table) = (Tables::default(), table());
        for id in 1..=4 {
            push(&mut tables, &instance(id, &table)[0]);
        }
        let rest = |id| instance(id, &table).into_iter().skip(1).collect::<Vec<_>>();
        assert!(rest(1).iter().filter_map(|packet| push(&mut tables, packet)).count() == 1);
        push(&mut tables, &instance(5, &table)[0]);
        push(&mut tables, &instance(6, &table)[0]);
        assert_eq!(tables.open.keys().copied().collect::<Vec<_>>(), [3, 4, 5, 6]);
        assert!(rest(2).iter().all(|packet| push(&mut tables, packet).is_none()));
    }

    #[test]
    fn a_table_longer_than_the_limit_is_not_collected() {
        let mut tables = Tables::default();
        let limit = FdtLimits::default().encoded_bytes;
        push(&mut tables, &packet(1, limit + 1, 0, &[0; 10]));
        assert!(tables.open.is_empty());
    }

    #[test]
    fn limits_hold_for_all_tables_of_a_session_together() {
        let limits = ReceiverLimits { max_files: 3, max_blocks: 10, ..ReceiverLimits::default() };
        let mut tables = Tables::default();
        let mut admit = |toi, oti| {
            tables.admit(&FdtFile { oti: Some(oti), ..file(toi) }, &limits).map(|l| l.is_some())
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
        let mut tables = Tables::default();
        let with_code = |toi, id| FdtFile { fec_encoding_id: Some(id), ..file(toi) };
        assert_eq!(tables.admit(&file(1), &limits), Ok(None));
        assert_eq!(tables.admit(&with_code(2, 0), &limits), Ok(None));
        assert_eq!(tables.admit(&with_code(3, 6), &limits), Ok(None));
        assert_eq!(tables.admit(&with_code(4, 7), &limits), Err(FileRefusal::Code(7)));
        let empty = FdtFile { transfer_length: Some(0), ..with_code(5, 7) };
        assert!(tables.admit(&empty, &limits).unwrap().is_some());
        tables.on_fti(Toi(6), blocks(3));
        let layout = tables.admit(&file(6), &limits).unwrap().unwrap();
        assert_eq!(layout.block_count(), 3);
    }

    #[test]
    fn what_is_heard_of_files_without_a_table_is_bounded() {
        let mut tables = Tables::default();
        for toi in 1..=MAX_HEARD as u128 + 1 {
            assert!(tables.on_fti(Toi(toi), blocks(1)).is_none());
        }
        assert_eq!(tables.heard.len(), MAX_HEARD);
        // A file that waits is served all the same.
        let late = Toi(MAX_HEARD as u128 + 1);
        tables.waiting.insert(late, file(late.0));
        assert!(tables.on_fti(late, blocks(1)).is_some());
        assert!(tables.heard.contains_key(&late));
    }
}
