//! Packets of another implementation: the crate flute 1.11.7.

use crate::{flips, hex, truncations};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptor::Raptor;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::{EncodingId, FecScheme, ObjectLayout, Oti};
use fontana_wire::{
    ContentEncoding, Extension, Fdt, FdtExtension, FdtFile, IdWidths, NtpSeconds, Packet,
    PacketError, Toi, Tsi, emit_payload_id, emit_small_block_payload_id, fti,
};

const VECTORS: &str = include_str!("../data/flute_1.11.7_packets.txt");
const SESSION: Tsi = Tsi(0x1234);
const NOW: u64 = 1_767_225_600;

#[derive(Default)]
struct Case {
    name: String,
    fdt: String,
    packets: Vec<Vec<u8>>,
    close: Vec<u8>,
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in VECTORS.lines() {
        let (kind, rest) = line.split_once(' ').unwrap();
        match kind {
            "CASE" => cases.push(Case { name: rest.to_owned(), ..Case::default() }),
            "FDT" => cases.last_mut().unwrap().fdt = rest.to_owned(),
            "PKT" => cases.last_mut().unwrap().packets.push(hex(rest)),
            "CLOSE" => cases.last_mut().unwrap().close = hex(rest),
            _ => assert_eq!(kind, "#"),
        }
    }
    assert_eq!(cases.len(), 7);
    cases
}

fn object(length: u64) -> Vec<u8> {
    (0..length).map(|i| (i * i + 7 * i + (i >> 8)) as u8).collect()
}

