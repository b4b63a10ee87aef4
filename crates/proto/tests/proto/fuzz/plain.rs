//! Sessions of other programs, in which nothing is authenticated: FLUTE and FCAST.

use crate::fuzz::packets::{datagram, fields, oti, plain_oti, symbols};
use crate::fuzz::{SEQUENCES, advance, settle, small_config};
use crate::support::world::{ReceiverDriver, TSI, noise, source};
use bolero::check;
use fontana_fec::Oti;
use fontana_proto::{Expectation, Instant, MetadataMode, ReceiverConfig};
use fontana_testing::Script;
use fontana_wire::{
    CarouselInstance, CompoundHeader, CompoundMetadata, ContentEncoding, Equivalence, Fdt,
    FdtExtension, FdtFile, FluteVersion, NtpSeconds, Toi, encode,
};

fn config(metadata: MetadataMode) -> ReceiverConfig {
    let expectation = Expectation { tsi: Some(TSI), ..Expectation::default() };
    ReceiverConfig { metadata, expectation, ..small_config() }
}

/// Files at a time: fewer than a table of a few packets names.
const MOST_FILES: usize = 3;

/// The bytes of the file with this number: a few symbols.
fn file(toi: u8) -> Vec<u8> {
    noise(usize::from(toi) * 37 % 400, toi.into())
}

fn table(script: &mut Script<'_>) -> Fdt {
    let mut files: Vec<FdtFile> = Vec::new();
    for _ in 0..script.below(6) {
        let toi = 1 + script.below(12);
        let length = file(toi).len() as u64;
        let toi = if script.once_in(32) { Toi::HEAD } else { Toi(toi.into()) };
        if files.iter().any(|file| file.toi == toi) {
            continue;
        }
        files.push(FdtFile {
            toi,
            content_location: format!("{}/{}", script.below(3), toi.0),
            content_length: script.once_in(2).then_some(length),
            transfer_length: script.once_in(2).then_some(length),
            fec_encoding_id: script.once_in(4).then(|| script.u8()),
            oti: match script.below(4) {
                0 => None,
                1 => Some(oti(script, length)),
                _ => Some(plain_oti(length as usize)),
            },
            ..FdtFile::default()
        });
    }
    let expires = NtpSeconds(if script.once_in(4) { script.u32() } else { u32::MAX >> 1 });
    Fdt { expires, complete: script.once_in(8), files }
}

/// An object of a control object's kind, in packets.
struct Sent {
    toi: Toi,
    oti: Oti,
    symbols: Vec<Vec<u8>>,
    fdt: Option<FdtExtension>,
    encoding: Option<ContentEncoding>,
}

impl Sent {
    fn of(toi: Toi, bytes: &[u8]) -> Self {
        let (oti, symbols) = (plain_oti(bytes.len()), symbols(bytes));
        Self { toi, oti, symbols, fdt: None, encoding: None }
    }

    fn table(script: &mut Script<'_>) -> Self {
        let version = if script.once_in(4) { FluteVersion::V1 } else { FluteVersion::V2 };
        let mut bytes = table(script).emit(version);
        let mut encoding = None;
        if script.once_in(3) {
            let coded = *script.pick(&[
                ContentEncoding::Zlib,
                ContentEncoding::Deflate,
                ContentEncoding::Gzip,
            ]);
            let mut compressed = Vec::new();
            encode(coded, &mut &bytes[..], &mut compressed).unwrap();
            bytes = compressed;
            encoding = Some(coded);
        }
        if script.once_in(4) && !bytes.is_empty() {
            let at = usize::from(script.u16()) % bytes.len();
            bytes[at] ^= script.u8();
        }
        let instance_id = u32::from(script.below(4));
        let fdt = Some(FdtExtension { version: version.number(), instance_id });
        Self { fdt, encoding, ..Self::of(Toi::FDT, &bytes) }
    }

    /// One packet, right or not.
    fn packet(&self, script: &mut Script<'_>) -> Vec<u8> {
        let mut fields = fields(self.toi, self.oti);
        (fields.fdt, fields.content_encoding) = (self.fdt, self.encoding);
        if script.once_in(8) {
            fields.fti = None;
        }
        if script.once_in(16) {
            fields.fti = Some(oti(script, self.oti.transfer_length));
        }
        if script.once_in(32) {
            fields.content_encoding = Some(ContentEncoding::Gzip);
        }
        if script.once_in(32) {
            fields.codepoint = script.u8();
        }
        if script.once_in(32) {
            (fields.close_session, fields.close_object) = (script.once_in(2), script.once_in(2));
        }
        let esi = usize::from(script.u8()) % self.symbols.len().max(1);
        let mut symbol = self.symbols.get(esi).cloned().unwrap_or_default();
        if script.once_in(16) {
            symbol.resize(script.u8().into(), 7);
        }
        let (sbn, esi) =
            if script.once_in(32) { (script.u32(), script.u32()) } else { (0, esi as u32) };
        datagram(&fields, sbn, esi, &symbol)
    }
}

