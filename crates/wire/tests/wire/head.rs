//! The session head: one encoding, and three ways to verify it.

use crate::{congestion, flips, truncations};
use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{CodeError, FecScheme, Oti, OtiError};
use fontana_wire::{
    AnnouncedSchedule, ClaimedVersion, CongestionControl, ContentKind, FlidSl, Hash, HeadError,
    HeadRecords, InstanceId, LayerRates, LayerSymbols, ObjectRef, RecordError, Rlc, SecretKey,
    SessionHead, UnverifiedHead,
};
use proptest::prelude::*;
use std::num::NonZeroU64;

pub(crate) fn sample() -> SessionHead {
    SessionHead {
        instance: InstanceId([0x11; 16]),
        manifest_version: 3,
        kind: ContentKind::Manifest,
        manifest: ObjectRef {
            toi: 0xFFFF_FFFE,
            oti: Oti {
                transfer_length: 1000,
                symbol_size: 1380,
                scheme: FecScheme::RaptorQ(RaptorQ {
                    source_blocks: 1,
                    sub_blocks: 1,
                    alignment: 4,
                }),
            },
            hash: Hash([0x22; 32]),
        },
        expires_unix_seconds: NonZeroU64::new(1_800_000_000),
        rate_bytes_per_second: NonZeroU64::new(12_500_000),
        congestion_control: CongestionControl::FixedRate,
        records: HeadRecords::default(),
    }
}

fn publisher() -> SecretKey {
    SecretKey::from_seed(&[7; 32])
}

#[test]
fn a_head_has_103_bytes_and_199_when_it_is_signed() {
    assert_eq!(sample().emit(None).len(), 103);
    assert_eq!(sample().emit(Some(&publisher())).len(), SessionHead::MAX_SIZE);
    assert_eq!(SessionHead::MAX_SIZE, 199);
}

#[test]
fn the_version_that_a_head_claims_is_read_without_the_rest() {
    let bytes = sample().emit(Some(&publisher()));
    let SessionHead { instance, manifest_version, .. } = sample();
    let claimed = Some(ClaimedVersion { instance, manifest_version });
    assert_eq!(UnverifiedHead::claimed_version(&bytes), claimed);
    assert_eq!(UnverifiedHead::claimed_version(&bytes[..32]), claimed);
    for cut in 0..32 {
        assert_eq!(UnverifiedHead::claimed_version(&bytes[..cut]), None);
    }
    for at in 0..8 {
        let mut other = bytes.clone();
        other[at] ^= 1;
        assert_eq!(UnverifiedHead::claimed_version(&other), None);
    }
}

#[test]
fn a_signed_head_is_verified_with_its_publishers_key_only() {
    let bytes = sample().emit(Some(&publisher()));
    let head = UnverifiedHead::parse(&bytes).unwrap();
    assert_eq!(head.claimed_signer(), Some(publisher().public_key()));
    assert_eq!(head.clone().verify(&publisher().public_key()), Ok(sample()));
    let other = SecretKey::from_seed(&[8; 32]).public_key();
    let actual = publisher().public_key();
    assert_eq!(head.verify(&other), Err(HeadError::OtherSigner { actual }));

    let unsigned = UnverifiedHead::parse(&sample().emit(None)).unwrap();
    assert_eq!(unsigned.claimed_signer(), None);
    assert_eq!(unsigned.clone().verify(&actual), Err(HeadError::NotSigned));
    assert_eq!(unsigned.without_verification(), sample());
}

#[test]
fn a_pinned_manifest_is_compared_before_and_without_the_signature() {
    let actual = sample().manifest.hash;
    let other = Hash([0x23; 32]);
    for key in [None, Some(publisher())] {
        let mut bytes = sample().emit(key.as_ref());
        bytes.resize(400, 0);
        assert_eq!(UnverifiedHead::pinned(&bytes, &actual), Ok(sample()));
        let refused = Err(HeadError::OtherManifest { actual });
        assert_eq!(UnverifiedHead::pinned(&bytes, &other), refused);
        bytes[399] = 1;
        assert_eq!(UnverifiedHead::pinned(&bytes, &actual), Err(HeadError::Padding));
        (bytes[399], bytes[102]) = (0, 2);
        assert_eq!(UnverifiedHead::pinned(&bytes, &actual), Err(HeadError::SignedFlag(2)));
        // Key and signature are not read.
        bytes[102..199].fill(0xFF);
        bytes[102] = 1;
        assert_eq!(UnverifiedHead::pinned(&bytes, &actual), Ok(sample()));
    }
    let truncated = Err(HeadError::Truncated { actual: 101 });
    assert_eq!(UnverifiedHead::pinned(&sample().emit(None)[..101], &actual), truncated);
}

#[test]
fn the_signature_detects_every_flipped_bit() {
    let key = publisher().public_key();
    for flipped in flips(&sample().emit(Some(&publisher()))) {
        let trusted = UnverifiedHead::parse(&flipped).and_then(|head| head.verify(&key));
        assert!(trusted.is_err());
    }
}

