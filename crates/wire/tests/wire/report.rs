//! Roll calls and reports: one encoding each, which a bit changes to another or to an error. The
//! examples of `docs/wire.md` were computed with the Python package `cryptography`, and an
//! implementation of BLAKE3 from its paper.

use crate::documentation::block;
use crate::fuzz::Sum;
use crate::{flips, truncations};
use fontana_wire::{
    Fingerprint, Hash, HeaderFields, InstanceId, ReceiverId, ReceiverLabel, ReceiverReport,
    ReceiverState, ReportDatagram, ReportError, RollCall, RollCallError, RollCallList, SealId,
    SecretKey, Toi, Tsi, UnverifiedRollCall,
};
use std::net::SocketAddr;

const NO_CIPHER: Option<&Sum> = None;

fn publisher() -> SecretKey {
    SecretKey::from_seed(&[7; 32])
}

fn identity() -> SecretKey {
    SecretKey::from_seed(&[9; 32])
}

fn instance() -> InstanceId {
    InstanceId(std::array::from_fn(|i| i as u8))
}

pub(crate) fn roll_call() -> RollCall {
    let salt = 0x0102_0304_0506_0708;
    let known = [[0xAA; 16], [0xBB; 16]].map(|id| Fingerprint::of_receiver(salt, &ReceiverId(id)));
    RollCall {
        instance: instance(),
        tsi: Tsi(5),
        serial: 12,
        issued_unix_ms: 1_795_424_455_182,
        collector: "10.0.0.7:40007".parse().unwrap(),
        round: 3,
        position: 1 << 31,
        window_ms: 2500,
        head_count: 465,
        known: 2,
        salt,
        list: RollCallList::Known(known.to_vec()),
    }
}

pub(crate) fn report() -> ReceiverReport {
    ReceiverReport {
        receiver: ReceiverId([0xAA; 16]),
        label: "rack-1".parse().unwrap(),
        started_unix_ms: 1_795_424_440_000,
        round: 3,
        state: ReceiverState::Complete { manifest: Hash([0x11; 32]) },
        permille: 1000,
        symbols_lacking: 0,
        loss_ppm: 20_000,
        kernel_drops: 17,
        channels: 1,
        seconds: 15,
    }
}

fn emit(report: &ReceiverReport, identity: Option<&SecretKey>, cipher: Option<&Sum>) -> Vec<u8> {
    report.emit(SealId::from(instance()), 6, identity, cipher)
}

#[test]
fn the_pages_examples_are_the_codes_output() {
    assert_eq!(block("roll-call"), roll_call().emit(&publisher()));
    assert_eq!(block("signed-report"), emit(&report(), Some(&identity()), None));
    let label = "rack-1".parse().unwrap();
    assert_eq!(Fingerprint::of_label(roll_call().salt, &label), Fingerprint(0x251d_2509));
}

#[test]
fn a_roll_call_is_read_back_and_any_changed_bit_is_noticed() {
    let v6 = RollCall {
        collector: SocketAddr::new("2001:db8::7".parse().unwrap(), 9),
        list: RollCallList::Missing(vec![Fingerprint(7)]),
        ..roll_call()
    };
    for call in [roll_call(), v6] {
        let bytes = call.emit(&publisher());
        let parsed = UnverifiedRollCall::parse(&bytes).unwrap();
        assert_eq!(parsed.claimed(), &call);
        assert_eq!(
            parsed.clone().verify(&identity().public_key()),
            Err(RollCallError::OtherSigner)
        );
        assert_eq!(parsed.verify(&publisher().public_key()), Ok(call));
        for flipped in flips(&bytes) {
            let verified = UnverifiedRollCall::parse(&flipped)
                .and_then(|parsed| parsed.verify(&publisher().public_key()));
            assert!(verified.is_err());
        }
        for cut in truncations(&bytes) {
            assert!(UnverifiedRollCall::parse(cut).is_err());
        }
        let longer = [&bytes[..], &[0]].concat();
        let trailing = RollCallError::TrailingBytes { count: 1 };
        assert_eq!(UnverifiedRollCall::parse(&longer), Err(trailing));
    }
}

#[test]
fn a_full_roll_call_fills_its_symbol() {
    for size in [216, 1280, 1388] {
        let capacity = RollCall::capacity(size).unwrap();
        let list = RollCallList::Known(vec![Fingerprint(1); capacity]);
        let length = RollCall { list, ..roll_call() }.emit(&publisher()).len();
        assert!((usize::from(size) - 3..=usize::from(size)).contains(&length), "{length}");
    }
    assert_eq!(RollCall::capacity(193), None);
    assert_eq!(RollCall::capacity(194), Some(0));
}