#[test]
fn any_flute_session() {
    check!().with_iterations(SEQUENCES).for_each(|input: &[u8]| {
        let mut script = Script::new(input);
        let mut config = config(MetadataMode::Flute);
        config.limits.max_files = MOST_FILES;
        let mut receiver = ReceiverDriver::new(config, 0.0, 1);
        let mut now = Instant::ZERO;
        settle(&mut receiver, now);
        let mut current = Sent::table(&mut script);
        for _ in 0..Script::STEPS {
            now = advance(&mut script, now);
            match script.below(16) {
                0 => current = Sent::table(&mut script),
                1..6 => {
                    let toi = 1 + script.below(12);
                    current = Sent::of(Toi(toi.into()), &file(toi));
                }
                6 if script.once_in(4) => _ = receiver.endpoint.conclude(),
                _ => {}
            }
            let from = source(1 + u8::from(script.once_in(16)));
            for _ in 0..1 + script.below(8) {
                let packet = current.packet(&mut script);
                receiver.hear(now, from, &packet);
            }
            settle(&mut receiver, now);
            let _ = receiver.endpoint.table_status();
            // A complete file counts no more: sessions without an end announce others.
            assert!(receiving(&receiver) <= MOST_FILES, "more files at a time than the limit");
        }
    });
}

/// The number of files, of all their versions, that are being received.
fn receiving(receiver: &ReceiverDriver) -> usize {
    let versions = (1..=12).flat_map(|toi| (0..16).map(move |version| Toi(toi | version << 112)));
    let is_open = |&toi: &Toi| {
        receiver.endpoint.object_progress(toi).is_some() && !receiver.committed().contains(&toi)
    };
    versions.filter(is_open).count()
}

/// Objects whose headers name anything, among the descriptors of carousels.
fn compound(script: &mut Script<'_>) -> Vec<u8> {
    if script.once_in(3) {
        let range =
            |first: u8, more: u8| Toi(first.into())..=Toi(u128::from(first) + u128::from(more));
        let objects = (0..script.below(4)).map(|i| range(i * 8, script.below(6))).collect();
        let equivalence = |toi: u8| Equivalence {
            toi: Toi(u128::from(toi) + 40),
            first_toi: Toi(script.below(12).into()),
            first_instance: script.below(3).into(),
        };
        let equivalences = (0..2).map(equivalence).collect();
        let id = script.once_in(2).then(|| script.below(4).into());
        let is_complete = script.once_in(3);
        return CarouselInstance { is_complete, id, objects, equivalences }.emit();
    }
    let toi = 1 + script.below(12);
    let metadata = CompoundMetadata {
        content_location: Some(format!("{toi}")),
        content_length: script.once_in(2).then(|| script.u8().into()),
        ..CompoundMetadata::default()
    };
    CompoundHeader::Object(metadata).with_data(&file(toi))
}

#[test]
fn any_fcast_session() {
    check!().with_iterations(SEQUENCES).for_each(|input: &[u8]| {
        let mut script = Script::new(input);
        let mut receiver = ReceiverDriver::new(config(MetadataMode::Fcast), 0.0, 1);
        receiver.runner.reads_descriptors = true;
        let mut now = Instant::ZERO;
        settle(&mut receiver, now);
        let mut current = Sent::of(Toi(1), &compound(&mut script));
        for _ in 0..Script::STEPS {
            now = advance(&mut script, now);
            if script.once_in(3) {
                let toi = Toi(script.below(14).into());
                let mut bytes = compound(&mut script);
                if script.once_in(8) {
                    bytes.truncate(script.u8().into());
                }
                current = Sent::of(toi, &bytes);
            }
            let from = source(1 + u8::from(script.once_in(16)));
            for _ in 0..1 + script.below(8) {
                let packet = current.packet(&mut script);
                receiver.hear(now, from, &packet);
            }
            settle(&mut receiver, now);
        }
        assert!(receiver.committed().len() <= 8, "more objects than the limit");
    });
}
