use super::*;
use fontana_wire::LayerRates;

const PACKET: u16 = 1000;

fn layered(rates: Vec<u32>) -> ChannelClock {
    let control = CongestionControl::FixedLayers(LayerRates::listed(rates).unwrap());
    ChannelClock::new(&control, 0, PACKET, Instant::ZERO, 7).unwrap()
}

/// What leaves up to `seconds`.
fn run(clock: &mut ChannelClock, seconds: u64) -> Vec<Emission> {
    let end = Instant::from_nanos(seconds * 1_000_000_000);
    let mut sent = Vec::new();
    while clock.peek().at < end {
        sent.push(clock.peek());
        clock.advance();
    }
    sent
}

#[test]
fn a_session_on_one_channel_is_a_comb_of_consecutive_numbers() {
    let fixed = CongestionControl::FixedRate;
    let mut clock = ChannelClock::new(&fixed, 3_000_000, PACKET, Instant::ZERO, 7).unwrap();
    let sent = run(&mut clock, 1);
    assert_eq!(sent.len(), 3000);
    for (i, pair) in sent.windows(2).enumerate() {
        let gap = pair[1].at.as_nanos() - pair[0].at.as_nanos();
        assert!((333_333..=333_334).contains(&gap), "{gap} at {i}");
        assert_eq!(pair[1].cci.low32(), pair[0].cci.low32().wrapping_add(1));
        assert_eq!(pair[0].channel, ChannelId(0));
    }
}

#[test]
fn every_layer_gets_its_rate_at_any_time_to_within_a_packet_or_two() {
    let rates = [100_000, 100_000, 200_000, 400_000, 800_000, 50_000];
    let mut clock = layered(rates.to_vec());
    let mut counts = [0_u32; 6];
    for emission in run(&mut clock, 5) {
        counts[usize::from(emission.channel.0)] += 1;
        let seconds = emission.at.as_nanos() as f64 / 1e9;
        for (count, rate) in counts.iter().zip(rates) {
            let due = f64::from(rate) * seconds / f64::from(PACKET);
            assert!((f64::from(*count) - due).abs() < 2.0, "{counts:?} at {seconds}");
        }
    }
    assert_eq!(counts.iter().sum::<u32>(), 8250);
}

#[test]
fn numbers_are_per_channel_and_start_anywhere() {
    let mut clock = layered(vec![1000, 2000, 4000]);
    let mut last: [Option<u32>; 3] = [None; 3];
    for emission in run(&mut clock, 10) {
        let previous = &mut last[usize::from(emission.channel.0)];
        let number = emission.cci.low32();
        assert!(previous.is_none_or(|last| number == last.wrapping_add(1)));
        *previous = Some(number);
    }
    assert_ne!(last[0], last[1]);
}

#[test]
fn a_late_sender_makes_up_for_a_burst_and_no_more() {
    // 10 packets in 2 ms: the burst allows ten at once, one of which is the one that is due.
    let mut clock = layered(vec![1_000_000, 4_000_000]);
    run(&mut clock, 1);
    let now = Instant::from_nanos(1_500_000_000);
    clock.skip_to(now);
    let mut overdue = 0;
    while clock.peek().at <= now {
        overdue += 1;
        clock.advance();
    }
    assert_eq!(overdue, 10);
    // Slower than a packet in 2 ms, it is two.
    let mut clock = layered(vec![1000]);
    clock.skip_to(Instant::from_nanos(30_000_000_000));
    clock.advance();
    assert!(clock.peek().at <= Instant::from_nanos(30_000_000_000));
    clock.advance();
    assert!(clock.peek().at > Instant::from_nanos(30_000_000_000));
}

#[test]
fn a_sender_that_is_not_late_loses_nothing() {
    let mut clock = layered(vec![1_000_000, 4_000_000]);
    let punctual = run(&mut clock.clone(), 1);
    for expected in punctual {
        clock.skip_to(expected.at + Duration::from_micros(1700));
        assert_eq!(clock.peek(), expected);
        clock.advance();
    }
}