#[test]
fn a_roll_call_lists_whom_it_should() {
    let (call, label) = (roll_call(), ReceiverLabel::default());
    assert!(call.lists(&ReceiverId([0xAA; 16]), &label));
    assert!(!call.lists(&ReceiverId([0xCC; 16]), &label));
    let missing: ReceiverLabel = "missing".parse().unwrap();
    let list = RollCallList::Missing(vec![Fingerprint::of_label(call.salt, &missing)]);
    let call = RollCall { list, ..call };
    assert!(!call.lists(&ReceiverId([0xAA; 16]), &missing));
    assert!(call.lists(&ReceiverId([0xAA; 16]), &"known".parse().unwrap()));
    assert!(!call.lists(&ReceiverId([0xAA; 16]), &label), "it has no name");
}

#[test]
fn only_packets_of_the_reserved_object_may_be_roll_calls() {
    let packet = |toi| {
        let mut datagram = Vec::new();
        HeaderFields::new(Tsi(5), Some(toi)).emit(&mut datagram);
        datagram
    };
    assert!(RollCall::may_be(&packet(Toi::ROLL_CALL)));
    for toi in [Toi::HEAD, Toi::MANIFEST, Toi::DIGESTS, Toi::FDT, Toi(1), Toi(0xFFFF_FFFB)] {
        assert!(!RollCall::may_be(&packet(toi)));
    }
    assert!(Toi::ROLL_CALL.is_control() && !Toi::ROLL_CALL.is_content());
}

#[test]
fn a_report_is_read_back_and_any_changed_bit_is_noticed() {
    let states = [
        ReceiverState::Receiving,
        ReceiverState::Complete { manifest: Hash([3; 32]) },
        ReceiverState::Failed { exit_code: 5 },
    ];
    for state in states {
        let report = ReceiverReport { state, ..report() };
        for (identity, cipher) in
            [(Some(&identity()), None), (None, Some(&Sum)), (Some(&identity()), Some(&Sum))]
        {
            let bytes = emit(&report, identity, cipher);
            assert!(bytes.len() <= ReportDatagram::MAX_SIZE);
            let opened = ReportDatagram::parse(&bytes).unwrap().open(cipher).unwrap();
            assert_eq!((&opened.report, opened.counter), (&report, 6));
            assert_eq!(opened.is_sealed, cipher.is_some());
            let is_signed = |opened: &fontana_wire::OpenedReport| {
                identity.is_none_or(|key| opened.is_signed_by(&key.public_key()))
            };
            assert!(is_signed(&opened) && !opened.is_signed_by(&publisher().public_key()));
            for flipped in flips(&bytes) {
                let opened = ReportDatagram::parse(&flipped).and_then(|it| it.open(cipher));
                // Without a signature, the tag protects it.
                assert!(opened.is_err() || identity.is_some() && !is_signed(&opened.unwrap()));
            }
            for cut in truncations(&bytes) {
                assert!(ReportDatagram::parse(cut).and_then(|it| it.open(cipher)).is_err());
            }
        }
    }
}

#[test]
fn a_session_with_a_group_key_reads_only_encrypted_reports() {
    let (plain, sealed) = (emit(&report(), None, None), emit(&report(), None, Some(&Sum)));
    let open = |bytes: &[u8], cipher: Option<&Sum>| {
        ReportDatagram::parse(bytes).and_then(|it| it.open(cipher)).map(|_| ())
    };
    assert_eq!(open(&plain, None), Ok(()));
    assert_eq!(open(&plain, Some(&Sum)), Err(ReportError::NotEncrypted));
    assert_eq!(open(&sealed, Some(&Sum)), Ok(()));
    assert_eq!(open(&sealed, NO_CIPHER), Err(ReportError::Encrypted));
}

#[test]
fn the_longest_report_fits_and_a_longer_label_is_refused() {
    let label: ReceiverLabel = "x".repeat(63).parse().unwrap();
    let longest = ReceiverReport { label, ..report() };
    let bytes = emit(&longest, Some(&identity()), Some(&Sum));
    assert_eq!(bytes.len(), ReportDatagram::MAX_SIZE);
    assert!("x".repeat(64).parse::<ReceiverLabel>().is_err());
    for bad in ["a b", "a\n", "\u{e4}", "a/b", "\"", "\x1b[2J"] {
        assert_eq!(bad.parse::<ReceiverLabel>(), Err(ReportError::Label));
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(ReportDatagram::parse(&longer).is_err());
}
