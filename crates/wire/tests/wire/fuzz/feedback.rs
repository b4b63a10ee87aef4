//! Roll calls, reports and requests of any fields: what is emitted is read back, or refused.

use super::{Sum, patched};
use crate::report;
use fontana_wire::{
    BlockNeed, Feedback, FeedbackDatagram, Fingerprint, Hash, ReceiverReport, ReceiverState,
    RepairCall, RepairRequest, RollCall, RollCallList, SealId, SecretKey, Tsi, UnverifiedRollCall,
};
use std::net::{IpAddr, SocketAddr};

/// Needs that may be in any order, twice, or of nothing.
fn needs(blocks: &[(u8, u8, u8)]) -> Vec<BlockNeed> {
    let need = |&(toi, sbn, symbols): &(u8, u8, u8)| BlockNeed {
        toi: toi.into(),
        sbn: sbn.into(),
        symbols: symbols.into(),
    };
    blocks.iter().map(need).collect()
}

fn are_in_order(blocks: &[BlockNeed]) -> bool {
    blocks.is_sorted_by(|a, b| (a.toi, a.sbn) < (b.toi, b.sbn))
        && blocks.iter().all(|need| need.symbols > 0)
}

/// What a datagram with this content is read as.
fn read_back(feedback: &Feedback, counter: u64, is_tagged: bool) -> Option<Feedback> {
    let identity = SecretKey::from_seed(&[9; 32]);
    let cipher = is_tagged.then_some(&Sum);
    let signer = (!is_tagged).then_some(&identity);
    let bytes = feedback.emit(SealId([7; 8]), counter, signer, cipher);
    let datagram = FeedbackDatagram::parse(&bytes).unwrap();
    assert_eq!(datagram.header.counter, counter);
    datagram.open(cipher).ok().map(|opened| opened.feedback)
}

#[test]
fn report_of_any_fields() {
    type Input = (u8, String, [u32; 4], [u64; 3], (u16, u8, bool));
    bolero::check!().with_type::<Input>().for_each(|(state, label, words, numbers, rest)| {
        let [round, loss_ppm, seconds, held_us] = *words;
        let &(permille, channels, is_tagged) = rest;
        let Ok(label) = label.parse() else { return };
        let sample = report::report();
        let report = ReceiverReport {
            label,
            started_unix_ms: numbers[0],
            round,
            state: match state % 3 {
                0 => ReceiverState::Receiving,
                1 => ReceiverState::Complete { manifest: Hash([*state; 32]) },
                _ => ReceiverState::Failed { exit_code: *state },
            },
            permille: permille % 1_100,
            symbols_lacking: numbers[1],
            loss_ppm: loss_ppm % 1_100_000,
            kernel_drops: numbers[2],
            channels,
            seconds,
            echo: fontana_wire::RollCallEcho { held_us, ..sample.echo },
            ..sample
        };
        let is_valid = report.permille <= 1_000 && report.loss_ppm <= 1_000_000;
        let good = Feedback::Report(report);
        let found = read_back(&good, numbers[2], is_tagged);
        assert_eq!(found, is_valid.then_some(good));
    });
}

#[test]
fn request_of_any_fields() {
    type Input = (Vec<(u8, u8, u8)>, [u32; 4], u64, (bool, bool));
    bolero::check!().with_type::<Input>().for_each(|(blocks, words, counter, flags)| {
        let [round, loss_ppm, mute_us, held_us] = *words;
        let sample = report::request();
        let request = RepairRequest {
            round,
            loss_ppm: loss_ppm % 1_100_000,
            mute_us,
            may_lack_more: flags.0,
            blocks: needs(blocks.get(..RepairRequest::MAX_BLOCKS).unwrap_or(blocks)),
            echo: fontana_wire::RollCallEcho { held_us, ..sample.echo },
            ..sample
        };
        let is_valid = request.loss_ppm <= 1_000_000
            && are_in_order(&request.blocks)
            && (request.may_lack_more || !request.blocks.is_empty());
        let good = Feedback::Request(request);
        assert_eq!(read_back(&good, *counter, flags.1), is_valid.then_some(good));
    });
}

#[test]
fn roll_call_of_any_fields() {
    let key = SecretKey::from_seed(&[7; 32]);
    type Repair = (u8, Vec<(u8, u8, u8)>);
    type Input = ((bool, u128, u16), [u32; 6], u64, Vec<u32>, Repair, (u16, u16, Vec<u8>));
    bolero::check!().with_type::<Input>().for_each(
        |(collector, words, tsi, fingerprints, (kind, blocks), (at, cut, patch))| {
            let &(is_old, address, port) = collector;
            let address = if is_old {
                IpAddr::from((address as u32).to_be_bytes())
            } else {
                IpAddr::from(address.to_be_bytes())
            };
            let [round, position, window_ms, head_count, known, receivers] = *words;
            let list = fingerprints.iter().take(300).copied().map(Fingerprint).collect();
            let pending = needs(blocks.get(..RepairCall::MAX_PENDING).unwrap_or(blocks));
            let repair = (kind % 3 > 0).then(|| RepairCall {
                round,
                window_us: position,
                receivers,
                is_closed: kind % 3 == 2,
                pending,
                last: (kind & 32 != 0).then_some(head_count),
            });
            let call = RollCall {
                collector: SocketAddr::new(address, port),
                tsi: Tsi(tsi >> 15),
                round,
                position,
                window_ms,
                head_count,
                known,
                list: match kind & 64 {
                    0 => RollCallList::Known(list),
                    _ => RollCallList::Missing(list),
                },
                repair,
                ..report::roll_call()
            };
            let pending = call.repair.as_ref().map(|repair| repair.pending.as_slice());
            let is_valid =
                window_ms > 0 && call.tsi <= Tsi::MAX && pending.is_none_or(are_in_order);
            let bytes = call.emit(&key);
            let has_last = call.repair.as_ref().is_some_and(|repair| repair.last.is_some());
            let size = bytes.len() - if has_last { RepairCall::LAST_SIZE } else { 0 };
            let capacity = RollCall::capacity(size as u16, pending.map(<[_]>::len));
            assert_eq!(capacity, Some(fingerprints.len().min(300)));
            match UnverifiedRollCall::parse(&bytes) {
                Ok(parsed) => {
                    assert!(is_valid);
                    assert_eq!(parsed.verify(&key.public_key()), Ok(call.clone()));
                    let needs = call.repair.iter().flat_map(|repair| &repair.pending);
                    let covers =
                        |need| call.repair.as_ref().is_some_and(|repair| repair.covers(need));
                    assert!(needs.into_iter().all(covers));
                    let report = report::report();
                    let _ = call.lists(&report.receiver, &report.label);
                }
                Err(error) => assert!(!is_valid && !error.to_string().is_empty()),
            }
            if let Err(error) = UnverifiedRollCall::parse(&patched(&bytes, *at, *cut, patch)) {
                assert!(!error.to_string().contains(char::is_control));
            }
        },
    );
}