/// Assembles the source symbols of one object and checks that none is missing.
fn collect(packets: &[Packet<'_>], toi: Toi, encoding_id: EncodingId) -> (Oti, Vec<u8>) {
    let mut object: Option<(ObjectLayout, Vec<u8>, u64)> = None;
    for packet in packets.iter().filter(|packet| packet.header.toi == Some(toi)) {
        let oti = fti::parse(encoding_id, packet.header.extensions.fti().unwrap()).unwrap();
        let (layout, bytes, symbols) = object.get_or_insert_with(|| {
            (oti.layout().unwrap(), vec![0; oti.transfer_length as usize], 0)
        });
        assert_eq!(layout.oti(), oti, "every packet says the same");
        let payload = packet.payload(encoding_id).unwrap().unwrap();
        assert!(layout.contains(payload.sbn, payload.esi));
        assert!(payload.symbol.len() <= usize::from(oti.symbol_size));
        if payload.esi.0 < layout.source_symbols(payload.sbn).unwrap() {
            *symbols += 1;
        }
        for piece in layout.symbol_pieces(payload.sbn, payload.esi) {
            let range = piece.in_object.start as usize..piece.in_object.end as usize;
            let length = range.len();
            let from = piece.in_symbol.start;
            bytes[range].copy_from_slice(&payload.symbol[from..from + length]);
        }
    }
    let (layout, bytes, symbols) = object.unwrap();
    assert_eq!(symbols, layout.total_source_symbols());
    (layout.oti(), bytes)
}

#[test]
fn every_packet_has_the_fields_its_sender_put_in() {
    for case in cases() {
        let version = if case.name.contains("v1") { 1 } else { 2 };
        let encoding_id = match case.name.split(' ').nth(1) {
            Some("id1") => 1,
            Some("id2") => 2,
            Some("id5") => 5,
            Some("id6") => 6,
            Some("id129") => 129,
            _ => 0,
        };
        for datagram in &case.packets {
            let header = Packet::parse(datagram).unwrap().header;
            assert_eq!(header.tsi, SESSION);
            assert_eq!(header.codepoint, encoding_id);
            assert_eq!((header.cci.low32(), header.cci.words()), (0, 1));
            assert!(!header.close_session);
            let extensions = header.extensions;
            match header.toi {
                Some(Toi::FDT) => {
                    assert_eq!(extensions.fdt(), Some(FdtExtension { version, instance_id: 1 }));
                    let encoding = extensions.cenc().and_then(ContentEncoding::from_cenc);
                    assert_eq!(encoding, Some(ContentEncoding::Null));
                    let time = extensions.time().unwrap();
                    let ntp = NtpSeconds::from_unix_seconds(NOW);
                    assert_eq!(time.sender_current_time, Some(u64::from(ntp.0) << 32));
                    assert_eq!(extensions.into_iter().count(), 4);
                }
                toi => {
                    assert_eq!(toi, Some(Toi(1)));
                    let mut extensions = extensions.into_iter();
                    assert!(matches!(extensions.next(), Some(Extension::Fti(_))));
                    assert_eq!(extensions.next(), None);
                }
            }
        }
    }
}

#[test]
fn the_session_is_closed_by_a_packet_without_object_or_payload() {
    for case in cases() {
        let packet = Packet::parse(&case.close).unwrap();
        // Here the TSI has 32 bits, in all other cases 16.
        assert_eq!(packet.header.tsi, SESSION);
        assert_eq!(packet.header.toi, None);
        assert!(packet.header.close_session && !packet.header.close_object);
        assert_eq!(packet.payload(EncodingId(0)), Ok(None));
    }
}

#[test]
fn objects_and_tables_put_together_from_the_packets_are_what_was_sent() {
    let mut seen = 0;
    for case in cases() {
        let packets: Vec<_> = case.packets.iter().map(|p| Packet::parse(p).unwrap()).collect();
        let (encoding_id, scheme, length) = match case.name.as_str() {
            name if name.starts_with("nocode") => {
                (0, FecScheme::NoCode(NoCode { max_source_block_length: 4 }), 500)
            }
            name if name.starts_with("raptor ") => (
                1,
                FecScheme::Raptor(Raptor { source_blocks: 2, sub_blocks: 1, alignment: 4 }),
                700,
            ),
            name if name.starts_with("raptorq") => (
                6,
                FecScheme::RaptorQ(RaptorQ { source_blocks: 2, sub_blocks: 1, alignment: 4 }),
                700,
            ),
            name if name.starts_with("rs28 ") => {
                let (id, code) = match name.contains("id5") {
                    true => (5, ReedSolomonCode::Rfc5510),
                    false => (129, ReedSolomonCode::SmallBlock),
                };
                let (max_source_block_length, max_encoding_symbols) = (4, 6);
                let scheme = FecScheme::ReedSolomon(ReedSolomon {
                    code,
                    max_source_block_length,
                    max_encoding_symbols,
                });
                (id, scheme, 500)
            }
            _ => {
                assert!(packets.iter().all(|packet| matches!(
                    packet.payload(EncodingId(packet.header.codepoint)),
                    Err(PacketError::EncodingId(_))
                )));
                continue;
            }
        };
        seen += 1;
        let (oti, bytes) = collect(&packets, Toi(1), EncodingId(encoding_id));
        assert_eq!(oti, Oti { transfer_length: length, symbol_size: 64, scheme });
        assert_eq!(bytes, object(length));
        let (_, fdt) = collect(&packets, Toi::FDT, EncodingId(encoding_id));
        assert_eq!(fdt, case.fdt.as_bytes());
        let fdt = Fdt::parse(&fdt).unwrap();
        assert_eq!(fdt.files[0].oti, Some(oti));
        let closing = packets.iter().filter(|packet| packet.header.close_object).count();
        // With Raptor this crate does not say so.
        let expected = usize::from(encoding_id != 1);
        assert_eq!(closing, expected, "the last packet of the object says so");
    }
    assert_eq!(seen, 6);
}

#[test]
fn the_tables_are_read_whatever_code_they_name() {
    for case in cases() {
        let fdt = Fdt::parse(case.fdt.as_bytes()).unwrap();
        assert_eq!(fdt.expires.to_unix_seconds(NOW), NOW + 3600);
        assert!(!fdt.complete);
        let FdtFile { oti, fec_encoding_id, .. } = fdt.files[0];
        assert_eq!(
            oti.is_some(),
            matches!(fec_encoding_id, Some(0 | 1 | 5 | 6 | 129)),
            "{}",
            case.name
        );
        let length = if case.name.starts_with("raptor") { 700 } else { 500 };
        let expected = FdtFile {
            toi: Toi(1),
            content_location: "file:///a/b.bin".to_owned(),
            content_length: Some(length),
            transfer_length: Some(length),
            content_type: Some("application/octet-stream".to_owned()),
            content_encoding: None,
            content_md5: fdt.files[0].content_md5.clone(),
            fec_encoding_id,
            oti,
        };
        assert!(expected.content_md5.is_some());
        assert_eq!(fdt.files, [expected]);
    }
}

#[test]
fn headers_of_ours_in_the_narrowest_form_are_the_same_bytes_as_theirs() {
    let of_ours =
        |case: &Case| ["id1 ", "id5", "id6", "id129"].iter().any(|id| case.name.contains(id));
    let cases: Vec<Case> = cases().into_iter().filter(of_ours).collect();
    assert_eq!(cases.len(), 4);
    for datagram in cases.iter().flat_map(|case| &case.packets) {
        let header = Packet::parse(datagram).unwrap().header;
        let id = EncodingId(header.codepoint);
        let fields = fontana_wire::HeaderFields {
            widths: IdWidths::Narrowest,
            codepoint: header.codepoint,
            close_object: header.close_object,
            fdt: header.extensions.fdt(),
            content_encoding: header.extensions.cenc().and_then(ContentEncoding::from_cenc),
            time: header.extensions.time(),
            fti: header.extensions.fti().map(|content| fti::parse(id, content).unwrap()),
            ..fontana_wire::HeaderFields::new(header.tsi, header.toi)
        };
        let mut ours = Vec::new();
        fields.emit(&mut ours);
        let payload = Packet::parse(datagram).unwrap().payload(id).unwrap().unwrap();
        if id == EncodingId::SMALL_BLOCK {
            let k = u32::from(datagram[ours.len() + 4]) << 8 | u32::from(datagram[ours.len() + 5]);
            emit_small_block_payload_id(payload.sbn, k, payload.esi, &mut ours);
        } else {
            emit_payload_id(id, payload.sbn, payload.esi, &mut ours);
        }
        ours.extend(payload.symbol);
        assert_eq!(&ours, datagram);
    }
}

/// Parses everything in the datagram; the test fails by a panic.
fn read_all(datagram: &[u8]) {
    if let Ok(packet) = Packet::parse(datagram) {
        for extension in packet.header.extensions {
            if let Extension::Fti(content) = extension {
                for id in [0, 1, 5, 6, 129].map(EncodingId) {
                    let _ = fti::parse(id, content).map(|oti| oti.layout());
                }
            }
        }
        for id in (0..=255).map(EncodingId) {
            let _ = packet.payload(id);
        }
    }
}

#[test]
fn no_truncation_and_no_flipped_bit_of_a_packet_or_table_panics() {
    for case in cases() {
        // One packet of the table, one of the object, and one that closes the session.
        let object = case.packets.last().unwrap();
        for datagram in [&case.packets[0], object, &case.close] {
            truncations(datagram).for_each(read_all);
            flips(datagram).for_each(|flipped| read_all(&flipped));
        }
        for cut in truncations(case.fdt.as_bytes()) {
            assert!(Fdt::parse(cut).is_err());
        }
        for flipped in flips(case.fdt.as_bytes()) {
            let _ = Fdt::parse(&flipped);
        }
    }
}
