use super::*;
use crate::channel::ChannelId;
use fontana_wire::LayerRates;
use std::time::Duration;

const PACKET: u16 = 1000;

fn layered(rates: Vec<u32>) -> ChannelClock {
    let control = CongestionControl::FixedLayers(LayerRates::listed(rates).unwrap());
    ChannelClock::new(&control, 0, PACKET, Instant::ZERO, 7).unwrap()
}

/// Packets up to `seconds`.
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
fn a_session_on_one_channel_has_consecutive_numbers_at_even_times() {
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
fn a_late_sender_sends_one_burst_of_overdue_packets() {
    // 10 packets in 2 ms: the burst allows ten at once, including the current one.
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
    // Below one packet in 2 ms, the burst is two packets.
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

/// Bytes on each channel in a window, as fractions of those of the session.
fn shares(sent: &[Emission], from: u64, to: u64, channels: usize) -> Vec<f64> {
    let window = from * 1_000_000..to * 1_000_000;
    let mut counts = vec![0.0; channels];
    for emission in sent.iter().filter(|e| window.contains(&e.at.as_nanos())) {
        counts[usize::from(emission.channel.0)] += 1.0;
    }
    let sum: f64 = counts.iter().sum();
    counts.iter().map(|count| count / sum).collect()
}

fn assert_even(sent: &[Emission], bytes_per_second: u64) {
    let period = u64::from(PACKET) * 1_000_000_000 / bytes_per_second;
    for pair in sent.windows(2) {
        let gap = pair[1].at.as_nanos() - pair[0].at.as_nanos();
        assert!(gap.abs_diff(period) <= 1, "{gap} {period}");
    }
}

#[test]
fn rlc_bursts_are_the_next_level_and_inside_the_rate() {
    let layers = LayerRates::geometric(100_000, 512, 4).unwrap();
    let rlc = crate::congestion::presets::rlc(layers);
    let mut clock =
        ChannelClock::new(&CongestionControl::Rlc(rlc), 0, PACKET, Instant::ZERO, 7).unwrap();
    let sent = run(&mut clock, 10);
    assert_even(&sent, 800_000);
    // Cycle 3 (from 750 ms) ends with the synchronization point of layers 0 to 2.
    let even = shares(&sent, 760, 790, 4);
    assert!((even[0] - 0.125).abs() < 0.05 && (even[3] - 0.5).abs() < 0.05, "{even:?}");
    let burst = shares(&sent, 805, 895, 4);
    assert!((burst[0] - 0.25).abs() < 0.03 && (burst[2] - 0.5).abs() < 0.03, "{burst:?}");
    assert_eq!(burst[3], 0.0);
    assert_eq!(shares(&sent, 905, 995, 4), [0.0, 0.0, 0.0, 1.0]);
    // Cycle 2 ends with that of layer 0 alone; levels 1 and up see no difference.
    let burst = shares(&sent, 555, 645, 4);
    assert!((burst[0] - 0.25).abs() < 0.03 && burst[1] == 0.0, "{burst:?}");
    assert!((burst[3] - 0.5).abs() < 0.03, "{burst:?}");
    for (channel, rate) in [(0, 100), (1, 100), (2, 200), (3, 400)] {
        let count = sent.iter().filter(|e| e.channel.0 == channel).count();
        assert!(count.abs_diff(rate * 10) <= 20, "{channel} {count}");
    }
}

#[test]
fn rlc_synchronization_points_are_nested_and_the_top_layer_has_none() {
    let layers = LayerRates::geometric(100_000, 512, 4).unwrap();
    let points = |rlc: Rlc| {
        let control = CongestionControl::Rlc(rlc);
        let mut clock = ChannelClock::new(&control, 0, PACKET, Instant::ZERO, 7).unwrap();
        let mut points: Vec<Vec<u64>> = vec![Vec::new(); 4];
        for emission in run(&mut clock, 8) {
            let cci = fontana_wire::RlcCci::parse(emission.cci).unwrap();
            if cci.sync_point {
                assert_eq!(cci.layer, emission.channel.0);
                points[usize::from(cci.layer)].push(emission.at.as_nanos() / 250_000_000);
            }
        }
        points
    };
    let nested = points(crate::congestion::presets::rlc(layers.clone()));
    assert_eq!(nested.iter().map(Vec::len).collect::<Vec<_>>(), [31, 15, 7, 0]);
    assert!(nested[2].iter().all(|point| nested[1].contains(point) && point % 4 == 0));
    assert!(nested[1].iter().all(|point| nested[0].contains(point)));
    let mcl = points(crate::congestion::presets::rlc_mcl(layers));
    assert_eq!(mcl[1], [3, 6, 9, 12, 15, 18, 21, 24, 27, 30]);
    assert_eq!(mcl[2], [7, 14, 21, 28]);
}

#[test]
fn flid_triggers_are_nested_and_as_frequent_as_the_level_allows() {
    let layers = LayerRates::geometric(5_000, 512, 6).unwrap();
    let control = CongestionControl::FlidSl(crate::congestion::presets::flid_sl(layers));
    let mut clock = ChannelClock::new(&control, 0, PACKET, Instant::ZERO, 7).unwrap();
    let mut triggers = vec![std::collections::BTreeSet::new(); 6];
    for emission in run(&mut clock, 64) {
        let cci = fontana_wire::FlidCci::parse(emission.cci).unwrap();
        assert_eq!(u64::from(cci.slot), emission.at.as_nanos() / 1_000_000_000);
        if cci.trigger {
            triggers[usize::from(cci.layer)].insert(cci.slot);
        }
    }
    // 20 packets of 1000 bytes in a slot: all slots up to 20 kB/s, then half, a quarter.
    let counts: Vec<_> = triggers.iter().map(std::collections::BTreeSet::len).collect();
    assert_eq!(counts[..3], [64, 64, 64]);
    assert!((32..=33).contains(&counts[3]) && (16..=17).contains(&counts[4]), "{counts:?}");
    assert_eq!(counts[5], 0);
    assert!(triggers[4].is_subset(&triggers[3]) && triggers[3].is_subset(&triggers[2]));
}

/// 10 Mbit/s with the RFC's defaults.
fn webrc() -> fontana_wire::Webrc {
    crate::congestion::presets::webrc(1_250_000, 1400).unwrap()
}

#[test]
fn ten_megabits_in_packets_of_1400_take_19_waves_and_9_base_packets() {
    let webrc = webrc();
    let waves = crate::congestion::waves::Waves::new(&webrc);
    // 892.86 packets per second; (0.75^-19 - 1) x 3 = 706.5, (0.75^-20 - 1) x 3 = 943.0.
    assert!((waves.session_rate() - 892.857).abs() < 0.001);
    assert!((waves.rate_of(18) - 706.5).abs() < 1.0, "{}", waves.rate_of(18));
    assert!((waves.rate_of(19) - 943.0).abs() < 1.0, "{}", waves.rate_of(19));
    assert_eq!((webrc.wave_slots, webrc.quiet_slots, webrc.wave_channels()), (19, 30, 49));
    assert_eq!(waves.base_packets, 9);
    // The last multiple of 9 up to 65536.
    assert_eq!(waves.base_modulus, 65_529);
    // 10 / 0.28768 x (1 / 0.75 - 1) = 11.59 packets in the last slot of a wave.
    assert_eq!(waves.packets_in(1), 12);
    assert_eq!(waves.packets_in(0), 0);
}

#[test]
fn webrc_is_even_and_its_channels_decay() {
    let control = CongestionControl::Webrc(webrc());
    let mut clock = ChannelClock::new(&control, 0, 1400, Instant::ZERO, 7).unwrap();
    let sent = run(&mut clock, 400);
    let period = 1400_u64 * 1_000_000_000 / 1_250_000;
    for pair in sent.windows(2) {
        assert_eq!(pair[1].at.as_nanos() - pair[0].at.as_nanos(), period);
    }
    let mut counts = std::collections::BTreeMap::new();
    for emission in &sent {
        let cci = fontana_wire::WebrcCci::parse(emission.cci).unwrap();
        let slot = emission.at.as_nanos() / 10_000_000_000;
        assert_eq!(u64::from(cci.slot), slot % 49);
        assert_eq!(emission.channel.0, if cci.channel == 49 { 0 } else { cci.channel + 1 });
        *counts.entry((slot, cci.channel)).or_insert(0_u32) += 1;
    }
    for slot in 0..40_u64 {
        assert_eq!(counts[&(slot, 49)], 9, "base packets of slot {slot}");
        let active = counts.keys().filter(|(s, _)| *s == slot).count();
        assert_eq!(active, 20, "{slot}");
        // Each earlier slot has 4/3 as many packets: 12, 15, 20, 27, ...
        for to_go in 0..18_u32 {
            let count = counts[&(slot, ((slot + u64::from(to_go)) % 49) as u8)];
            let exact = 11.587 * 0.75_f64.powi(-(to_go as i32));
            assert!((f64::from(count) - exact).abs() <= 1.0, "{slot} {to_go} {count} {exact}");
        }
    }
}

#[test]
fn a_wave_ends_with_65535_and_the_base_channel_begins_a_slot_with_a_multiple_of_9() {
    let control = CongestionControl::Webrc(webrc());
    let mut clock = ChannelClock::new(&control, 0, 1400, Instant::ZERO, 7).unwrap();
    let mut last = std::collections::BTreeMap::new();
    let mut base_slot = None;
    let mut ended = 0;
    for emission in run(&mut clock, 1000) {
        let cci = fontana_wire::WebrcCci::parse(emission.cci).unwrap();
        if cci.channel == 49 {
            if base_slot.replace(cci.slot) != Some(cci.slot) {
                assert_eq!(cci.sequence % 9, 0);
            }
            continue;
        }
        if let Some((slot, sequence)) = last.insert(cci.channel, (cci.slot, cci.sequence)) {
            if sequence == u16::MAX && slot != cci.slot {
                ended += 1;
            } else {
                assert_eq!(cci.sequence, u16::wrapping_add(sequence, 1), "{cci:?}");
            }
        }
    }
    // 100 slots; 49 channels have begun a second wave.
    assert!(ended > 49, "{ended}");
}

#[test]
fn a_webrc_sender_that_was_late_follows_the_time_and_leaves_no_gaps_in_a_slot() {
    let control = CongestionControl::Webrc(webrc());
    let mut clock = ChannelClock::new(&control, 0, 1400, Instant::ZERO, 7).unwrap();
    let mut last: std::collections::BTreeMap<u8, u16> = std::collections::BTreeMap::new();
    let mut now = Instant::ZERO;
    while now < Instant::from_nanos(30_000_000_000) {
        let emission = clock.peek();
        let cci = fontana_wire::WebrcCci::parse(emission.cci).unwrap();
        let next = last.insert(cci.channel, cci.sequence).map(|n| n.wrapping_add(1));
        assert!(next.is_none_or(|next| next == cci.sequence || cci.channel == 49), "{cci:?}");
        clock.advance();
        // A delay of 5 ms after every packet whose number is a multiple of 97.
        now = emission.at
            + Duration::from_millis(if cci.sequence.is_multiple_of(97) { 5 } else { 0 });
        clock.skip_to(now);
    }
    clock.skip_to(Instant::from_nanos(95_000_000_000));
    let cci = fontana_wire::WebrcCci::parse(clock.peek().cci).unwrap();
    assert_eq!(cci.slot, 9);
}

#[test]
fn a_late_webrc_sender_skips_the_same_share_of_each_wave_but_no_base_packets() {
    let control = CongestionControl::Webrc(webrc());
    let sent = |is_late: bool| {
        let mut clock = ChannelClock::new(&control, 0, 1400, Instant::ZERO, 7).unwrap();
        let mut packets: std::collections::BTreeMap<u8, Vec<u16>> = Default::default();
        let start = Instant::from_nanos(20_000_000_000);
        while clock.peek().at < start + Duration::from_secs(10) {
            let emission = clock.peek();
            let cci = fontana_wire::WebrcCci::parse(emission.cci).unwrap();
            if emission.at >= start {
                packets.entry(cci.channel).or_default().push(cci.sequence);
            }
            clock.advance();
            if is_late {
                // A delay as long as three packets take, after every third packet.
                let pause = if cci.sequence.is_multiple_of(3) { 5_600 } else { 0 };
                clock.skip_to(emission.at + Duration::from_micros(pause));
            }
        }
        packets
    };
    let (punctual, late) = (sent(false), sent(true));
    assert_eq!(punctual[&49], late[&49], "the base channel");
    let count = |packets: &std::collections::BTreeMap<u8, Vec<u16>>| -> usize {
        packets.values().map(Vec::len).sum()
    };
    let share = count(&late) as f64 / count(&punctual) as f64;
    assert!((0.3..0.8).contains(&share), "{share}");
    // Waves with enough packets for statistics. The slot from 20 s on has waves 2 to 20; the newest
    // one gets the remaining packets.
    for (channel, packets) in punctual.range(..20).filter(|(_, packets)| packets.len() > 200) {
        let own = late[channel].len() as f64 / packets.len() as f64;
        assert!((own - share).abs() < 0.15, "wave {channel}: {own}, all: {share}");
        let is_gapless = late[channel].windows(2).all(|w| w[1] == w[0].wrapping_add(1));
        assert!(is_gapless, "wave {channel}");
    }
}

#[test]
fn a_session_with_too_many_waves_for_its_rate_is_refused() {
    let more = fontana_wire::Webrc { wave_slots: 20, ..webrc() };
    let clock =
        |webrc| ChannelClock::new(&CongestionControl::Webrc(webrc), 0, 1400, Instant::ZERO, 7);
    assert!(clock(webrc()).is_ok());
    assert!(matches!(clock(more), Err(CongestionError::Range { .. })));
    assert!(crate::congestion::presets::webrc(70_000_000, 1400).is_ok());
    assert!(crate::congestion::presets::webrc(80_000_000, 1400).is_err());
}
