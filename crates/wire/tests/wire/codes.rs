//! Parameters of Tornado and LT (FEC Encoding ID 128) in all formats that carry them.

use crate::{hex, truncations};
use fontana_fec::codes::lt::{Lt, LtCode, Profile};
use fontana_fec::codes::tornado::{StretchError, Tornado, TornadoCode};
use fontana_fec::{CodeError, EncodingId, Esi, FecScheme, Oti, OtiError, Sbn};
use fontana_wire::{
    CongestionControl, ContentKind, Hash, HeadError, HeadRecords, HeaderFields, InstanceId,
    ObjectRef, Packet, SessionHead, Toi, Tsi, UnverifiedHead, emit_payload_id, fti,
    payload_id_size,
};
use proptest::prelude::*;

/// Any scheme of FEC Encoding ID 128, valid or not.
pub(crate) fn schemes() -> impl Strategy<Value = FecScheme> {
    let tornado = (any::<u32>(), 2..=10_u8, any::<u64>()).prop_map(|(length, stretch, seed)| {
        let code = TornadoCode::new(stretch, seed).unwrap();
        FecScheme::Tornado(Tornado { max_source_block_length: length, code })
    });
    let lt = (any::<u32>(), any::<bool>(), any::<u64>(), any::<[u32; 3]>()).prop_map(
        |(max_source_block_length, strict, seed, [spike, ripple, spike_weight])| {
            FecScheme::Lt(Lt {
                max_source_block_length,
                code: LtCode {
                    profile: if strict { Profile::Strict } else { Profile::Fast },
                    seed,
                    spike,
                    ripple,
                    spike_weight,
                },
            })
        },
    );
    prop_oneof![tornado, lt]
}

/// The parameters of the worked example.
pub(crate) const TORNADO: Oti = Oti {
    transfer_length: 20_000_000,
    symbol_size: 1400,
    scheme: FecScheme::Tornado(Tornado { max_source_block_length: 16_000, code: TornadoCode::Z }),
};
pub(crate) const LT: Oti = Oti {
    transfer_length: 20_000_000,
    symbol_size: 1400,
    scheme: FecScheme::Lt(Lt {
        max_source_block_length: 10_000,
        code: LtCode {
            profile: Profile::Fast,
            seed: 7,
            spike: 337,
            ripple: 1_947_071,
            spike_weight: 52_110_373,
        },
    }),
};

/// A head with this transmission information. Only a head exposes the record to this test.
fn head(oti: Oti) -> SessionHead {
    SessionHead {
        instance: InstanceId([0; 16]),
        manifest_version: 1,
        kind: ContentKind::Manifest,
        manifest: ObjectRef { toi: 1, oti, hash: Hash([9; 32]) },
        expires_unix_seconds: None,
        rate_bytes_per_second: None,
        congestion_control: CongestionControl::FixedRate,
        records: HeadRecords::default(),
    }
}

/// The record of transmission information in heads and manifests.
pub(crate) fn record(oti: Oti) -> Vec<u8> {
    let head = head(oti).emit(None);
    head[55..head.len() - 33].to_vec()
}

/// EXT_FTI, type and length included.
pub(crate) fn extension(oti: Oti) -> Vec<u8> {
    let mut header = Vec::new();
    HeaderFields { fti: Some(oti), ..HeaderFields::new(Tsi(1), Some(Toi(1))) }.emit(&mut header);
    header.split_off(16)
}

/// Parses a head with this record.
fn with_record(record: &[u8]) -> Result<Oti, HeadError> {
    let head = head(LT).emit(None);
    let bytes = [&head[..55], record, &head[head.len() - 33..]].concat();
    UnverifiedHead::parse(&bytes).map(|head| head.without_verification().manifest.oti)
}

#[test]
fn the_record_is_as_long_as_its_code_needs() {
    assert_eq!([record(TORNADO).len(), record(LT).len()], [26, 38]);
    for oti in [TORNADO, LT] {
        assert_eq!(with_record(&record(oti)), Ok(oti));
    }
}

