//! Objects that are added to a running session.

use fontana_fec::codes::no_code::NoCode;
use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{Esi, FecScheme, Oti};
use fontana_proto::{
    ControlObject, Endpoint, Instant, Output, Pacer, SendDone, SendJob, SendMode, SendObject,
    Sender, SenderConfig, TransmissionSchedule,
};
use fontana_wire::{Packet, Toi, Tsi};
use std::collections::BTreeMap;
use std::time::Duration;

const SYMBOLS: u64 = 50;
const SIZE: u16 = 100;

fn oti(scheme: FecScheme) -> Oti {
    Oti { transfer_length: SYMBOLS * u64::from(SIZE), symbol_size: SIZE, scheme }
}

fn object(toi: u128, scheme: FecScheme) -> SendObject {
    SendObject { toi: Toi(toi), layout: oti(scheme).layout().unwrap(), source_pass: true }
}

fn control(toi: u128) -> Vec<ControlObject> {
    let scheme = FecScheme::NoCode(NoCode { max_source_block_length: 1 });
    let oti = Oti { transfer_length: 10, symbol_size: SIZE, scheme };
    vec![ControlObject::new(Toi(toi), oti, &[7; 10], None, 1).unwrap()]
}

fn sender(scheme: FecScheme, schedule: TransmissionSchedule) -> Sender {
    Sender::new(SenderConfig {
        tsi: Tsi(1),
        objects: vec![object(1, scheme)],
        first: Vec::new(),
        control: control(100),
        mode: SendMode::OnDemand,
        schedule,
        channels: None,
        rate_bytes_per_second: 1_000_000,
        packet_overhead: 28,
        peak_window: Pacer::PEAK_WINDOW,
        round_symbols: 16,
        opening_permille: 0,
        pass_start: 0,
        sequence_in_cci: false,
        omit_padding: false,
        fti_in_packets: true,
        seal: None,
        seed: 1,
    })
}

/// The ESIs that some datagrams carried, for each object in their order.
fn send(sender: &mut Sender, now: &mut Instant, datagrams: usize) -> BTreeMap<Toi, Vec<Esi>> {
    let mut sent: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let mut header = Vec::new();
    let mut count = 0;
    while count < datagrams {
        let mut prepared = Vec::new();
        while let Some(output) = sender.poll_output(*now, &mut header) {
            match output {
                Output::Transmit { symbol: Some(symbol), .. } => {
                    sent.entry(symbol.block.toi).or_default().push(symbol.esi);
                    count += 1;
                }
                Output::Transmit { symbol: None, .. } => {
                    let toi = Packet::parse(&header).unwrap().header.toi.unwrap();
                    sent.entry(toi).or_default().push(Esi(0));
                    count += 1;
                }
                Output::Job(SendJob::Prepare { batch, .. }) => prepared.push(batch),
                _ => {}
            }
            header.clear();
        }
        for batch in prepared {
            sender.handle_done(*now, SendDone::Prepared { batch });
        }
        *now = sender.poll_timeout().unwrap_or(*now + Duration::from_micros(10)).max(*now);
        sender.handle_timeout(*now);
    }
    sent
}

#[test]
fn added_objects_are_sent_and_the_others_continue() {
    let raptorq = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
    let no_code = FecScheme::NoCode(NoCode { max_source_block_length: 64 });
    let schedules = [
        TransmissionSchedule::Interleaved { grain: 1 },
        TransmissionSchedule::Sequential { repair_permille: 100 },
        TransmissionSchedule::Random,
    ];
    let cases = schedules.map(|schedule| (raptorq, schedule)).into_iter();
    // A random order of a code without repair symbols draws all symbols at random.
    for (scheme, schedule) in cases.chain(schedules.into_iter().take(2).map(|s| (no_code, s))) {
        let (mut sender, mut now) = (sender(scheme, schedule), Instant::ZERO);
        // Part of the source symbols, part of a planning window.
        let before = send(&mut sender, &mut now, 25);
        assert!(before.contains_key(&Toi(100)), "{schedule:?}");
        sender.extend(&[object(2, scheme)], control(101));
        let after = send(&mut sender, &mut now, 600);
        assert!(!after.contains_key(&Toi(100)), "{schedule:?}: the old descriptor is gone");
        assert!(after[&Toi(101)].len() > 1, "{schedule:?}");
        let first: Vec<_> = before[&Toi(1)].iter().chain(&after[&Toi(1)]).copied().collect();
        for esis in [&first, &after[&Toi(2)]] {
            let source: Vec<_> = esis.iter().take(SYMBOLS as usize).map(|esi| esi.0).collect();
            assert_eq!(source, (0..SYMBOLS as u32).collect::<Vec<_>>(), "{scheme:?} {schedule:?}");
        }
        if scheme == raptorq {
            let mut distinct = first.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), first.len(), "{schedule:?}: no symbol is sent twice");
        }
    }
}

#[test]
fn an_answer_for_a_released_batch_changes_nothing() {
    let scheme = FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 4 });
    let mut sender = sender(scheme, TransmissionSchedule::Interleaved { grain: 1 });
    let (mut header, mut asked, mut released) = (Vec::new(), Vec::new(), Vec::new());
    let mut poll = |sender: &mut Sender, asked: &mut Vec<_>| {
        while let Some(output) = sender.poll_output(Instant::ZERO, &mut header) {
            match output {
                Output::Job(SendJob::Prepare { batch, .. }) => asked.push(batch),
                Output::Job(SendJob::Release { batch }) => released.push(batch),
                _ => {}
            }
        }
    };
    poll(&mut sender, &mut asked);
    assert!(!asked.is_empty());
    sender.extend(&[object(2, scheme)], control(101));
    let mut later = Vec::new();
    poll(&mut sender, &mut later);
    assert!(later.iter().all(|batch| !asked.contains(batch)), "numbers of batches are not reused");
    assert_eq!(released, asked);
    for batch in asked {
        sender.handle_done(Instant::ZERO, SendDone::Prepared { batch });
    }
    let mut now = Instant::ZERO;
    for batch in later {
        sender.handle_done(now, SendDone::Prepared { batch });
    }
    let sent = send(&mut sender, &mut now, 100);
    assert!(sent[&Toi(1)].len() > 20 && sent[&Toi(2)].len() > 20);
}
