//! LCT headers, extensions and payload ids, assembled from RFC 5651 and RFC 5775.

use crate::{codes, flips, hex, truncations};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::{CodeError, EncodingId, Esi, FecScheme, Oti, Sbn};
use fontana_wire::{
    AuthExtension, Cci, ContentEncoding, Extension, FdtExtension, HeaderError, HeaderFields,
    IdWidths, NtpSeconds, Packet, PacketError, ReservedBits, SealField, SealId, SealMode,
    SealedDatagram, SessionSeal, TimeExtension, Toi, Tsi, emit_payload_id, fti,
};
use proptest::prelude::*;

const RAPTORQ: FecScheme =
    FecScheme::RaptorQ(RaptorQ { source_blocks: 3, sub_blocks: 258, alignment: 4 });

fn emitted(fields: &HeaderFields) -> Vec<u8> {
    let mut out = Vec::new();
    fields.emit(&mut out);
    out
}

fn error(datagram: &str) -> PacketError {
    Packet::parse(&hex(datagram)).unwrap_err()
}

#[test]
fn the_senders_header_has_16_bytes_and_20_with_the_payload_id() {
    let fields = HeaderFields {
        cci: Cci::from_u32(0xDEAD_BEEF),
        codepoint: 6,
        ..HeaderFields::new(Tsi(5), Some(Toi::HEAD))
    };
    let mut out = emitted(&fields);
    assert_eq!(out, hex("10a00406 deadbeef 00000005 ffffffff"));
    emit_payload_id(EncodingId(6), Sbn(2), Esi(0x01_0203), &mut out);
    assert_eq!(out.len(), 20);
    out.extend(b"symbol");
    let packet = Packet::parse(&out).unwrap();
    let payload = packet.payload(EncodingId(6)).unwrap().unwrap();
    assert_eq!(
        (payload.sbn, payload.esi, payload.symbol),
        (Sbn(2), Esi(0x01_0203), &b"symbol"[..])
    );
    assert_eq!(packet.header.cci.low32(), 0xDEAD_BEEF);
}

#[test]
fn the_narrowest_header_is_as_wide_as_its_numbers_need() {
    // TSI, TOI, size of the whole header in bytes (flags and CCI take 8).
    let cases: [(u64, Option<u128>, usize); 12] = [
        (0, Some(0), 12),
        (0xFFFF, Some(0xFFFF), 12),
        (0x1_0000, Some(0xFFFF), 16),
        (0xFFFF, Some(0x1_0000), 16),
        (0xFFFF_FFFF, Some(0xFFFF_FFFF), 16),
        (0xFFFF_FFFF, Some(1 << 32), 20),
        (1 << 32, Some(0), 16),
        (0xFFFF, Some((1 << 48) - 1), 16),
        ((1 << 48) - 1, Some(1 << 48), 24),
        ((1 << 48) - 1, Some((1 << 112) - 1), 28),
        (0, None, 12),
        (0xFFFF_FFFF, None, 12),
    ];
    for (tsi, toi, size) in cases {
        let fields = HeaderFields {
            widths: IdWidths::Narrowest,
            ..HeaderFields::new(Tsi(tsi), toi.map(Toi))
        };
        let out = emitted(&fields);
        assert_eq!(out.len(), size, "TSI {tsi:#x}, TOI {toi:x?}");
        let header = Packet::parse(&out).unwrap().header;
        assert_eq!((header.tsi, header.toi), (fields.tsi, fields.toi));
    }
}

