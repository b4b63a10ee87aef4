//! The file delivery tables of one plain FLUTE session, while they arrive.

use crate::event::TableStatus;
use crate::receiver::collector::Collector;
use fontana_fec::{EncodingId, Oti};
use fontana_wire::{
    ContentEncoding, Fdt, FdtError, FdtExtension, FdtLimits, Packet, Payload, Toi, fti,
};
use std::collections::BTreeMap;

/// Collects the tables of a session, and EXT_FTI of files that no table has named yet.
#[derive(Debug, Default)]
pub(in crate::receiver) struct TableCollector {
    open: BTreeMap<u32, Instance>,
    /// The instance that was read last.
    read: Option<u32>,
    ftis: BTreeMap<Toi, Oti>,
    /// What is known of tables that are neither read nor collected.
    noted: TableStatus,
}

/// A table that is not complete.
#[derive(Debug)]
struct Instance {
    collector: Collector,
    encoding: ContentEncoding,
}

/// Instances that are collected at the same time. An instance takes a few packets, and an honest
/// sender sends one after another.
const MAX_OPEN_INSTANCES: usize = 4;
/// Files whose EXT_FTI is remembered before a table names them. Later packets of other files repeat
/// theirs.
const MAX_FTIS: usize = 256;

impl TableCollector {
    /// Takes a packet of a table. The table, when it is complete.
    pub(in crate::receiver) fn on_symbol(
        &mut self,
        packet: &Packet<'_>,
        payload: &Payload<'_>,
        limits: &FdtLimits,
    ) -> Option<Result<Fdt, FdtError>> {
        let extensions = packet.header.extensions;
        let Some(FdtExtension { instance_id: id, .. }) = extensions.fdt() else {
            self.note(TableStatus::WithoutFdtExtension);
            return None;
        };
        if self.read == Some(id) {
            return None;
        }
        let encoding = ContentEncoding::from_cenc(extensions.cenc().unwrap_or(0))?;
        let oti = match extensions.fti() {
            Some(content) => fti::parse(EncodingId(packet.header.codepoint), content).ok(),
            None => self.open.get(&id).map(|instance| instance.collector.oti()),
        };
        let Some(oti) = oti else {
            self.note(TableStatus::WithoutGeometry);
            return None;
        };
        // Other parameters under a known number: the sender was restarted.
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

    /// Notes what explains why no table is read.
    pub(in crate::receiver) fn note(&mut self, status: TableStatus) {
        self.noted = self.noted.max(status);
    }

    /// How much was received of the tables.
    pub(in crate::receiver) fn status(&self) -> TableStatus {
        if self.read.is_some() {
            return TableStatus::Complete;
        }
        let open = self.open.values().map(|Instance { collector, .. }| TableStatus::Incomplete {
            received: collector.received(),
            source_symbols: collector.source_symbols(),
        });
        open.fold(self.noted, TableStatus::max)
    }

    /// Remembers EXT_FTI of a file.
    pub(in crate::receiver) fn remember_fti(&mut self, toi: Toi, oti: Oti) {
        if self.ftis.len() < MAX_FTIS {
            self.ftis.entry(toi).or_insert(oti);
        }
    }

    /// Takes what EXT_FTI of a file said.
    pub(in crate::receiver) fn take_fti(&mut self, toi: Toi) -> Option<Oti> {
        self.ftis.remove(&toi)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::codes::no_code::NoCode;
    use fontana_fec::{Esi, FecScheme, Sbn};
    use fontana_wire::{FdtFile, HeaderFields, Tsi};

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

    fn push(tables: &mut TableCollector, packet: &[u8]) -> Option<Result<Fdt, FdtError>> {
        let packet = Packet::parse(packet).unwrap();
        let payload = packet.payload(EncodingId::NO_CODE).unwrap().unwrap();
        tables.on_symbol(&packet, &payload, &FdtLimits::default())
    }

    fn table() -> Vec<u8> {
        let file = FdtFile { toi: Toi(1), content_location: "a".to_owned(), ..FdtFile::default() };
        Fdt { files: vec![file], ..Fdt::default() }.emit(fontana_wire::FluteVersion::V2)
    }

    /// The packets of a table.
    fn instance(id: u32, table: &[u8]) -> Vec<Vec<u8>> {
        let symbols = table.chunks(10).zip(0..);
        symbols.map(|(symbol, esi)| packet(id, table.len() as u64, esi, symbol)).collect()
    }

    #[test]
    fn a_table_is_read_once() {
        let (mut tables, table) = (TableCollector::default(), table());
        let packets = instance(7, &table);
        let (last, others) = packets.split_last().unwrap();
        assert!(others.iter().all(|packet| push(&mut tables, packet).is_none()));
        assert!(push(&mut tables, last).unwrap().is_ok());
        assert!(packets.iter().all(|packet| push(&mut tables, packet).is_none()));
        assert!(tables.open.is_empty());
    }

    /// Numbers wrap after 20 bits, and a sender that starts again may begin with any.
    #[test]
    fn a_table_with_a_lower_number_is_read() {
        let (mut tables, table) = (TableCollector::default(), table());
        for id in [FdtExtension::MAX_INSTANCE_ID, 0, 7, 3] {
            let read = |packet: &Vec<u8>| push(&mut tables, packet);
            assert_eq!(instance(id, &table).iter().filter_map(read).count(), 1, "{id}");
        }
    }

    #[test]
    fn four_tables_are_collected_at_a_time_and_a_fifth_one_displaces_the_oldest() {
        let (mut tables, table) = (TableCollector::default(), table());
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
        let mut tables = TableCollector::default();
        let limit = FdtLimits::default().encoded_bytes;
        push(&mut tables, &packet(1, limit + 1, 0, &[0; 10]));
        assert!(tables.open.is_empty());
    }

    #[test]
    fn the_number_of_remembered_ftis_is_bounded() {
        let mut tables = TableCollector::default();
        let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1 });
        let oti = Oti { transfer_length: 1, symbol_size: 1, scheme };
        for toi in 1..=MAX_FTIS as u128 + 1 {
            tables.remember_fti(Toi(toi), oti);
        }
        assert_eq!(tables.ftis.len(), MAX_FTIS);
    }
}
