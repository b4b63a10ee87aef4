//! Roll calls and reports: one encoding each, which a bit changes to another or to an error. The
//! examples of `docs/wire.md` were computed with the Python package `cryptography`, and an
//! implementation of BLAKE3 from its paper.

use crate::documentation::block;
use crate::fuzz::Sum;
use crate::{flips, truncations};
use fontana_wire::{
    BlockNeed, Feedback, FeedbackDatagram, FeedbackError, Fingerprint, Hash, HeaderFields,
    InstanceId, LabelError, RateCall, RateReport, ReceiverId, ReceiverLabel, ReceiverReport,
    ReceiverState, RepairCall, RepairRequest, RollCall, RollCallEcho, RollCallError, RollCallList,
    SealId, SecretKey, SymbolMap, Toi, Tsi, UnverifiedRollCall,
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
        repair: None,
        rate: None,
    }
}

/// A roll call of a repair round and a rate round.
pub(crate) fn rate_call() -> RollCall {
    let rate = RateCall { round: 9, since: 7, window_ms: 240, divisor: 3 };
    RollCall { rate: Some(rate), ..repair_call() }
}

pub(crate) fn rate_report() -> RateReport {
    RateReport {
        receiver: ReceiverId([0xAA; 16]),
        round: 9,
        echo: RollCallEcho { serial: 12, held_us: 4_321 },
        window_us: 610_000,
        received: 255,
        lost: 14,
        weight: 14,
    }
}

/// A roll call of a repair round.
pub(crate) fn repair_call() -> RollCall {
    let pending =
        vec![BlockNeed { toi: 1, sbn: 0, symbols: 31 }, BlockNeed { toi: 1, sbn: 2, symbols: 7 }];
    RollCall {
        repair: Some(RepairCall {
            round: 4,
            window_us: 5_000,
            receivers: 12,
            is_closed: false,
            pending,
            last: None,
        }),
        ..roll_call()
    }
}

pub(crate) fn request() -> RepairRequest {
    RepairRequest {
        receiver: ReceiverId([0xAA; 16]),
        round: 4,
        echo: RollCallEcho { serial: 12, held_us: 4_321 },
        loss_ppm: 20_000,
        mute_us: 1_000,
        may_lack_more: false,
        blocks: vec![
            BlockNeed { toi: 1, sbn: 2, symbols: 9 },
            BlockNeed { toi: 3, sbn: 0, symbols: 1 },
        ],
        maps: Vec::new(),
    }
}

/// A request of symbols by their numbers.
pub(crate) fn named_request() -> RepairRequest {
    let mut map = SymbolMap::new(1, 2, 9);
    assert!([10, 264].into_iter().all(|esi| map.add(esi)));
    let maps = vec![map, SymbolMap::new(3, 0, 77)];
    RepairRequest { blocks: Vec::new(), maps, ..request() }
}

pub(crate) fn report() -> ReceiverReport {
    ReceiverReport {
        receiver: ReceiverId([0xAA; 16]),
        label: "rack-1".parse().unwrap(),
        started_unix_ms: 1_795_424_440_000,
        round: 3,
        echo: RollCallEcho { serial: 12, held_us: 250_000 },
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
    Feedback::Report(report.clone()).emit(SealId::from(instance()), 6, identity, cipher)
}

#[test]
fn the_pages_examples_are_the_codes_output() {
    assert_eq!(block("roll-call"), roll_call().emit(&publisher()));
    assert_eq!(block("repair-call"), repair_call().emit(&publisher()));
    let rate_call = rate_call().emit(&publisher());
    assert!(rate_call.ends_with(&block("rate-call")));
    let rate_report =
        Feedback::Rate(rate_report()).emit(SealId::from(instance()), 8, None, NO_CIPHER);
    assert_eq!(block("rate-report"), rate_report);
    assert_eq!(block("signed-report"), emit(&report(), Some(&identity()), None));
    assert_eq!(block("repair-request"), emit_request(&request(), None, None));
    assert_eq!(block("named-request"), emit_request(&named_request(), None, None));
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
    let mut closed = repair_call();
    closed.repair.iter_mut().for_each(|repair| repair.is_closed = true);
    let alone = RollCall { repair: None, ..rate_call() };
    let mut limited = rate_call();
    limited.repair.iter_mut().for_each(|repair| repair.last = Some(7));
    for call in [roll_call(), v6, repair_call(), closed, rate_call(), alone, limited] {
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
    for (call, pending) in [(roll_call(), None), (repair_call(), Some(2))] {
        for size in [240, 1280, 1388] {
            let capacity = RollCall::capacity(size, pending).unwrap();
            let list = RollCallList::Known(vec![Fingerprint(1); capacity]);
            let length = RollCall { list, ..call.clone() }.emit(&publisher()).len();
            assert!((usize::from(size) - 3..=usize::from(size)).contains(&length), "{length}");
        }
    }
    assert_eq!(RollCall::capacity(194, None), None);
    assert_eq!(RollCall::capacity(195, None), Some(0));
    assert_eq!(
        (RollCall::capacity(219, Some(1)), RollCall::capacity(220, Some(1))),
        (None, Some(0))
    );
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
            assert!(bytes.len() <= FeedbackDatagram::MAX_SIZE);
            let opened = FeedbackDatagram::parse(&bytes).unwrap().open(cipher).unwrap();
            assert_eq!((&opened.feedback, opened.counter), (&Feedback::Report(report.clone()), 6));
            assert_eq!(opened.is_sealed, cipher.is_some());
            let is_signed = |opened: &fontana_wire::OpenedFeedback| {
                identity.is_none_or(|key| opened.is_signed_by(&key.public_key()))
            };
            assert!(is_signed(&opened) && !opened.is_signed_by(&publisher().public_key()));
            for flipped in flips(&bytes) {
                let opened = FeedbackDatagram::parse(&flipped).and_then(|it| it.open(cipher));
                // Without a signature, the tag protects it.
                assert!(opened.is_err() || identity.is_some() && !is_signed(&opened.unwrap()));
            }
            for cut in truncations(&bytes) {
                assert!(FeedbackDatagram::parse(cut).and_then(|it| it.open(cipher)).is_err());
            }
        }
    }
}

