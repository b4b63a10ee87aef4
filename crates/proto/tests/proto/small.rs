//! Small content: receivers that join at any time wait for head and manifest no longer than for the
//! content.

use crate::support::world::{
    Content, ReceiverDriver, SenderDriver, Setup, T, receiver_config, run, sender,
};
use fontana_proto::{
    ControlObject, Endpoint, Instant, Output, SendMode, Sender, SenderConfig, SplitMix64,
    TransmissionSchedule, control_oti,
};
use fontana_wire::{Toi, Tsi};
use std::time::Duration;

/// Packets that receivers get until they have content of `symbols` symbols, over that number,
/// ascending. Each receiver loses 30 % and joins at a random time.
fn received(symbols: u64, receptions: u64) -> Vec<f64> {
    let content = Content::new(&[(symbols as usize * usize::from(T), 1)], 1);
    let mut senders = [SenderDriver::new(sender(&content, &Setup::default(), None), &content)];
    let mut random = SplitMix64::new(1, symbols);
    let mut receivers: Vec<_> = (0..receptions)
        .map(|seed| {
            let mut receiver = ReceiverDriver::new(receiver_config(), 0.3, seed);
            // The sender has begun to repeat its control objects.
            let millis = 1_000 + u64::from(random.below(2_000));
            receiver.joins_at = Instant::ZERO + Duration::from_millis(millis);
            receiver
        })
        .collect();
    run(&mut senders, &mut receivers, Duration::from_secs(60));
    let packets = |receiver: &ReceiverDriver| {
        assert!(receiver.has(&content));
        receiver.endpoint.stats().datagrams as f64 / symbols as f64
    };
    let mut all: Vec<f64> = receivers.iter().map(packets).collect();
    all.sort_by(f64::total_cmp);
    all
}

#[test]
fn small_content_takes_little_more_than_its_size_at_a_loss_of_30_percent() {
    // The symbols of 200, 400 and 3200 kB, of 1400 bytes each.
    for (symbols, most_late) in [(143, 2.5), (286, 1.2), (2_288, 1.3)] {
        let all = received(symbols, 300);
        let (median, late) = (all[150], all[285]);
        println!("{symbols} symbols: median {median:.2}, 95th percentile {late:.2}");
        assert!(median <= 1.15, "{symbols} symbols: {median}");
        assert!(late <= most_late, "{symbols} symbols: {late}");
    }
}

/// Bytes that a sender sends in ten seconds that has only a control object of so many symbols.
fn sent_without_content(symbols: usize, mode: SendMode, rate: u64) -> u64 {
    let bytes = vec![7; symbols * 1000];
    let object =
        ControlObject::new(Toi::MANIFEST, control_oti(bytes.len(), 1000), &bytes, None, 1).unwrap();
    let mut sender = Sender::new(SenderConfig {
        tsi: Tsi(5),
        objects: Vec::new(),
        first: Vec::new(),
        control: vec![object],
        mode,
        schedule: TransmissionSchedule::EVEN,
        channels: None,
        rate_bytes_per_second: rate,
        packet_overhead: 28,
        peak_window: Duration::ZERO,
        round_symbols: 1024,
        opening_permille: 0,
        pass_start: 0,
        sequence_in_cci: true,
        omit_padding: false,
        fti_in_packets: false,
        seal: None,
        seed: 1,
    });
    let (mut sent, mut header) = (0, Vec::new());
    for ms in 0..10_000 {
        let now = Instant::ZERO + Duration::from_millis(ms);
        sender.handle_timeout(now);
        while let Some(output) = sender.poll_output(now, &mut header) {
            if matches!(output, Output::Transmit { .. }) {
                sent += header.len() as u64 + 28;
                header.clear();
            }
        }
    }
    sent
}

/// The names of many empty files are sent as fast as content would be, and few as before.
#[test]
fn names_of_empty_files_are_sent_at_the_rate() {
    let mode = SendMode::OnDemand;
    let many = sent_without_content(2_000, mode, 1_000_000);
    assert!((9_000_000..=10_100_000).contains(&many), "{many} bytes at 1 MB/s");
    let slow = sent_without_content(2_000, mode, 100_000);
    assert!((900_000..=1_010_000).contains(&slow), "{slow} bytes at 100 kB/s");
    let few = sent_without_content(3, mode, 1_000_000);
    assert!((450_000..=550_000).contains(&few), "{few} bytes: one packet in 20 ms");
}
