//! The file delivery tables of one plain FLUTE session, while they arrive.

use crate::event::TableStatus;
use crate::receiver::collector::Collector;
use crate::time::Instant;
use fontana_fec::{EncodingId, Oti};
use fontana_wire::{
    BlockHasher, ContentEncoding, Fdt, FdtError, FdtExtension, FdtLimits, FdtReading, Hash,
    InvalidEntry, Packet, Payload, Toi, fti,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Collects the tables of a session, and what headers say of files that no table has named yet.
#[derive(Debug, Default)]
pub(in crate::receiver) struct TableCollector {
    open: BTreeMap<u32, Instance>,
    /// Instances that were read since the sender started, by their numbers.
    read: BTreeMap<u32, ReadInstance>,
    /// The number of the instance that was read last.
    last: Option<u32>,
    /// That of the one before it.
    previous: Option<u32>,
    /// The number of the instance that was received last as a whole.
    heard: Option<u32>,
    headers: BTreeMap<Toi, InBand>,
    /// What is known of tables that are neither read nor collected.
    noted: TableStatus,
}

/// What the headers of packets of a file say of it.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::receiver) struct InBand {
    /// EXT_FTI.
    pub(in crate::receiver) fti: Option<Oti>,
    /// EXT_CENC, if it is compressed.
    pub(in crate::receiver) encoding: Option<ContentEncoding>,
}

/// A table that is not complete.
#[derive(Debug)]
struct Instance {
    collector: Collector,
    encoding: ContentEncoding,
}

/// A table that was read.
#[derive(Debug)]
struct ReadInstance {
    digest: Hash,
    /// The last time at which all of it had arrived.
    heard_at: Instant,
    /// When it expires, in Unix seconds.
    expires: u64,
}

/// A table, when it is complete and was not read before.
#[derive(Debug)]
pub(in crate::receiver) struct Table {
    /// Its number (FDT Instance ID).
    pub(in crate::receiver) instance: u32,
    /// Its content.
    pub(in crate::receiver) fdt: Fdt,
    /// Its entries that describe no file.
    pub(in crate::receiver) invalid: Vec<InvalidEntry>,
    /// Its number shows that the sender was restarted: another table had it, or it is lower than
    /// the last one.
    pub(in crate::receiver) shows_restart: bool,
}

/// Instances that are collected at the same time. An instance takes a few packets, and an honest
/// sender sends one after another.
const MAX_OPEN_INSTANCES: usize = 4;
/// Files whose headers are remembered before a table names them. Later packets of other files
/// repeat theirs.
const MAX_HEADERS: usize = 256;

/// Whether the number of an instance is lower than another one. Numbers have 20 bits, and wrap.
fn is_lower(instance: u32, than: u32) -> bool {
    const COUNT: u32 = FdtExtension::MAX_INSTANCE_ID + 1;
    let ahead = than.wrapping_sub(instance) & FdtExtension::MAX_INSTANCE_ID;
    ahead != 0 && ahead < COUNT / 2
}

impl TableCollector {
    /// Instances that were read and are remembered. A sender may repeat several, which complement
    /// each other; one that was forgotten is read again.
    pub(in crate::receiver) const MAX_READ: usize = 1024;

