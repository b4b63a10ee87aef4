//! Runs of consecutive symbols of a block, in the windows of a sender.

use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{FecScheme, Oti};
use fontana_proto::{
    Endpoint, Instant, Output, Pacer, SendDone, SendJob, SendMode, SendObject, Sender,
    SenderConfig, TransmissionSchedule,
};
use fontana_wire::{Toi, Tsi};

const BLOCKS: u8 = 20;
const BLOCK_SYMBOLS: usize = 10_000;

/// The blocks of the first `count` packets of a sender whose windows have `round_symbols` symbols.
fn blocks_sent(schedule: TransmissionSchedule, round_symbols: u32, count: usize) -> Vec<u8> {
    let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: BLOCKS, sub_blocks: 1, alignment: 4 });
    let transfer_length = (usize::from(BLOCKS) * BLOCK_SYMBOLS * 8) as u64;
    let layout = Oti { transfer_length, symbol_size: 8, scheme }.layout().unwrap();
    let mut sender = Sender::new(SenderConfig {
        tsi: Tsi(1),
        objects: vec![SendObject { toi: Toi(1), layout, source_pass: true }],
        first: Vec::new(),
        control: Vec::new(),
        mode: SendMode::OnDemand,
        schedule,
        channels: None,
        rate_bytes_per_second: 1_000_000_000,
        packet_overhead: 28,
        peak_window: Pacer::PEAK_WINDOW,
        round_symbols,
        opening_permille: 0,
        pass_start: 0,
        sequence_in_cci: true,
        omit_padding: false,
        fti_in_packets: false,
        seal: None,
        seed: 1,
    });
    let (mut now, mut header, mut sent) = (Instant::ZERO, Vec::new(), Vec::new());
    while sent.len() < count {
        let mut prepared = Vec::new();
        while let Some(output) = sender.poll_output(now, &mut header) {
            match output {
                Output::Transmit { symbol: Some(symbol), .. } => {
                    sent.push(symbol.block.sbn.0 as u8);
                }
                Output::Job(SendJob::Prepare { batch, .. }) => prepared.push(batch),
                _ => {}
            }
            header.clear();
        }
        for batch in prepared {
            sender.handle_done(now, SendDone::Prepared { batch });
        }
        now = sender.poll_timeout().unwrap_or(now).max(now);
        sender.handle_timeout(now);
    }
    sent.truncate(count);
    sent
}

#[test]
fn packets_come_in_runs_and_blocks_advance_evenly() {
    let of_windows = TransmissionSchedule::Runs { length: 48, visits: Some(32) };
    let of_order = TransmissionSchedule::Runs { length: 48, visits: None };
    for (schedule, round_symbols) in [(of_order, 2_000), (of_order, 41_000), (of_windows, 41_000)] {
        let sent = blocks_sent(schedule, round_symbols, 100_000);
        let runs = sent.chunk_by(|a, b| a == b).count();
        assert!(sent.len() / runs >= 40, "{schedule:?}: {runs} runs");
        // After a hundred runs the blocks have sent equal shares, to within one visit.
        let mut counts = [0_usize; BLOCKS as usize];
        let visit = if schedule == of_order { 48 } else { BLOCK_SYMBOLS.div_ceil(32) };
        for part in sent.chunks(4_800) {
            part.iter().for_each(|&block| counts[usize::from(block)] += 1);
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(most - least <= 2 * visit, "{schedule:?}: {counts:?}");
        }
    }
}