#[test]
fn numbers_that_fit_no_field_are_refused_before_anything_is_sent() {
    let ids = |tsi, toi| HeaderFields::new(Tsi(tsi), toi).check();
    assert_eq!(ids((1 << 48) - 1, Some(Toi(1))), Ok(()));
    assert!(matches!(ids(1 << 48, Some(Toi(1))), Err(HeaderError::Ids { .. })));
    assert_eq!(ids(1, Some(Toi::MAX)), Ok(()));
    assert!(matches!(ids(1, Some(Toi(1 << 112))), Err(HeaderError::Ids { .. })));
    assert_eq!(ids(0xFFFF_FFFF, None), Ok(()));
    assert!(matches!(ids(1 << 32, None), Err(HeaderError::Ids { .. })));

    let fdt = |version, instance_id| {
        let fdt = Some(FdtExtension { version, instance_id });
        HeaderFields { fdt, ..HeaderFields::new(Tsi(1), Some(Toi::FDT)) }.check()
    };
    assert_eq!(fdt(15, FdtExtension::MAX_INSTANCE_ID), Ok(()));
    assert!(matches!(fdt(16, 0), Err(HeaderError::Fdt(_))));
    assert!(matches!(fdt(2, 1 << 20), Err(HeaderError::Fdt(_))));

    let length = |transfer_length, scheme| {
        let fti = Some(Oti { transfer_length, symbol_size: 1, scheme });
        HeaderFields { fti, ..HeaderFields::new(Tsi(1), Some(Toi(1))) }.check()
    };
    let no_code = FecScheme::NoCode(NoCode { max_source_block_length: 1 });
    assert_eq!(length((1 << 48) - 1, no_code), Ok(()));
    assert!(matches!(length(1 << 48, no_code), Err(HeaderError::Fti(_))));
    assert_eq!(length((1 << 40) - 1, RAPTORQ), Ok(()));
    assert!(matches!(length(1 << 40, RAPTORQ), Err(HeaderError::Fti(_))));
}

#[test]
fn congestion_control_information_keeps_its_width() {
    for words in 1..=4_u8 {
        let value = u128::MAX >> (128 - 32 * u32::from(words));
        let cci = Cci::new(value, words).unwrap();
        let out = emitted(&HeaderFields { cci, ..HeaderFields::new(Tsi(1), Some(Toi(1))) });
        assert_eq!(out.len(), 12 + 4 * usize::from(words));
        assert_eq!(Packet::parse(&out).unwrap().header.cci, cci);
        if words < 4 {
            assert_eq!(Cci::new(value + 1, words), None);
        }
    }
    assert_eq!(Cci::new(0, 0), None);
    assert_eq!(Cci::new(0, 5), None);
}

#[test]
fn every_extension_is_read_back() {
    let fields = HeaderFields {
        fdt: Some(FdtExtension { version: 2, instance_id: 0xF_FFFF }),
        content_encoding: Some(ContentEncoding::Gzip),
        time: Some(TimeExtension {
            sender_current_time: Some(0xED00_3780_8000_0000),
            expected_residual_time_seconds: Some(60),
            session_last_changed: Some(NtpSeconds(7)),
        }),
        fti: Some(Oti { transfer_length: 0x12_3456_789A, symbol_size: 1400, scheme: RAPTORQ }),
        ..HeaderFields::new(Tsi(1), Some(Toi::FDT))
    };
    let out = emitted(&fields);
    let expected = "10a00f00 00000000 00000001 00000000 c02fffff c1030000 \
                    0205f000 ed003780 80000000 0000003c 00000007 \
                    40041234 56789a00 05780301 02040000";
    assert_eq!(out, hex(expected));
    let header = Packet::parse(&out).unwrap().header;
    assert_eq!(header.extensions.fdt(), fields.fdt);
    assert_eq!(header.extensions.cenc(), Some(3));
    assert_eq!(header.extensions.time(), fields.time);
    let fti = header.extensions.fti().map(|content| fti::parse(EncodingId(6), content));
    assert_eq!(fti, fields.fti.map(Ok));
}

#[test]
fn transmission_information_is_read_in_its_own_length_only() {
    let content = hex("0000000001f4 0000 0040 00000004");
    let no_code = FecScheme::NoCode(NoCode { max_source_block_length: 4 });
    let oti = Oti { transfer_length: 500, symbol_size: 64, scheme: no_code };
    assert_eq!(fti::parse(EncodingId(0), &content), Ok(oti));
    for length in [0, 12, 13, 15, 18] {
        let mut wrong = content.clone();
        wrong.resize(length, 0);
        let expected = fti::FtiError::Length { encoding_id: 0, expected: 14, actual: length };
        assert_eq!(fti::parse(EncodingId(0), &wrong), Err(expected));
    }
    assert_eq!(fti::parse(EncodingId(7), &content), Err(CodeError::EncodingId(7).into()));
}