    /// Takes a packet of a table. The table, when it is complete and was not read before.
    pub(in crate::receiver) fn on_symbol(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
        payload: &Payload<'_>,
        limits: &FdtLimits,
    ) -> Option<Result<Table, FdtError>> {
        let extensions = packet.header.extensions;
        let Some(FdtExtension { instance_id: id, .. }) = extensions.fdt() else {
            self.note(TableStatus::WithoutFdtExtension);
            return None;
        };
        let encoding = ContentEncoding::from_cenc(extensions.cenc().unwrap_or(0))?;
        let oti = match extensions.fti() {
            Some(content) => fti::parse(EncodingId(packet.header.codepoint), content).ok(),
            None => self.open.get(&id).map(|instance| instance.collector.oti()),
        };
        let Some(oti) = oti else {
            self.note(TableStatus::WithoutGeometry);
            return None;
        };
        let &Payload { sbn, esi, symbol } = payload;
        // Other parameters or symbols under a known number: the sender was restarted.
        let is_of = |own: &Instance| {
            let collector = &own.collector;
            (collector.oti(), own.encoding) == (oti, encoding)
                && !collector.contradicts(sbn, esi, symbol)
        };
        if !self.open.get(&id).is_some_and(is_of) {
            let collector = Collector::new(oti, limits.encoded_bytes)?;
            while self.open.len() >= MAX_OPEN_INSTANCES {
                self.open.pop_first();
            }
            self.open.insert(id, Instance { collector, encoding });
        }
        let bytes = self.open.get_mut(&id)?.collector.push(sbn, esi, symbol)?;
        self.open.remove(&id);
        self.heard = Some(id);
        let digest = digest(encoding, &bytes);
        let known = self.read.get_mut(&id);
        if let Some(known) = known.filter(|known| known.digest == digest) {
            known.heard_at = now;
            return None;
        }
        let shows_restart =
            self.read.contains_key(&id) || self.last.is_some_and(|last| is_lower(id, last));
        let read = Fdt::read(encoding, &bytes, limits);
        Some(read.map(|FdtReading { fdt, invalid }| {
            while self.read.len() >= Self::MAX_READ {
                self.read.pop_first();
            }
            self.read.insert(id, ReadInstance { digest, heard_at: now, expires: 0 });
            self.previous = self.last.replace(id);
            Table { instance: id, fdt, invalid, shows_restart }
        }))
    }

    /// The sender was restarted: its instances begin with this one.
    pub(in crate::receiver) fn begin_again(&mut self, instance: u32) {
        self.read.retain(|&id, _| id == instance);
        self.open.clear();
        (self.last, self.previous) = (Some(instance), None);
    }

    /// Reads an instance again when it comes again.
    pub(in crate::receiver) fn read_again(&mut self, instance: u32) {
        self.read.remove(&instance);
    }

    /// Reads an instance again when it comes again: it is of no use now.
    pub(in crate::receiver) fn forget(&mut self, instance: u32) {
        self.read_again(instance);
        if self.last == Some(instance) && self.previous.is_some() {
            self.last = self.previous;
        }
    }

    /// Reads all instances again when they come again.
    pub(in crate::receiver) fn read_all_again(&mut self) {
        self.read.clear();
    }

    /// The last time at which all of an instance had arrived; `None` if it is not known.
    pub(in crate::receiver) fn heard_at(&self, instance: u32) -> Option<Instant> {
        self.read.get(&instance).map(|read| read.heard_at)
    }

    /// Notes when an instance that was read expires, in Unix seconds.
    pub(in crate::receiver) fn set_expiry(&mut self, instance: u32, expires: u64) {
        if let Some(read) = self.read.get_mut(&instance) {
            read.expires = expires;
        }
    }

    /// Whether the instance that was received last has not expired, and was received `within` this
    /// time.
    pub(in crate::receiver) fn hears_valid(
        &self,
        now: Instant,
        unix_seconds: u64,
        within: Duration,
    ) -> bool {
        let is_valid = |read: &ReadInstance| {
            read.expires >= unix_seconds && now.saturating_since(read.heard_at) <= within
        };
        self.heard.and_then(|id| self.read.get(&id)).is_some_and(is_valid)
    }

    /// Notes what explains why no table is read.
    pub(in crate::receiver) fn note(&mut self, status: TableStatus) {
        self.noted = self.noted.max(status);
    }

    /// How much was received of the tables.
    pub(in crate::receiver) fn status(&self) -> TableStatus {
        if self.last.is_some() {
            // What keeps its files from being received.
            return self.noted.max(TableStatus::Complete);
        }
        let open = self.open.values().map(|Instance { collector, .. }| TableStatus::Incomplete {
            received: collector.received(),
            source_symbols: collector.source_symbols(),
        });
        open.fold(self.noted, TableStatus::max)
    }

    /// Remembers what a header of a file says.
    pub(in crate::receiver) fn remember(&mut self, toi: Toi, InBand { fti, encoding }: InBand) {
        if (fti.is_some() || encoding.is_some())
            && (self.headers.len() < MAX_HEADERS || self.headers.contains_key(&toi))
        {
            let known = self.headers.entry(toi).or_default();
            (known.fti, known.encoding) = (fti.or(known.fti), encoding.or(known.encoding));
        }
    }

    /// Takes what the headers of a file said.
    pub(in crate::receiver) fn take_in_band(&mut self, toi: Toi) -> InBand {
        self.headers.remove(&toi).unwrap_or_default()
    }
}

