//! A plain FLUTE sender, and a receiver that hears it.

use crate::support::world::{
    NOW_UNIX, ReceiverDriver, T, TSI, md5_of, noise, receiver_config, source,
};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptor::Raptor;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::{EncodingId, Esi, FecScheme, Oti, Sbn};
use fontana_proto::memory::{MemoryContent, append_symbol};
use fontana_proto::{
    BlockId, Expectation, Instant, MetadataMode, ReceiverConfig, ReceiverEvent, TableStatus,
    TableWarning,
};
use fontana_wire::{
    Fdt, FdtExtension, FdtFile, FluteVersion, HeaderFields, NtpSeconds, Toi, emit_payload_id,
};
use std::time::Duration;

/// The time between two packets.
pub(crate) const GAP: Duration = Duration::from_millis(5);

/// The codes that other programs know.
pub(crate) fn schemes() -> [FecScheme; 4] {
    [
        FecScheme::NoCode(NoCode { max_source_block_length: 4 }),
        FecScheme::ReedSolomon(ReedSolomon {
            code: ReedSolomonCode::Rfc5510,
            max_source_block_length: 4,
            max_encoding_symbols: 6,
        }),
        FecScheme::Raptor(Raptor { source_blocks: 1, sub_blocks: 1, alignment: 4 }),
        FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 }),
    ]
}

/// A file that is sent.
#[derive(Clone, Debug)]
pub(crate) struct SentFile {
    pub(crate) toi: u128,
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) scheme: FecScheme,
    pub(crate) has_md5: bool,
    /// Whether its packets have EXT_FTI, and the table does not.
    pub(crate) has_fti: bool,
}

impl SentFile {
    /// A file with an MD5, without a code.
    pub(crate) fn new(toi: u128, name: &'static str, length: usize, seed: u64) -> Self {
        let (bytes, scheme) = (noise(length, seed), schemes()[0]);
        Self { toi, name, bytes, scheme, has_md5: true, has_fti: false }
    }

    pub(crate) fn without_md5(self) -> Self {
        Self { has_md5: false, ..self }
    }

    fn oti(&self) -> Oti {
        let transfer_length = self.bytes.len() as u64;
        Oti { transfer_length, symbol_size: T, scheme: self.scheme }
    }

    /// Its entry in a table.
    pub(crate) fn described(&self) -> FdtFile {
        FdtFile {
            toi: Toi(self.toi),
            content_location: self.name.to_owned(),
            content_length: Some(self.bytes.len() as u64),
            content_md5: self.has_md5.then(|| md5_of(&self.bytes)),
            oti: (!self.has_fti).then(|| self.oti()),
            ..FdtFile::default()
        }
    }

    /// Its packets: source symbols, and a few repair symbols.
    pub(crate) fn packets(&self) -> Vec<Vec<u8>> {
        let (oti, toi) = (self.oti(), Toi(self.toi));
        let layout = oti.layout().unwrap();
        let mut content = MemoryContent::default();
        content.insert(toi, layout, self.bytes.clone());
        let codepoint = oti.scheme.profile().encoding_id.0;
        let fti = self.has_fti.then_some(oti);
        let fields = HeaderFields { codepoint, fti, ..HeaderFields::new(TSI, Some(toi)) };
        let mut packets = Vec::new();
        for sbn in (0..layout.block_count()).map(Sbn) {
            let encoded = content.encode(BlockId { toi, sbn }).unwrap();
            let k = layout.source_symbols(sbn).unwrap();
            let repair = if codepoint == EncodingId::NO_CODE.0 { 0 } else { 2 };
            for esi in (0..k + repair).map(Esi).filter(|&esi| layout.contains(sbn, esi)) {
                let mut packet = Vec::new();
                fields.emit(&mut packet);
                emit_payload_id(EncodingId(codepoint), sbn, esi, &mut packet);
                append_symbol(&encoded, esi, &mut packet);
                packets.push(packet);
            }
        }
        packets
    }
}

/// The packets of a table.
pub(crate) fn table(instance: u32, files: &[SentFile], complete: bool) -> Vec<Vec<u8>> {
    let files = files.iter().map(SentFile::described).collect();
    table_of(instance, &Fdt { expires: expires_in(3600), complete, files })
}

pub(crate) fn expires_in(seconds: i64) -> NtpSeconds {
    NtpSeconds::from_unix_seconds(NOW_UNIX.saturating_add_signed(seconds))
}

/// The packets of any table.
pub(crate) fn table_of(instance_id: u32, table: &Fdt) -> Vec<Vec<u8>> {
    packets_of(instance_id, &table.emit(FluteVersion::V1))
}