#[test]
fn unknown_extensions_are_skipped_and_those_of_unknown_meaning_handed_on() {
    // NOP, AUTH with ASID 10, type 65 of one word, type 200, and a NOP of two words.
    let datagram = hex("10a00b00 00000000 00000001 00000001 \
         00010000 0102a5ff 01020304 41010203 c8112233 0002eeee eeeeeeee");
    let packet = Packet::parse(&datagram).unwrap();
    let auth = AuthExtension { asid: 10, content: &hex("a5ff01020304") };
    let expected = [
        Extension::Nop,
        Extension::Auth(auth),
        Extension::Unknown { het: 65, content: &hex("0203") },
        Extension::Unknown { het: 200, content: &hex("112233") },
        Extension::Nop,
    ];
    assert_eq!(packet.header.extensions.into_iter().collect::<Vec<_>>(), expected);
    assert_eq!(packet.header.extensions.auth(), Some(auth));
    assert_eq!(packet.payload(EncodingId(0)), Ok(None));
}

#[test]
fn the_header_must_fit_the_datagram_and_its_fields_the_header() {
    assert_eq!(error(""), PacketError::Truncated { actual: 0 });
    assert_eq!(error("10a004"), PacketError::Truncated { actual: 3 });
    let whole = hex("10a00400 00000000 00000001 00000001");
    assert!(Packet::parse(&whole).is_ok());
    for cut in truncations(&whole).skip(4) {
        let expected = PacketError::HeaderLength { header_length: 16, available: cut.len() };
        assert_eq!(Packet::parse(cut), Err(expected));
    }
    // The same with a length that the datagram holds but that its fields exceed.
    for words in 0..4_u8 {
        let mut short = whole.clone();
        short[2] = words;
        let length = usize::from(words) * 4;
        let expected = PacketError::HeaderLength { header_length: length, available: length };
        assert_eq!(Packet::parse(&short), Err(expected));
    }
    let mut long = whole.clone();
    long[2] = 255;
    assert!(matches!(
        Packet::parse(&long),
        Err(PacketError::HeaderLength { header_length: 1020, .. })
    ));
}

#[test]
fn other_versions_and_packets_without_a_session_are_refused() {
    for version in (0..16).filter(|&version| version != 1) {
        let datagram = format!("{version:x}0a00400 00000000 00000001 00000001");
        assert_eq!(error(&datagram), PacketError::Version(version));
    }
    assert_eq!(error("10200300 00000000 00000001"), PacketError::NoTsi);
}

#[test]
fn extensions_that_do_not_add_up_are_refused() {
    let with = |extensions: &str| {
        let words = hex(extensions).len() / 4 + 4;
        Packet::parse(&hex(&format!("10a0{words:02x}00 00000000 00000001 00000001 {extensions}")))
            .map(|_| ())
    };
    let malformed = |het| Err(PacketError::Extension { het });
    assert_eq!(with("00010000"), Ok(()));
    assert_eq!(with("00000000"), malformed(0), "a length of zero words");
    assert_eq!(with("00020000"), malformed(0), "beyond the header");
    assert_eq!(with("41ff0000"), malformed(65));
    assert_eq!(with("02018000"), malformed(2), "a flag without its word");
    assert_eq!(with("02024000 00000001"), malformed(2), "a fraction without its second");
    assert_eq!(with("02020000 00000001"), Ok(()), "a word for somebody else's flag");
    assert_eq!(with("c0200001 c0200002"), Err(PacketError::RepeatedExtension { het: 192 }));
    assert_eq!(with("40010000 40010000"), Err(PacketError::RepeatedExtension { het: 64 }));
    assert_eq!(with(&"00010000".repeat(16)), Ok(()));
    assert_eq!(with(&"00010000".repeat(17)), Err(PacketError::ExtensionCount { limit: 16 }));
    assert_eq!(with(&"c8000000".repeat(251)), Err(PacketError::ExtensionCount { limit: 16 }));
}

#[test]
fn the_time_words_of_rfc_3451_are_skipped_unless_the_session_is_known_to_have_none() {
    let datagram = hex("10ac0600 00000000 00000001 00000001 00000064 000000c8 0003abcd");
    let header = Packet::parse(&datagram).unwrap().header;
    assert_eq!(header.sender_current_time_milliseconds, Some(100));
    assert_eq!(header.expected_residual_time_milliseconds, Some(200));
    assert_eq!(header.extensions.into_iter().count(), 0);
    // Under RFC 5651 these words are extensions, here malformed ones.
    let strict = Packet::parse_with(&datagram, ReservedBits::Ignored);
    assert_eq!(strict.map(|_| ()), Err(PacketError::Extension { het: 0 }));
    // One flag, one word; then a header without room for it.
    let header = hex("10a40500 00000000 00000001 00000001 000000c8");
    let header = Packet::parse(&header).unwrap().header;
    assert_eq!(header.sender_current_time_milliseconds, None);
    assert_eq!(header.expected_residual_time_milliseconds, Some(200));
    assert!(matches!(
        error("10a40400 00000000 00000001 00000001"),
        PacketError::HeaderLength { header_length: 16, available: 16 }
    ));
}