#[test]
fn an_unsupported_code_is_an_error_that_names_it() {
    let changed = |oti, at: usize, value| {
        let mut record = record(oti);
        record[at] = value;
        with_record(&record)
    };
    let code = |error: CodeError| Err(HeadError::Code(error));
    let instance = |instance_id| CodeError::InstanceId { encoding_id: 128, instance_id };
    assert_eq!(changed(TORNADO, 0, 130), code(CodeError::EncodingId(130)));
    assert_eq!(changed(TORNADO, 12, 0), code(instance(0)));
    assert_eq!(changed(TORNADO, 12, 3), code(instance(3)));
    // Limits of the stretch factor.
    assert_eq!(changed(TORNADO, 17, 1), code(StretchError { actual: 1 }.into()));
    assert!(changed(TORNADO, 17, 10).is_ok());
    assert_eq!(changed(TORNADO, 17, 11), code(StretchError { actual: 11 }.into()));
    assert!(changed(LT, 17, 1).is_ok());
    assert_eq!(changed(LT, 17, 2), code(CodeError::Profile(2)));
    // A block length of zero, and one that the code does not have.
    let zero = [0; 4];
    let length = |oti: Oti, length: [u8; 4]| {
        let mut record = record(oti);
        record[13..17].copy_from_slice(&length);
        with_record(&record)
    };
    let what = "the maximum source block length";
    assert_eq!(length(LT, zero), Err(HeadError::Oti(OtiError::Zero(what))));
    let long = Oti { transfer_length: 64_001 * 1400, ..TORNADO };
    let error = OtiError::BlockLength { actual: 64_001, limit: 64_000 };
    assert_eq!(length(long, [0xFF; 4]), Err(HeadError::Oti(error)));
    let longest = Oti { transfer_length: 64_000 * 1400, ..TORNADO };
    assert!(length(longest, [0xFF; 4]).is_ok());
}

#[test]
fn the_extension_has_exactly_the_words_of_its_instance() {
    let error = |expected, actual| fti::FtiError::Length { encoding_id: 128, expected, actual };
    for (oti, size) in [(TORNADO, 26), (LT, 38)] {
        let content = extension(oti)[2..].to_vec();
        assert_eq!(content.len(), size);
        assert_eq!(fti::parse(EncodingId(128), &content), Ok(oti));
        for cut in truncations(&content) {
            let expected = if cut.len() < 14 { 14 } else { size };
            assert_eq!(fti::parse(EncodingId(128), cut), Err(error(expected, cut.len())));
        }
        let long = [&content[..], &[0; 4]].concat();
        assert_eq!(fti::parse(EncodingId(128), &long), Err(error(size, size + 4)));
        // The count of words must agree with the extension's.
        let mut other = content.clone();
        other[14] += 1;
        assert_eq!(fti::parse(EncodingId(128), &other), Err(error(size, size)));
    }
    let unknown = hex("000000000000 0009 0040 00000001 01000000");
    let instance = CodeError::InstanceId { encoding_id: 128, instance_id: 9 };
    assert_eq!(fti::parse(EncodingId(128), &unknown), Err(instance.into()));
}

#[test]
fn a_payload_id_has_a_word_for_the_block_and_one_for_the_symbol() {
    let mut datagram = Vec::new();
    HeaderFields { codepoint: 128, ..HeaderFields::new(Tsi(1), Some(Toi(1))) }.emit(&mut datagram);
    let header = datagram.len();
    emit_payload_id(EncodingId(128), Sbn(u32::MAX), Esi(u32::MAX - 1), &mut datagram);
    assert_eq!(datagram.len() - header, payload_id_size(EncodingId(128)));
    datagram.push(7);
    let payload = Packet::parse(&datagram).unwrap().payload(EncodingId(128)).unwrap().unwrap();
    assert_eq!((payload.sbn, payload.esi), (Sbn(u32::MAX), Esi(u32::MAX - 1)));
    assert_eq!(payload.symbol, [7]);
    for length in header + 1..header + 8 {
        assert!(Packet::parse(&datagram[..length]).unwrap().payload(EncodingId(128)).is_err());
    }
}

proptest! {
    #[test]
    fn every_code_is_read_back_from_either_place(scheme in schemes(), length in 0..1_u64 << 48, size: u16) {
        let oti = Oti { transfer_length: length, symbol_size: size, scheme };
        prop_assert_eq!(fti::parse(EncodingId(128), &extension(oti)[2..]), Ok(oti));
        match with_record(&record(oti)) {
            Ok(read) => prop_assert_eq!(read, oti),
            Err(error) => prop_assert_eq!(oti.layout().map(|_| ()), Err(match error {
                HeadError::Oti(error) => error,
                other => return Err(TestCaseError::fail(other.to_string())),
            })),
        }
    }
}