fn emit_request(
    request: &RepairRequest,
    identity: Option<&SecretKey>,
    cipher: Option<&Sum>,
) -> Vec<u8> {
    Feedback::Request(request.clone()).emit(SealId::from(instance()), 7, identity, cipher)
}

#[test]
fn a_request_is_read_back_and_nothing_else_is_one() {
    let need = |toi, sbn, symbols| BlockNeed { toi, sbn, symbols };
    let nothing = RepairRequest { may_lack_more: true, blocks: Vec::new(), ..request() };
    let most = (0..64).map(|sbn| need(u32::MAX, sbn, u32::MAX)).collect();
    let maps: Vec<_> = (0..17).map(|sbn| SymbolMap::new(1, sbn, u32::MAX)).collect();
    let full = RepairRequest { maps, ..named_request() };
    let long = RepairRequest { blocks: most, ..request() };
    for request in [request(), nothing, long, named_request(), full] {
        for (identity, cipher) in [(None, None), (Some(&identity()), Some(&Sum))] {
            let bytes = emit_request(&request, identity, cipher);
            assert!(bytes.len() <= FeedbackDatagram::MAX_SIZE);
            let opened = FeedbackDatagram::parse(&bytes).unwrap().open(cipher).unwrap();
            assert_eq!(
                (opened.counter, &opened.feedback),
                (7, &Feedback::Request(request.clone()))
            );
            assert_eq!(opened.feedback.echo(), request.echo);
            for cut in truncations(&bytes) {
                assert!(FeedbackDatagram::parse(cut).and_then(|it| it.open(cipher)).is_err());
            }
        }
    }
    let refused = |blocks: Vec<BlockNeed>| {
        let bytes = emit_request(&RepairRequest { blocks, ..request() }, None, None);
        FeedbackDatagram::parse(&bytes).and_then(|it| it.open(NO_CIPHER)).map(|_| ())
    };
    for blocks in [
        vec![need(1, 2, 9), need(1, 2, 9)],
        vec![need(1, 3, 9), need(1, 2, 9)],
        vec![need(2, 0, 9), need(1, 9, 9)],
        vec![need(1, 2, 0)],
        Vec::new(),
    ] {
        assert_eq!(refused(blocks), Err(FeedbackError::Blocks));
    }
    // Maps are in order, have their first symbol, and no symbol above the largest number.
    let named = emit_request(&named_request(), None, None);
    for (at, byte) in [(66, 0), (66, 18), (65, 4), (79, 0x7f)] {
        let mut bad = named.clone();
        bad[at] = byte;
        let opened = FeedbackDatagram::parse(&bad).and_then(|it| it.open(NO_CIPHER));
        assert!(opened.is_err(), "{at}: {byte}");
    }
    let mut above = named.clone();
    above[75..79].copy_from_slice(&[0xff; 4]);
    assert_eq!(
        FeedbackDatagram::parse(&above).and_then(|it| it.open(NO_CIPHER)),
        Err(FeedbackError::Blocks)
    );
    let symbols: Vec<_> = named_request().maps[0].symbols().collect();
    assert_eq!(symbols, [9, 10, 264]);
    // The kind is signed and sealed with the rest.
    let mut other_kind = emit_request(&request(), None, Some(&Sum));
    other_kind[6] = b'P';
    let opened = FeedbackDatagram::parse(&other_kind).and_then(|it| it.open(Some(&Sum)));
    assert_eq!(opened, Err(FeedbackError::Tag));
}