#[test]
fn a_payload_is_absent_or_has_a_payload_id() {
    let header = hex("10a00400 00000000 00000001 00000001");
    let with = |rest: &str| [header.clone(), hex(rest)].concat();
    assert_eq!(Packet::parse(&header).unwrap().payload(EncodingId(0)), Ok(None));
    for rest in ["00", "0000", "000000"] {
        let datagram = with(rest);
        let expected = PacketError::PayloadId { actual: rest.len() / 2 };
        assert_eq!(Packet::parse(&datagram).unwrap().payload(EncodingId(0)), Err(expected));
    }
    let datagram = with("fffffffe");
    let packet = Packet::parse(&datagram).unwrap();
    let no_code = packet.payload(EncodingId(0)).unwrap().unwrap();
    assert_eq!((no_code.sbn, no_code.esi), (Sbn(0xFFFF), Esi(0xFFFE)));
    assert_eq!(no_code.symbol, b"");
    let raptorq = packet.payload(EncodingId(6)).unwrap().unwrap();
    assert_eq!((raptorq.sbn, raptorq.esi), (Sbn(0xFF), Esi(0xFF_FFFE)));
    let rfc5510 = packet.payload(EncodingId(5)).unwrap().unwrap();
    assert_eq!((rfc5510.sbn, rfc5510.esi), (Sbn(0xFF_FFFF), Esi(0xFE)));
    assert_eq!(packet.payload(EncodingId(7)), Err(PacketError::EncodingId(7)));
    // A word more: the block's length, and 16 bits of the symbol's number.
    assert_eq!(packet.payload(EncodingId(129)), Err(PacketError::PayloadId { actual: 4 }));
    let datagram = with("fffffffe 0040ffff 07");
    let small_block = Packet::parse(&datagram).unwrap().payload(EncodingId(129)).unwrap().unwrap();
    assert_eq!((small_block.sbn, small_block.esi), (Sbn(0xFFFF_FFFE), Esi(0xFFFF)));
    assert_eq!(small_block.symbol, [7]);
}

#[test]
#[should_panic(expected = "no room")]
fn a_symbol_number_that_would_spill_into_the_block_number_is_not_sent() {
    emit_payload_id(EncodingId(6), Sbn(0), Esi(1 << 24), &mut Vec::new());
}

fn reed_solomon(
    code: ReedSolomonCode,
    max_source_block_length: u16,
    max_encoding_symbols: u16,
) -> FecScheme {
    FecScheme::ReedSolomon(ReedSolomon { code, max_source_block_length, max_encoding_symbols })
}