#[test]
fn a_signature_cannot_be_moved_to_another_head_of_the_same_publisher() {
    let other = SessionHead { manifest_version: 4, ..sample() };
    let (mut bytes, donor) = (other.emit(Some(&publisher())), sample().emit(Some(&publisher())));
    bytes[134..].copy_from_slice(&donor[134..]);
    let head = UnverifiedHead::parse(&bytes).unwrap();
    assert_eq!(head.verify(&publisher().public_key()), Err(HeadError::Signature));
}

#[test]
fn padding_is_zeros_of_any_length_and_nothing_else() {
    for key in [None, Some(publisher())] {
        let bytes = sample().emit(key.as_ref());
        for padding in [0, 1, 1400, 65_000] {
            let mut padded = bytes.clone();
            padded.resize(bytes.len() + padding, 0);
            assert_eq!(UnverifiedHead::parse(&padded), UnverifiedHead::parse(&bytes));
            if let Some(last) = padded.last_mut().filter(|_| padding > 0) {
                *last = 1;
                assert_eq!(UnverifiedHead::parse(&padded), Err(HeadError::Padding));
            }
        }
        for cut in truncations(&bytes) {
            assert_eq!(UnverifiedHead::parse(cut), Err(HeadError::Truncated { actual: cut.len() }));
        }
    }
}

#[test]
fn invalid_heads_are_refused_with_the_reason() {
    let bytes = sample().emit(None);
    let with = |at: usize, value: u8| {
        let mut changed = bytes.clone();
        changed[at] = value;
        UnverifiedHead::parse(&changed).map(|_| ())
    };
    assert_eq!(with(0, b'f'), Err(HeadError::Magic));
    assert_eq!(with(7, 3), Err(HeadError::FormatVersion(3)));
    assert_eq!(with(7, 0), Err(HeadError::FormatVersion(0)));
    assert!(matches!(with(48, 9), Err(HeadError::CongestionControl(_))));
    assert!(matches!(with(49, 0), Err(HeadError::CongestionControl(_))));
    assert_eq!(with(50, 1), Ok(()));
    assert_eq!(with(50, 2), Err(HeadError::ContentKind(2)));
    assert_eq!(with(55, 7), Err(HeadError::Code(CodeError::EncodingId(7))));
    assert_eq!(with(66, 0), Err(HeadError::Oti(OtiError::Zero("the number of source blocks"))));
    assert_eq!(with(102, 2), Err(HeadError::SignedFlag(2)));
    assert!(matches!(with(102, 1), Err(HeadError::Truncated { .. })));
}

/// An unsigned head of format 2 with these bytes as records.
fn with_records(records: &[u8]) -> Vec<u8> {
    let mut bytes = sample().emit(None);
    bytes[7] = 2;
    let length = (records.len() as u16).to_be_bytes();
    bytes.splice(102..102, [&length, records].concat());
    bytes
}

#[test]
fn records_have_one_encoding_and_are_signed() {
    let list = [(0, vec![1, 2, 3]), (5, Vec::new()), (127, vec![9; 255])];
    let records = HeadRecords::new(list.clone()).unwrap();
    assert_eq!(HeadRecords::new(list.into_iter().rev()).as_ref(), Some(&records));
    assert_eq!((records.size(), records.get(5), records.get(6)), (266, Some(&[][..]), None));
    let head = SessionHead { records, ..sample() };
    for key in [None, Some(publisher())] {
        let bytes = head.emit(key.as_ref());
        assert_eq!(bytes[7], 2);
        assert_eq!(bytes.len(), sample().emit(key.as_ref()).len() + head.records.size());
        assert_eq!(UnverifiedHead::parse(&bytes).unwrap().without_verification(), head);
        assert!(UnverifiedHead::claimed_version(&bytes).is_some());
        for cut in truncations(&bytes) {
            assert_eq!(UnverifiedHead::parse(cut), Err(HeadError::Truncated { actual: cut.len() }));
        }
    }
    let key = publisher().public_key();
    for flipped in flips(&head.emit(Some(&publisher()))) {
        assert!(UnverifiedHead::parse(&flipped).and_then(|head| head.verify(&key)).is_err());
    }
    assert_eq!(HeadRecords::new([(1, vec![0; 256])]), None);
    assert_eq!(HeadRecords::new([(1, vec![0]), (1, vec![1])]), None);
}