#[test]
fn a_rate_report_is_read_back_and_nothing_else_is_one() {
    for report in [rate_report(), RateReport { weight: 100, received: 0, ..rate_report() }] {
        for (identity, cipher) in [(None, None), (Some(&identity()), Some(&Sum))] {
            let bytes = Feedback::Rate(report).emit(SealId::from(instance()), 8, identity, cipher);
            let opened = FeedbackDatagram::parse(&bytes).unwrap().open(cipher).unwrap();
            assert_eq!((opened.counter, &opened.feedback), (8, &Feedback::Rate(report)));
            assert_eq!(opened.feedback.echo(), report.echo);
            for cut in truncations(&bytes) {
                assert!(FeedbackDatagram::parse(cut).and_then(|it| it.open(cipher)).is_err());
            }
        }
    }
    for (bad, error) in [
        (RateReport { window_us: 0, ..rate_report() }, FeedbackError::Window),
        (RateReport { weight: 0, ..rate_report() }, FeedbackError::Weight(0)),
        (RateReport { weight: 101, ..rate_report() }, FeedbackError::Weight(101)),
    ] {
        let bytes = Feedback::Rate(bad).emit(SealId::from(instance()), 8, None, NO_CIPHER);
        let opened = FeedbackDatagram::parse(&bytes).and_then(|it| it.open(NO_CIPHER));
        assert_eq!(opened, Err(error));
    }
}

#[test]
fn a_rate_round_without_a_length_or_a_divisor_is_refused() {
    let good = RateCall { round: 9, since: 7, window_ms: 1, divisor: 1 };
    for rate in [RateCall { window_ms: 0, ..good }, RateCall { divisor: 0, ..good }] {
        let bytes = RollCall { rate: Some(rate), ..roll_call() }.emit(&publisher());
        assert_eq!(UnverifiedRollCall::parse(&bytes), Err(RollCallError::Rate));
    }
    let sizes =
        [None, Some(good)].map(|rate| RollCall { rate, ..roll_call() }.emit(&publisher()).len());
    assert_eq!(sizes[1] - sizes[0], RateCall::SIZE);
}

/// Only a repair round has a last object.
#[test]
fn a_last_object_without_a_repair_round_is_refused() {
    let mut call = repair_call();
    let plain = call.emit(&publisher());
    call.repair.iter_mut().for_each(|repair| repair.last = Some(7));
    let limited = call.emit(&publisher());
    assert_eq!(limited.len() - plain.len(), RepairCall::LAST_SIZE);
    let at = 98 + 4 * 2;
    assert_eq!((plain[at], limited[at]), (1, 9));
    let mut without = roll_call().emit(&publisher());
    without[at] = 8;
    assert_eq!(UnverifiedRollCall::parse(&without), Err(RollCallError::Repair));
}

#[test]
fn what_is_sent_covers_a_need_of_no_more_symbols() {
    let call = repair_call().repair.unwrap();
    let covers = |toi, sbn, symbols| call.covers(&BlockNeed { toi, sbn, symbols });
    assert!(covers(1, 0, 31) && covers(1, 2, 1));
    assert!(!covers(1, 0, 32) && !covers(1, 1, 1) && !covers(2, 0, 1));
}

#[test]
fn a_session_with_a_group_key_reads_only_encrypted_reports() {
    let (plain, sealed) = (emit(&report(), None, None), emit(&report(), None, Some(&Sum)));
    let open = |bytes: &[u8], cipher: Option<&Sum>| {
        FeedbackDatagram::parse(bytes).and_then(|it| it.open(cipher)).map(|_| ())
    };
    assert_eq!(open(&plain, None), Ok(()));
    assert_eq!(open(&plain, Some(&Sum)), Err(FeedbackError::NotEncrypted));
    assert_eq!(open(&sealed, Some(&Sum)), Ok(()));
    assert_eq!(open(&sealed, NO_CIPHER), Err(FeedbackError::Encrypted));
}

#[test]
fn the_longest_report_fits_and_a_longer_label_is_refused() {
    let label: ReceiverLabel = "x".repeat(63).parse().unwrap();
    let longest = ReceiverReport { label, ..report() };
    let bytes = emit(&longest, Some(&identity()), Some(&Sum));
    assert!(bytes.len() <= FeedbackDatagram::MAX_SIZE);
    let blocks = (0..64).map(|sbn| BlockNeed { toi: 1, sbn, symbols: 1 }).collect();
    let requested = RepairRequest { blocks, ..request() };
    let longest = emit_request(&requested, Some(&identity()), Some(&Sum));
    assert_eq!(longest.len(), FeedbackDatagram::MAX_SIZE);
    assert!("x".repeat(64).parse::<ReceiverLabel>().is_err());
    for bad in ["a b", "a\n", "\u{e4}", "a/b", "\"", "\x1b[2J"] {
        assert_eq!(bad.parse::<ReceiverLabel>(), Err(LabelError));
    }
    let longer = [&longest[..], &[0]].concat();
    let too_long = FeedbackError::Size { actual: longer.len() };
    assert_eq!(FeedbackDatagram::parse(&longer), Err(too_long));
}