fn header_fields() -> impl Strategy<Value = HeaderFields> {
    let oti = prop_oneof![
        (0..1_u64 << 48, any::<u16>(), any::<u32>()).prop_map(|(length, size, blocks)| Oti {
            transfer_length: length,
            symbol_size: size,
            scheme: FecScheme::NoCode(NoCode { max_source_block_length: blocks }),
        }),
        (0..1_u64 << 40, any::<u16>()).prop_map(|(transfer_length, symbol_size)| Oti {
            transfer_length,
            symbol_size,
            scheme: RAPTORQ,
        }),
        (0..1_u64 << 48, any::<u16>(), any::<[u16; 2]>()).prop_map(
            |(transfer_length, symbol_size, [b, n])| Oti {
                transfer_length,
                symbol_size,
                scheme: match b % 4 {
                    0 => reed_solomon(ReedSolomonCode::Rfc5510, b % 256, n % 256),
                    1 => reed_solomon(ReedSolomonCode::SmallBlock, b, n),
                    2 => reed_solomon(ReedSolomonCode::Cauchy, b, n),
                    _ => reed_solomon(ReedSolomonCode::Cauchy16, b, n),
                },
            },
        ),
        (0..1_u64 << 48, any::<u16>(), codes::schemes()).prop_map(
            |(transfer_length, symbol_size, scheme)| Oti { transfer_length, symbol_size, scheme },
        ),
    ];
    let time = (any::<Option<u64>>(), any::<Option<u32>>(), any::<Option<u32>>());
    let ids = (0..48_u32, any::<u64>(), 0..112_u32, any::<u128>(), any::<bool>());
    let flags = (any::<u8>(), any::<bool>(), any::<bool>(), 1..=4_u8, any::<u128>());
    let fdt = (0..16_u8, 0..1_u32 << 20);
    let cenc = prop_oneof![Just(ContentEncoding::Zlib), Just(ContentEncoding::Gzip)];
    let modes = prop_oneof![Just(SealMode::Authenticated), Just(SealMode::Encrypted)];
    let seal = (any::<[u8; 8]>(), modes, any::<u8>(), 0..1_u64 << 56);
    (
        ids,
        flags,
        prop::option::of(fdt),
        prop::option::of(cenc),
        prop::option::of(time),
        prop::option::of(oti),
        prop::option::of(seal),
    )
        .prop_map(|(ids, flags, fdt, content_encoding, time, fti, seal)| {
            let (tsi_bits, tsi, toi_bits, toi, narrow) = ids;
            let (codepoint, close_session, close_object, words, cci) = flags;
            HeaderFields {
                tsi: Tsi(tsi >> 16 >> (47 - tsi_bits)),
                toi: Some(Toi(toi >> 16 >> (111 - toi_bits))),
                widths: if narrow { IdWidths::Narrowest } else { IdWidths::Fixed32 },
                cci: Cci::new(cci >> (128 - 32 * u32::from(words)), words).unwrap(),
                codepoint,
                close_session,
                close_object,
                fdt: fdt.map(|(version, instance_id)| FdtExtension { version, instance_id }),
                content_encoding,
                time: time.map(|(sender_current_time, residual, changed)| TimeExtension {
                    sender_current_time,
                    expected_residual_time_seconds: residual,
                    session_last_changed: changed.map(NtpSeconds),
                }),
                fti,
                seal: seal.map(|(id, mode, channel, count)| SealField {
                    session: SessionSeal { id: SealId(id), mode },
                    channel,
                    count,
                }),
            }
        })
}

proptest! {
    #[test]
    fn every_header_is_read_back(fields in header_fields(), rest: Vec<u8>) {
        prop_assert_eq!(fields.check(), Ok(()));
        let mut datagram = emitted(&fields);
        let header_length = datagram.len();
        datagram.extend(&rest);
        let packet = Packet::parse(&datagram).unwrap();
        let header = packet.header;
        let id = fields.fti.map_or(EncodingId::NO_CODE, |oti| oti.scheme.profile().encoding_id);
        let read = HeaderFields {
            tsi: header.tsi,
            toi: header.toi,
            widths: fields.widths,
            cci: header.cci,
            codepoint: header.codepoint,
            close_session: header.close_session,
            close_object: header.close_object,
            fdt: header.extensions.fdt(),
            content_encoding: header.extensions.cenc().and_then(ContentEncoding::from_cenc),
            time: header.extensions.time(),
            fti: header.extensions.fti().map(|content| fti::parse(id, content).unwrap()),
            seal: SealedDatagram::find(&datagram).map(|sealed| sealed.field),
        };
        prop_assert_eq!(read, fields);
        let is_encrypted =
            fields.seal.is_some_and(|seal| seal.session.mode == SealMode::Encrypted);
        prop_assert_eq!(header.extensions.are_of_encrypted(), is_encrypted);
        for cut in truncations(&datagram[..header_length]) {
            prop_assert!(Packet::parse(cut).is_err());
        }
    }

    #[test]
    fn payload_ids_are_read_back(
        sbn: u32,
        esi: u32,
        (id, bits) in prop::sample::select(&[(0, 16), (5, 8), (6, 24)][..]),
    ) {
        let (sbn, esi) = (Sbn(sbn >> bits), Esi(esi >> (32 - bits)));
        let mut datagram = emitted(&HeaderFields::new(Tsi(1), Some(Toi(1))));
        emit_payload_id(EncodingId(id), sbn, esi, &mut datagram);
        let payload = Packet::parse(&datagram).unwrap().payload(EncodingId(id)).unwrap().unwrap();
        prop_assert_eq!((payload.sbn, payload.esi), (sbn, esi));
    }

    #[test]
    fn no_flipped_bit_of_a_header_panics(fields in header_fields()) {
        for flipped in flips(&emitted(&fields)) {
            if let Ok(packet) = Packet::parse(&flipped) {
                prop_assert!(packet.header.extensions.into_iter().count() <= 16);
            }
        }
    }
}
