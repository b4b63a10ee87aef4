//! A sender that starts again sends repair symbols, whose blocks are encoded first.

use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{Esi, FecScheme, Oti, Sbn};
use fontana_proto::{
    BatchId, Endpoint, Instant, Output, SendDone, SendJob, SendMode, SendObject, Sender,
    SenderConfig, TransmissionSchedule,
};
use fontana_wire::{Toi, Tsi};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

const SYMBOL_BYTES: u16 = 1_400;
/// 200 Mbit/s.
const RATE: u64 = 25_000_000;
/// Bytes of blocks per second that the driver encodes.
const ENCODED_PER_SECOND: u64 = 600_000_000;
const BLOCKS: u8 = 77;

/// A sender of 1 GiB in blocks of about 10 000 symbols, with the windows of 256 MiB of memory.
fn sender(opening_permille: u32) -> Sender {
    Sender::new(config(opening_permille))
}

fn config(opening_permille: u32) -> SenderConfig {
    let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: BLOCKS, sub_blocks: 1, alignment: 4 });
    let oti = Oti { transfer_length: 1 << 30, symbol_size: SYMBOL_BYTES, scheme };
    let layout = oti.layout().unwrap();
    let objects = vec![SendObject { toi: Toi(1), layout, source_pass: false }];
    SenderConfig {
        round_symbols: 41_000,
        opening_permille,
        ..SenderConfig::new(Tsi(1), objects, RATE, 1)
    }
}

/// The share of the rate that is used in each second, if batches are encoded one after the other.
fn shares_of_rate(mut sender: Sender, seconds: u64) -> Vec<f64> {
    let mut now = Instant::ZERO;
    let (mut encoding, mut free_at): (VecDeque<(Instant, BatchId)>, _) = (VecDeque::new(), now);
    let block =
        Duration::from_nanos((1 << 30) * 1_000_000_000 / u64::from(BLOCKS) / ENCODED_PER_SECOND);
    let (mut shares, mut before, mut header) = (Vec::new(), 0, Vec::new());
    while (shares.len() as u64) < seconds {
        while let Some(&(_, batch)) = encoding.front().filter(|(done, _)| *done <= now) {
            encoding.pop_front();
            sender.handle_done(now, SendDone::Prepared { batch });
        }
        if sender.poll_timeout().is_some_and(|due| due <= now) {
            sender.handle_timeout(now);
        }
        while let Some(output) = sender.poll_output(now, &mut header) {
            if let Output::Job(SendJob::Prepare { batch, .. }) = output {
                free_at = free_at.max(now) + block;
                encoding.push_back((free_at, batch));
            }
            header.clear();
        }
        now = now + Duration::from_millis(1);
        if now.as_nanos().is_multiple_of(1_000_000_000) {
            let sent = sender.stats().wire_bytes;
            shares.push((sent - before) as f64 / RATE as f64);
            before = sent;
        }
    }
    shares
}

#[test]
fn a_restarted_sender_reaches_its_rate_within_a_second() {
    let without = shares_of_rate(sender(0), 10);
    assert!(without.iter().take(5).all(|&share| share < 0.2), "{without:.2?}");
    let shares = shares_of_rate(sender(250), 30);
    assert!(shares[0] > 0.8 && shares[1..].iter().all(|&share| share > 0.9), "{shares:.2?}");
}

/// The first symbols that a sender sends.
fn transmitted(sender: &mut Sender, count: usize) -> Vec<(Sbn, Esi)> {
    let (mut now, mut header) = (Instant::ZERO, Vec::new());
    let mut sent = Vec::new();
    while sent.len() < count {
        let mut prepared = Vec::new();
        while let Some(output) = sender.poll_output(now, &mut header) {
            match output {
                Output::Transmit { symbol: Some(symbol), .. } => {
                    sent.push((symbol.block.sbn, symbol.esi));
                }
                Output::Job(SendJob::Prepare { batch, .. }) => prepared.push(batch),
                _ => {}
            }
            header.clear();
        }
        for batch in prepared {
            sender.handle_done(now, SendDone::Prepared { batch });
        }
        now = sender.poll_timeout().unwrap_or(now + Duration::from_millis(1)).max(now);
        sender.handle_timeout(now);
    }
    sent.truncate(count);
    sent
}

/// The runs of the opening are followed by the even order: no symbol is sent twice.
#[test]
fn every_block_has_a_run_and_then_all_take_turns() {
    let mut sender = sender(100);
    let sent = transmitted(&mut sender, 100_000);
    let blocks = |range: std::ops::Range<usize>| {
        sent[range].iter().map(|(sbn, _)| sbn.0).collect::<BTreeSet<_>>().len()
    };
    // A block has 9 961 symbols, a tenth of which is its run.
    assert_eq!(blocks(0..990), 2);
    assert_eq!(blocks(0..77_000), usize::from(BLOCKS));
    assert_eq!(blocks(90_000..91_000), usize::from(BLOCKS));
    assert_eq!(sent.iter().collect::<BTreeSet<_>>().len(), sent.len());
}

/// Receivers have the beginning of all blocks from the run before.
#[test]
fn a_pass_without_repair_symbols_goes_on_at_random_unless_its_order_is_chosen() {
    let first = |pass_start, schedule, mode| {
        let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1_000 });
        let oti = Oti { transfer_length: 14_000_000, symbol_size: SYMBOL_BYTES, scheme };
        let objects =
            vec![SendObject { toi: Toi(1), layout: oti.layout().unwrap(), source_pass: false }];
        let mut sender =
            Sender::new(SenderConfig { objects, schedule, mode, pass_start, ..config(0) });
        let sent = transmitted(&mut sender, 10_000);
        assert_eq!(sent.iter().collect::<BTreeSet<_>>().len(), 10_000, "each once");
        sent[0].1.0
    };
    let (even, runs) =
        (TransmissionSchedule::EVEN, TransmissionSchedule::Runs { length: 48, visits: None });
    for schedule in [even, runs] {
        for (start, expected) in [(0, 0), (1 << 31, 500), (3 << 30, 750)] {
            assert_eq!(first(start, schedule, SendMode::OnDemand), expected);
        }
    }
    let push = SendMode::Push { repair_permille: 0 };
    let sequential = TransmissionSchedule::Sequential { repair_permille: 0 };
    let on_demand = SendMode::OnDemand;
    assert_eq!((first(1 << 31, even, push), first(1 << 31, sequential, on_demand)), (0, 0));
}
