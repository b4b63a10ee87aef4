//! A session without an end that repairs what receivers request: when all blocks advance, when what
//! is requested alone is sent, and when it rests.

use crate::support::answers::{collection, opened, report};
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{Esi, FecScheme, ObjectLayout, Oti, Sbn};
use fontana_proto::report::{Authority, Expected, RepairConfig};
use fontana_proto::{
    BlockId, CollectionConfig, Endpoint, Instant, Output, RepairBy, SendDone, SendJob, SendMode,
    SendObject, Sender, SenderConfig,
};
use fontana_wire::{
    BlockNeed, Feedback, Hash, ReceiverId, ReceiverReport, ReceiverState, RepairRequest, RollCall,
    RollCallEcho, Toi, Tsi,
};
use std::collections::BTreeSet;
use std::time::Duration;

const BLOCKS: u32 = 3;
const SOURCE: usize = 300;

/// Three blocks of 100 symbols, sent in a third of a second.
fn sender(source_pass: bool) -> Sender {
    let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 3, sub_blocks: 1, alignment: 4 });
    let layout: ObjectLayout =
        Oti { transfer_length: 300_000, symbol_size: 1000, scheme }.layout().unwrap();
    let block = |sbn| (BlockId { toi: Toi(1), sbn: Sbn(sbn) }, 100);
    let repair = RepairConfig {
        blocks: (0..BLOCKS).map(block).collect(),
        symbols_per_second: 1_000.0,
        pending_capacity: 64,
        max_receivers: 16,
        max_age: None,
        trusts_unauthenticated: false,
        has_signers: false,
    };
    let config = collection(RepairBy::Rounds(Box::new(repair)), Expected::Anyone, 1);
    let sender = Sender::new(SenderConfig {
        mode: SendMode::RepairOnDemand,
        peak_window: Duration::ZERO,
        ..SenderConfig::new(
            Tsi(5),
            vec![SendObject { toi: Toi(1), layout, source_pass }],
            1_000_000,
            1,
        )
    });
    sender.with_collection(CollectionConfig { rests: true, ..config }, Instant::ZERO)
}

/// What the receiver says when it is called.
#[derive(Clone, Default)]
struct Said {
    /// Symbols that it has, per thousand; 1000: it is complete, or recovers the last blocks.
    permille: u16,
    recovers: bool,
    /// What it requests of each block, once.
    requests: Option<u32>,
    /// Who says it.
    receiver: u8,
}

/// The symbols that are sent in six seconds, with the millisecond of each. `says`: what the
/// receiver says then, if there is one.
fn sent(sender: &mut Sender, says: impl Fn(u64) -> Option<Said>) -> Vec<(u64, BlockId, Esi)> {
    let (mut symbols, mut header) = (Vec::new(), Vec::new());
    let (mut counter, mut has_requested) = (0, false);
    let mut answers = |ms, call: &RollCall| {
        let Some(said) = says(ms) else { return Vec::new() };
        let echo = RollCallEcho { serial: call.serial, held_us: 0 };
        let state = match said.permille {
            1_000 if !said.recovers => ReceiverState::Complete { manifest: Hash([3; 32]) },
            _ => ReceiverState::Receiving,
        };
        let receiver = ReceiverId([said.receiver; 16]);
        let report = report(receiver, "", state, call.round);
        let symbols_lacking = u64::from(1_000 - said.permille);
        let permille = said.permille;
        let report = Feedback::Report(ReceiverReport { echo, permille, symbols_lacking, ..report });
        let request = said.requests.zip(call.repair.as_ref()).filter(|_| !has_requested);
        has_requested |= request.is_some();
        let request = request.map(|(symbols, repair)| {
            let need = |sbn| BlockNeed { toi: 1, sbn, symbols };
            Feedback::Request(RepairRequest {
                receiver,
                round: repair.round,
                echo,
                loss_ppm: 0,
                mute_us: 0,
                may_lack_more: false,
                blocks: (0..BLOCKS).map(need).collect(),
                maps: Vec::new(),
            })
        });
        let answers = [Some(report), request].into_iter().flatten();
        answers
            .map(|answer| {
                counter += 1;
                opened(&answer, counter, Authority::Group)
            })
            .collect()
    };
    for ms in 0..6_000 {
        let now = Instant::ZERO + Duration::from_millis(ms);
        sender.handle_timeout(now);
        while let Some(output) = sender.poll_output(now, &mut header) {
            match output {
                Output::Job(SendJob::Prepare { batch, .. }) => {
                    sender.handle_done(now, SendDone::Prepared { batch });
                }
                Output::Job(SendJob::Sign(call)) => {
                    sender.handle_done(now, SendDone::Signed(Vec::new()));
                    let answers: Vec<SendDone> = answers(ms, &call);
                    answers.into_iter().for_each(|done| sender.handle_done(now, done));
                }
                Output::Transmit { symbol: Some(symbol), .. } => {
                    symbols.push((ms, symbol.block, symbol.esi));
                }
                _ => {}
            }
            header.clear();
        }
    }
    let distinct: BTreeSet<_> = symbols.iter().map(|&(_, id, esi)| (id, esi)).collect();
    assert_eq!(distinct.len(), symbols.len(), "all are fresh");
    symbols
}

