//! A sender whose disk, memory and clock do anything.

use crate::fuzz::{SEQUENCES, advance};
use crate::support::world::{PACKET_BYTES, T, disk_error};
use bolero::check;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{FecScheme, ObjectLayout, Oti};
use fontana_proto::{
    BatchId, BlockId, ChannelClock, ControlObject, Endpoint, Instant, Output, Pacer, SendDone,
    SendJob, SendMode, SendObject, Sender, SenderConfig, TransmissionSchedule, control_oti,
    presets,
};
use fontana_testing::Script;
use fontana_wire::{CongestionControl, LayerRates, Packet, Toi, Tsi};
use std::collections::BTreeMap;
use std::time::Duration;

fn layout(script: &mut Script<'_>) -> ObjectLayout {
    let blocks = 1 + script.below(6);
    let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: blocks, sub_blocks: 1, alignment: 4 });
    let length = u64::from(blocks) * 64 * u64::from(1 + script.below(30));
    Oti { transfer_length: length, symbol_size: T, scheme }.layout().unwrap()
}

fn control_objects(script: &mut Script<'_>) -> Vec<ControlObject> {
    let object = |index: u32| {
        let bytes = vec![index as u8; 1 + usize::from(script.u8())];
        let toi = Toi::from(0xFFFF_FFFF - index);
        let intervals = script.below(4).into();
        ControlObject::new(toi, control_oti(bytes.len(), T), &bytes, None, intervals).unwrap()
    };
    (0..2).map(object).collect()
}

fn congestion(script: &mut Script<'_>, rate: u64) -> Option<CongestionControl> {
    let layers = || LayerRates::geometric((rate >> 4).max(1) as u32, 512, 4).ok();
    match script.below(6) {
        0 => Some(CongestionControl::FixedLayers(layers()?)),
        1 => Some(CongestionControl::Rlc(presets::rlc(layers()?))),
        2 => Some(CongestionControl::FlidSl(presets::flid_sl(layers()?))),
        3 => Some(CongestionControl::Webrc(presets::webrc_fast(rate as u32, PACKET_BYTES).ok()?)),
        _ => None,
    }
}

fn config(script: &mut Script<'_>) -> SenderConfig {
    let rate = 1_000 << script.below(12);
    let seed = script.u64();
    let objects: Vec<_> = (1..=1 + u128::from(script.below(4)))
        .map(|toi| SendObject {
            toi: Toi(toi),
            layout: layout(script),
            source_pass: !script.once_in(4),
        })
        .collect();
    let first = |_| {
        let toi = Toi(script.below(6).into());
        BlockId { toi, sbn: fontana_fec::Sbn(script.below(8).into()) }
    };
    let first = Some((0..3).map(first).collect());
    let control = control_objects(script);
    let clock = |control| ChannelClock::new(&control, rate, PACKET_BYTES, Instant::ZERO, seed).ok();
    SenderConfig {
        first,
        control,
        mode: match script.below(3) {
            0 => SendMode::Push { repair_permille: script.u16().into() },
            _ => SendMode::OnDemand,
        },
        schedule: match script.below(4) {
            0 => TransmissionSchedule::EVEN,
            1 => TransmissionSchedule::Runs {
                length: script.u8().into(),
                visits: script.once_in(2).then(|| script.u8().into()),
            },
            2 => TransmissionSchedule::Sequential { repair_permille: script.u8().into() },
            _ => TransmissionSchedule::Interleaved { grain: script.u8().into() },
        },
        channels: congestion(script, rate).and_then(clock),
        peak_window: if script.once_in(2) { Duration::ZERO } else { Pacer::PEAK_WINDOW },
        round_symbols: script.u8().into(),
        opening_permille: if script.once_in(2) { 0 } else { script.u16().into() },
        sequence_in_cci: script.once_in(2),
        omit_padding: script.once_in(2),
        fti_in_packets: script.once_in(2),
        ..SenderConfig::new(Tsi(7), objects, rate, seed)
    }
}

/// The driver of a sender: batches that it prepares, late or never.
#[derive(Default)]
struct Runner {
    /// Symbols of each batch, and whether they are prepared.
    batches: BTreeMap<BatchId, (usize, bool)>,
    waiting: Vec<BatchId>,
    bytes: u64,
}

impl Runner {
    fn poll(&mut self, sender: &mut Sender, now: Instant) {
        let mut header = Vec::new();
        for count in 0.. {
            assert!(count < 20_000, "a sender does not stop to send");
            header.clear();
            match sender.poll_output(now, &mut header) {
                Some(Output::Transmit { symbol, .. }) => {
                    assert!(Packet::parse(&header).is_ok());
                    self.bytes += header.len() as u64 + 28;
                    if let Some(symbol) = symbol {
                        let (count, is_prepared) = self.batches[&symbol.batch];
                        assert!(is_prepared, "a symbol that is not prepared");
                        assert!((symbol.index as usize) < count, "a symbol beyond its batch");
                        self.bytes += u64::from(symbol.size);
                    }
                }
                Some(Output::Job(SendJob::Prepare { batch, esis, .. })) => {
                    assert!(self.batches.insert(batch, (esis.len(), false)).is_none());
                    self.waiting.push(batch);
                }
                Some(Output::Job(SendJob::Release { batch })) => {
                    assert!(self.batches.remove(&batch).is_some(), "released twice");
                    self.waiting.retain(|&waiting| waiting != batch);
                }
                Some(Output::Event(_)) => {}
                Some(other) => panic!("a sender asked for {other:?}"),
                None => return,
            }
        }
    }

    fn answer(&mut self, sender: &mut Sender, now: Instant, index: usize, fails: bool) {
        let batch = self.waiting.swap_remove(index);
        let done = if fails {
            SendDone::Failed { batch, is_alone: batch.0.is_multiple_of(2), error: disk_error() }
        } else {
            self.batches.get_mut(&batch).unwrap().1 = true;
            SendDone::Prepared { batch }
        };
        sender.handle_done(now, done);
        self.poll(sender, now);
    }
}

#[test]
fn any_answers_objects_and_times() {
    check!().with_iterations(SEQUENCES).for_each(|input: &[u8]| {
        let mut script = Script::new(input);
        let config = config(&mut script);
        let rate = config.rate_bytes_per_second;
        let mut sender = Sender::new(config);
        let mut runner = Runner::default();
        let mut now = Instant::ZERO;
        let mut next_toi = 100;
        for _ in 0..Script::STEPS {
            now = advance(&mut script, now);
            for _ in 0..100 {
                sender.handle_timeout(now);
                runner.poll(&mut sender, now);
                if sender.poll_timeout().is_none_or(|due| due > now) {
                    break;
                }
            }
            for _ in 0..script.below(6) {
                if !runner.waiting.is_empty() {
                    let index = usize::from(script.u8()) % runner.waiting.len();
                    let fails = script.once_in(32);
                    runner.answer(&mut sender, now, index, fails);
                }
            }
            let due = sender.poll_timeout();
            assert!(due.is_none_or(|due| due > now), "not done with the present time");
            if script.once_in(32) {
                let layout = layout(&mut script);
                let object = SendObject { toi: Toi(next_toi), layout, source_pass: true };
                next_toi += 1;
                let control = control_objects(&mut script);
                sender.extend(&[object], control);
                runner.poll(&mut sender, now);
            }
        }
        let seconds = now.as_nanos() as f64 / 1e9;
        let most = rate as f64 * (seconds + 1.0) + 4096.0;
        assert!(runner.bytes as f64 <= most, "{} bytes in {seconds} s at {rate}", runner.bytes);
    });
}