#[test]
fn a_head_needs_all_records_from_type_128_on_and_ignores_unknown_ones_below() {
    let parse = |records: &[u8]| UnverifiedHead::parse(&with_records(records)).map(|_| ());
    assert_eq!(parse(&[127, 0]), Ok(()));
    for (records, unknown) in [(&[128, 0][..], 128), (&[3, 1, 7, 200, 0, 255, 0], 200)] {
        assert_eq!(parse(records), Err(HeadError::Record(RecordError::Unknown(unknown))));
        let hash = sample().manifest.hash;
        let pinned = UnverifiedHead::pinned(&with_records(records), &hash);
        assert_eq!(pinned, Err(HeadError::Record(RecordError::Unknown(unknown))));
    }
    for malformed in [&[][..], &[1], &[1, 2, 0], &[2, 0, 1, 0], &[1, 0, 1, 0]] {
        assert_eq!(parse(malformed), Err(HeadError::Record(RecordError::Malformed)));
    }
}

#[test]
fn a_schedule_is_announced_in_the_record_of_type_1() {
    let fcast = AnnouncedSchedule::Fcast {
        layers: LayerSymbols::Segment,
        one_in: 8,
        stretch_factor: 4,
        anticipated_layers: 2,
    };
    for (schedule, value) in [
        (AnnouncedSchedule::Cumulative, &[1][..]),
        (AnnouncedSchedule::Random, &[2]),
        (fcast, &[3, 2, 0, 0, 0, 8, 4, 2]),
    ] {
        let records = schedule.records();
        assert_eq!(records.get(1), Some(value));
        assert_eq!(AnnouncedSchedule::of(&records), Some(schedule));
        let head = SessionHead { records, ..sample() };
        let parsed = UnverifiedHead::parse(&head.emit(None)).unwrap().without_verification();
        assert_eq!(AnnouncedSchedule::of(&parsed.records), Some(schedule));
        // A receiver ignores what it does not know, or what is cut off or too long.
        for other in [&value[1..], &[value, &[0]].concat(), &[9], &[3, 3, 0, 0, 0, 8, 4, 2]] {
            let records = HeadRecords::new([(1, other.to_vec())]).unwrap();
            assert_eq!(AnnouncedSchedule::of(&records), None, "{other:?}");
        }
    }
    assert_eq!(AnnouncedSchedule::of(&HeadRecords::default()), None);
}

#[test]
fn expiry_is_the_first_second_at_which_the_head_is_void_and_zero_is_never() {
    let head = sample();
    assert!(!head.has_expired(1_799_999_999));
    assert!(head.has_expired(1_800_000_000));
    let lasting = SessionHead { expires_unix_seconds: None, ..head };
    assert!(!lasting.has_expired(u64::MAX));
}

fn heads() -> impl Strategy<Value = SessionHead> {
    let oti = prop_oneof![
        (0..1_u64 << 40, 1..=u16::MAX).prop_map(|(transfer_length, symbol_size)| Oti {
            transfer_length,
            symbol_size,
            scheme: FecScheme::RaptorQ(RaptorQ { source_blocks: 255, sub_blocks: 1, alignment: 1 }),
        }),
        (0..1_u64 << 20, 1..=u16::MAX, 1..=u16::MAX).prop_map(|(length, size, blocks)| Oti {
            transfer_length: length,
            symbol_size: size,
            scheme: FecScheme::NoCode(NoCode { max_source_block_length: blocks.into() }),
        }),
    ];
    let oti = oti.prop_filter("describes an object", |oti| oti.layout().is_ok());
    let kind = prop_oneof![Just(ContentKind::Manifest), Just(ContentKind::StreamIndex)];
    let layers = prop::collection::vec(1..=1_u32 << 20, 1..=64)
        .prop_map(|rates| LayerRates::listed(rates).unwrap());
    let control = prop_oneof![
        Just(CongestionControl::FixedRate),
        Just(CongestionControl::Webrc(congestion::webrc())),
        layers.clone().prop_map(CongestionControl::FixedLayers),
        (layers.clone(), 1..=u16::MAX).prop_map(|(layers, slot_milliseconds)| {
            CongestionControl::FlidSl(FlidSl { layers, slot_milliseconds })
        }),
        layers.prop_map(|layers| CongestionControl::Rlc(Rlc { layers, ..congestion::rlc() })),
    ];
    (any::<[u8; 16]>(), any::<[u64; 3]>(), (kind, control), any::<u32>(), oti, any::<[u8; 32]>())
        .prop_map(|(instance, [version, expires, rate], (kind, control), toi, oti, hash)| {
            SessionHead {
                instance: InstanceId(instance),
                manifest_version: version,
                kind,
                manifest: ObjectRef { toi, oti, hash: Hash(hash) },
                expires_unix_seconds: NonZeroU64::new(expires),
                rate_bytes_per_second: NonZeroU64::new(rate),
                congestion_control: control,
                records: HeadRecords::default(),
            }
        })
}

proptest! {
    #[test]
    fn every_head_is_read_back(head in heads(), signed: bool) {
        let key = signed.then(publisher);
        let bytes = head.emit(key.as_ref());
        let parsed = UnverifiedHead::parse(&bytes).unwrap();
        let trusted = match key {
            Some(key) => parsed.verify(&key.public_key()).unwrap(),
            None => parsed.without_verification(),
        };
        prop_assert_eq!(trusted, head);
    }
}