fn from(symbols: &[(u64, BlockId, Esi)], ms: u64) -> usize {
    symbols.iter().filter(|(at, ..)| *at >= ms).count()
}

/// Receivers that may say nothing are served as by a sender that asks none.
#[test]
fn while_no_receiver_is_known_all_blocks_advance() {
    for source_pass in [true, false] {
        let symbols = sent(&mut sender(source_pass), |_| None);
        assert!(symbols.len() > 5_000, "{}", symbols.len());
        for sbn in 0..BLOCKS {
            let of = symbols.iter().filter(|(_, id, _)| id.sbn == Sbn(sbn)).count();
            assert!(of.abs_diff(symbols.len() / 3) < 50, "block {sbn}: {of}");
        }
        let source = symbols.iter().filter(|(.., esi)| esi.0 < 100).count();
        assert_eq!(source, if source_pass { SOURCE } else { 0 });
    }
}

/// It lacks a fiftieth, requests it in the first round, and is complete after two seconds. Others
/// may be there that say nothing, until one and a half times the content are sent.
#[test]
fn what_is_requested_alone_is_sent_while_receivers_lack_little() {
    let symbols = sent(&mut sender(true), |ms| {
        let permille = if ms < 2_000 { 980 } else { 1_000 };
        Some(Said { permille, requests: Some(2), receiver: 1, ..Said::default() })
    });
    let until_complete = symbols.len() - from(&symbols, 2_000);
    assert_eq!(until_complete, SOURCE + 3 * 2);
    assert!((450..1_100).contains(&symbols.len()), "{}", symbols.len());
    assert_eq!(from(&symbols, 4_000), 0, "it rests");
}

/// A host that recovers its last blocks has no time for symbols that it does not need. Those that
/// say nothing get theirs afterwards.
#[test]
fn while_a_receiver_recovers_what_it_has_nothing_is_sent() {
    let symbols = sent(&mut sender(true), |ms| {
        let permille = if ms < 1_000 { 980 } else { 1_000 };
        Some(Said { permille, requests: Some(2), receiver: 1, recovers: ms < 3_000 })
    });
    let until_complete = symbols.len() - from(&symbols, 3_000);
    assert_eq!(until_complete, SOURCE + 3 * 2);
    assert!(symbols.len() > until_complete, "then all blocks advance");
}

/// A host that recovers and says no more does not keep others from what they are sent.
#[test]
fn a_receiver_that_vanishes_while_it_recovers_is_waited_for_no_longer() {
    let symbols = sent(&mut sender(true), |ms| {
        (ms < 1_000).then_some(Said { permille: 1_000, recovers: true, ..Said::default() })
    });
    let later = from(&symbols, 1_000);
    assert!(later > 100, "{later} symbols");
}

/// One that comes late lacks everything: requests would be for the whole content.
#[test]
fn all_blocks_advance_while_a_receiver_lacks_much() {
    let symbols = sent(&mut sender(true), |ms| {
        let (receiver, permille) = match ms {
            0..2_500 => (1, 1_000),
            2_500..3_500 => (2, 300),
            3_500..4_000 => (2, 980),
            _ => (2, 1_000),
        };
        Some(Said { permille, receiver, ..Said::default() })
    });
    let during =
        |range: std::ops::Range<u64>| symbols.iter().filter(|(at, ..)| range.contains(at)).count();
    assert_eq!(during(2_000..2_500), 0, "it rests");
    // A roll call each half second says that it is there.
    assert!(during(2_500..3_600) > 400, "{}", during(2_500..3_600));
    assert_eq!(from(&symbols, 5_500), 0, "it rests again");
}