/// The packets of a table in any words.
pub(crate) fn xml_table(instance_id: u32, xml: &str) -> Vec<Vec<u8>> {
    packets_of(instance_id, xml.as_bytes())
}

fn packets_of(instance_id: u32, bytes: &[u8]) -> Vec<Vec<u8>> {
    let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 64 });
    let oti = Oti { transfer_length: bytes.len() as u64, symbol_size: 256, scheme };
    let fields = HeaderFields {
        fdt: Some(FdtExtension { version: 1, instance_id }),
        fti: Some(oti),
        ..HeaderFields::new(TSI, Some(Toi::FDT))
    };
    let symbols = bytes.chunks(256).zip(0..);
    let packet = |(symbol, esi): (&[u8], u32)| {
        let mut packet = Vec::new();
        fields.emit(&mut packet);
        emit_payload_id(EncodingId::NO_CODE, Sbn(0), Esi(esi), &mut packet);
        packet.extend_from_slice(symbol);
        packet
    };
    symbols.map(packet).collect()
}

/// All packets of a pass of a carousel.
pub(crate) fn pass(instance: u32, files: &[SentFile], complete: bool) -> Vec<Vec<u8>> {
    let content = files.iter().flat_map(SentFile::packets);
    table(instance, files, complete).into_iter().chain(content).collect()
}

/// A receiver of plain FLUTE, and the time.
pub(crate) struct Listener {
    pub(crate) receiver: ReceiverDriver,
    pub(crate) now: Instant,
}

impl Listener {
    pub(crate) fn new() -> Self {
        Self::configured(|config| config)
    }

    pub(crate) fn configured(change: impl FnOnce(ReceiverConfig) -> ReceiverConfig) -> Self {
        let expectation = Expectation { tsi: Some(TSI), ..Expectation::default() };
        let config =
            ReceiverConfig { metadata: MetadataMode::Flute, expectation, ..receiver_config() };
        let mut receiver = ReceiverDriver::new(change(config), 0.0, 1);
        receiver.timeout(Instant::ZERO);
        Self { receiver, now: Instant::ZERO }
    }

    pub(crate) fn hear(&mut self, packet: &[u8]) {
        self.now = self.now + GAP;
        self.receiver.timeout(self.now);
        self.receiver.maybe_hear(self.now, source(1), packet);
        self.receiver.timeout(self.now);
    }

    pub(crate) fn hear_all(&mut self, packets: &[Vec<u8>]) {
        packets.iter().for_each(|packet| self.hear(packet));
    }

    /// Hears these packets again and again, so many seconds, or until everything is complete.
    pub(crate) fn repeat(&mut self, packets: &[Vec<u8>], seconds: u64) {
        let until = self.now + Duration::from_secs(seconds);
        while self.now < until && self.receiver.complete_at.is_none() {
            self.hear_all(packets);
        }
    }

    pub(crate) fn table_status(&self) -> TableStatus {
        self.receiver.endpoint.table_status()
    }

    /// The bytes of the file with a name.
    pub(crate) fn file(&self, name: &str) -> Option<&[u8]> {
        self.receiver.runner.files.bytes_of(name)
    }

    pub(crate) fn has(&self, file: &SentFile) -> bool {
        self.file(file.name) == Some(&file.bytes)
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
        self.receiver.timeout(self.now);
    }

    /// What was reported of files.
    pub(crate) fn events(&self) -> Vec<&ReceiverEvent> {
        let is_of_block = |event: &&ReceiverEvent| {
            matches!(event, ReceiverEvent::BlockSolved { .. } | ReceiverEvent::BlockVerified { .. })
        };
        self.receiver.events.iter().filter(|event| !is_of_block(event)).collect()
    }

    /// The number of events of a kind.
    pub(crate) fn count(&self, kind: impl Fn(&ReceiverEvent) -> bool) -> usize {
        self.receiver.events.iter().filter(|event| kind(event)).count()
    }

    /// The number of objects that were dropped.
    pub(crate) fn dropped(&self) -> usize {
        self.count(|event| matches!(event, ReceiverEvent::ObjectDropped { .. }))
    }

    /// The number of warnings that the sender was restarted.
    pub(crate) fn restarts(&self) -> usize {
        self.count(|event| matches!(event, ReceiverEvent::TableWarning(TableWarning::Restarted)))
    }

    /// Ends the session if it has nothing more to receive.
    pub(crate) fn conclude(&mut self) -> bool {
        let concluded = self.receiver.endpoint.conclude();
        self.receiver.timeout(self.now);
        concluded && self.receiver.complete_at.is_some()
    }
}