/// A digest of a table as it was sent.
fn digest(encoding: ContentEncoding, bytes: &[u8]) -> Hash {
    let mut hasher = BlockHasher::new();
    hasher.update(encoding.name().as_bytes());
    hasher.update(bytes);
    hasher.finalize()
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

    fn push(tables: &mut TableCollector, packet: &[u8]) -> Option<Result<Table, FdtError>> {
        let packet = Packet::parse(packet).unwrap();
        let payload = packet.payload(EncodingId::NO_CODE).unwrap().unwrap();
        tables.on_symbol(Instant::ZERO, &packet, &payload, &FdtLimits::default())
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

    /// Reads a table. Whether it shows a restart; `None` if it was read before.
    fn read(tables: &mut TableCollector, id: u32, table: &[u8]) -> Option<bool> {
        let packets = instance(id, table);
        let mut read = packets.iter().filter_map(|packet| push(tables, packet));
        let shows_restart = read.next()?.unwrap().shows_restart;
        assert!(read.next().is_none());
        Some(shows_restart)
    }

    /// Numbers wrap after 20 bits, and a sender that starts again may begin with any.
    #[test]
    fn a_table_with_a_lower_number_is_read_and_shows_a_restart() {
        let (mut tables, table) = (TableCollector::default(), table());
        let last = FdtExtension::MAX_INSTANCE_ID;
        for (id, shows) in [(last, false), (0, false), (7, false), (3, true)] {
            assert_eq!(read(&mut tables, id, &table), Some(shows), "{id}");
        }
        for id in [0, 3, 7, last] {
            assert_eq!(read(&mut tables, id, &table), None, "{id}");
        }
        tables.begin_again(3);
        assert_eq!(read(&mut tables, 3, &table), None);
        assert_eq!(read(&mut tables, 7, &table), Some(false));
    }

    #[test]
    fn another_table_under_a_known_number_shows_a_restart() {
        let (mut tables, table) = (TableCollector::default(), table());
        assert_eq!(read(&mut tables, 1, &table), Some(false));
        let other = String::from_utf8(table.clone()).unwrap().replace("\"a\"", "\"b\"");
        assert_eq!(read(&mut tables, 1, other.as_bytes()), Some(true));
        assert_eq!(read(&mut tables, 1, other.as_bytes()), None);
        tables.forget(1);
        assert_eq!(read(&mut tables, 1, other.as_bytes()), Some(false));
    }

    /// The sender is restarted when some symbols of its table have arrived.
    #[test]
    fn symbols_of_two_tables_are_not_mixed() {
        let (mut tables, table) = (TableCollector::default(), table());
        let other = String::from_utf8(table.clone()).unwrap().replace("TOI=\"1\"", "TOI=\"2\"");
        let (of_first, of_other) = (instance(1, &table), instance(1, other.as_bytes()));
        let at = of_first.iter().zip(&of_other).position(|(a, b)| a != b).unwrap();
        push(&mut tables, &of_first[at]);
        let read = of_other.iter().chain(&of_other).find_map(|packet| push(&mut tables, packet));
        assert_eq!(read.unwrap().unwrap().fdt.files[0].toi, Toi(2));
    }

    #[test]
    fn the_number_of_remembered_instances_is_bounded() {
        let (mut tables, table) = (TableCollector::default(), table());
        for id in 0..TableCollector::MAX_READ as u32 + 5 {
            assert_eq!(read(&mut tables, id, &table), Some(false));
        }
        assert_eq!(tables.read.len(), TableCollector::MAX_READ);
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
    fn the_number_of_remembered_headers_is_bounded() {
        let mut tables = TableCollector::default();
        let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1 });
        let oti = Oti { transfer_length: 1, symbol_size: 1, scheme };
        for toi in 1..=MAX_HEADERS as u128 + 1 {
            tables.remember(Toi(toi), InBand { fti: Some(oti), encoding: None });
        }
        assert_eq!(tables.headers.len(), MAX_HEADERS);
        tables.remember(Toi(1), InBand { fti: None, encoding: Some(ContentEncoding::Gzip) });
        let first = tables.take_in_band(Toi(1));
        assert_eq!((first.fti, first.encoding), (Some(oti), Some(ContentEncoding::Gzip)));
    }
}
