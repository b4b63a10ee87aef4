//! Congestion control behind bottlenecks: one sender, no feedback, receivers that join and leave.

use crate::support::bottleneck::{Link, Network, Router, at, mbit};
use fontana_proto::{
    BreakerLimits, ChannelId, FirstChannel, Instant, PacketSeen, SequenceTracker, SplitMix64,
    SubscriptionError, SubscriptionLimits, presets, subscribe,
};
use fontana_wire::{Cci, CongestionControl, LayerRates};
use std::time::Duration;

const PACKET: u16 = 1400;
const NO_BREAKER: SubscriptionLimits =
    SubscriptionLimits { max_channels: 64, max_bytes_per_second: u64::MAX, breaker: None };

fn link(megabits: u64) -> Link {
    let (queue, delay) = (Duration::from_millis(100), Duration::from_millis(20));
    Link { bytes_per_second: mbit(megabits), queue, delay }
}

/// One receiver behind each bottleneck.
fn star(control: &CongestionControl, megabits: &[u64], router: Router) -> Network {
    let links: Vec<_> = megabits.iter().map(|&megabits| link(megabits)).collect();
    let mut network = Network::new(control, PACKET, &links);
    for index in 0..links.len() {
        network.receiver(control, &NO_BREAKER, index, router);
    }
    network
}

/// Levels of 0.25, 0.5, 1, ... 128 Mbit/s.
fn doubling() -> LayerRates {
    LayerRates::geometric(31_250, 512, 10).unwrap()
}

fn webrc(megabits: u32) -> CongestionControl {
    CongestionControl::Webrc(presets::webrc_fast(megabits * 125_000, PACKET).unwrap())
}

/// Runs for some time, then counts for some time; prints and returns use and loss of each link.
fn measure(network: &mut Network, megabits: &[u64], from: u64, to: u64) -> Vec<(f64, f64)> {
    network.run_until(at(from));
    network.reset_counters();
    network.run_until(at(to));
    let measured = megabits.iter().enumerate().map(|(index, &megabits)| {
        let bytes = network.receivers[index].bytes as f64;
        (bytes / (mbit(megabits) * (to - from)) as f64, network.loss(index))
    });
    let measured: Vec<_> = measured.collect();
    for ((used, loss), megabits) in measured.iter().zip(megabits) {
        println!("{megabits:3} Mbit/s: {used:.3} used, {:.2} % lost", loss * 100.0);
    }
    measured
}

#[test]
fn webrc_fills_any_bottleneck_and_loses_next_to_nothing() {
    let (control, megabits) = (webrc(100), [1, 4, 16, 64]);
    let mut network = star(&control, &megabits, Router::default());
    for (used, loss) in measure(&mut network, &megabits, 60, 120) {
        assert!(used >= 0.9 && loss < 0.01, "{used} {loss}");
    }
}

#[test]
fn webrc_uses_three_quarters_and_loses_less_than_five_per_cent_with_slots_of_ten_seconds() {
    let control = CongestionControl::Webrc(presets::webrc(mbit(20) as u32, PACKET).unwrap());
    let megabits = [1, 4, 16];
    let mut network = star(&control, &megabits, Router::default());
    for (used, loss) in measure(&mut network, &megabits, 600, 1200) {
        assert!(used >= 0.75 && loss < 0.05, "{used} {loss}");
    }
}

#[test]
fn webrc_takes_a_whole_session_that_fits() {
    let control = webrc(20);
    let mut network = star(&control, &[100], Router::default());
    let measured = measure(&mut network, &[20], 30, 60);
    assert!(measured[0].0 > 0.9 && measured[0].1 == 0.0, "{measured:?}");
}

#[test]
fn webrc_bears_leaves_that_take_ten_seconds() {
    let (control, megabits) = (webrc(20), [1, 4]);
    let router = Router { leave_takes: Duration::from_secs(10), ..Router::default() };
    let mut network = star(&control, &megabits, router);
    for (used, loss) in measure(&mut network, &megabits, 60, 150) {
        assert!(used >= 0.7 && loss < 0.05, "{used} {loss}");
    }
}

#[test]
fn webrc_goes_down_with_its_bottleneck_and_up_again() {
    let control = webrc(20);
    let mut network = star(&control, &[8], Router::default());
    network.run_until(at(40));
    network.set_rate(0, mbit(1));
    let slow = measure(&mut network, &[1], 80, 120);
    assert!(slow[0].0 > 0.7 && slow[0].1 < 0.05, "{slow:?}");
    network.set_rate(0, mbit(8));
    let fast = measure(&mut network, &[8], 220, 280);
    assert!(fast[0].0 > 0.7 && fast[0].1 < 0.05, "{fast:?}");
}

#[test]
fn rlc_settles_where_its_bottleneck_is() {
    let control = CongestionControl::Rlc(presets::rlc(doubling()));
    // Levels are 0.25 Mbit/s x 2^(channels - 1): 1 in 1.5 Mbit/s, and so on.
    let megabits = [3, 6, 24, 96];
    let mut network = star(&control, &megabits, Router::default());
    measure(&mut network, &megabits, 240, 480);
    for (index, right) in [4, 5, 7, 9].into_iter().enumerate() {
        let receiver = &network.receivers[index];
        let share = receiver.share_at(|level| level == right || level + 1 == right);
        println!("level {right}: {:.2}, exactly {:.2}", share, receiver.share_at(|l| l == right));
        assert!(share > 0.8, "{right}: {:?}", receiver.levels);
        assert!(network.loss(index) < 0.05);
    }
}

#[test]
fn rlc_receivers_behind_one_bottleneck_are_at_one_level() {
    let control = CongestionControl::Rlc(presets::rlc(doubling()));
    let mut network = Network::new(&control, PACKET, &[link(3)]);
    network.receiver(&control, &NO_BREAKER, 0, Router::default());
    network.run_until(at(20));
    network.receiver(&control, &NO_BREAKER, 0, Router::default());
    network.run_until(at(120));
    network.reset_counters();
    network.run_until(at(300));
    let [a, b] = [0, 1].map(|index| &network.receivers[index]);
    let same = a.levels.iter().zip(&b.levels).filter(|(a, b)| a == b).count();
    assert!(same * 10 >= a.levels.len() * 9, "{:?} {:?}", a.levels, b.levels);
    assert!(a.bytes.abs_diff(b.bytes) * 10 < a.bytes, "{} {}", a.bytes, b.bytes);
}

#[test]
fn rlc_without_bursts_and_flid_sl_keep_within_their_bottleneck() {
    let schemes = [
        CongestionControl::Rlc(presets::rlc_mcl(doubling())),
        CongestionControl::FlidSl(presets::flid_sl(doubling())),
    ];
    for control in schemes {
        let megabits = [3, 24];
        let mut network = star(&control, &megabits, Router::default());
        for (used, loss) in measure(&mut network, &megabits, 120, 360) {
            assert!(used > 0.5 && loss < 0.06, "{}: {used} {loss}", control.name());
        }
    }
}

fn schemes() -> [CongestionControl; 3] {
    [
        CongestionControl::Rlc(presets::rlc(doubling())),
        CongestionControl::FlidSl(presets::flid_sl(doubling())),
        webrc(20),
    ]
}

#[test]
fn joins_that_are_ignored_leave_a_receiver_with_what_it_has_and_ask_seldom() {
    for control in schemes() {
        let router = Router { grafts: |channel| channel == 0, ..Router::default() };
        let mut network = star(&control, &[64], router);
        network.run_until(at(300));
        let receiver = &network.receivers[0];
        assert!(receiver.bytes > 0);
        assert!((1..60).contains(&receiver.joins), "{}: {}", control.name(), receiver.joins);
        // The router comes to its senses.
        network.receivers[0].router.grafts = |_| true;
        network.run_until(at(330));
        network.reset_counters();
        network.run_until(at(480));
        assert!(network.receivers[0].bytes > mbit(5) * 150, "{}", control.name());
    }
}

#[test]
fn a_receiver_that_hears_only_its_higher_layers_keeps_them() {
    for control in schemes() {
        let mut network = star(&control, &[8], Router::default());
        network.run_until(at(60));
        for channel in [0, 1] {
            network.receivers[0].cut_off(channel);
        }
        network.run_until(at(120));
        network.reset_counters();
        network.run_until(at(180));
        assert!(network.receivers[0].bytes > mbit(1) * 60, "{}", control.name());
    }
}

#[test]
fn a_layer_that_never_comes_is_left_alone() {
    let control = CongestionControl::Rlc(presets::rlc(doubling()));
    let router = Router { grafts: |channel| channel != 2, ..Router::default() };
    let mut network = star(&control, &[8], router);
    network.run_until(at(60));
    network.reset_counters();
    network.run_until(at(180));
    let receiver = &network.receivers[0];
    assert!(receiver.share_at(|level| level == 2) > 0.3, "{:?}", receiver.levels);
    assert!(receiver.share_at(|level| level <= 3) > 0.9, "{:?}", receiver.levels);
}

#[test]
fn slow_leaves_are_waited_for() {
    for control in schemes() {
        let router = Router { leave_takes: Duration::from_secs(10), ..Router::default() };
        let mut network = star(&control, &[3], router);
        let measured = measure(&mut network, &[3], 120, 360);
        assert!(measured[0].0 > 0.4 && measured[0].1 < 0.2, "{}: {measured:?}", control.name());
    }
}

#[test]
fn the_breaker_leaves_a_hopeless_session_and_comes_back() {
    let breaker = BreakerLimits { max_pause: Duration::from_secs(120), ..BreakerLimits::default() };
    let limits = SubscriptionLimits { breaker: Some(breaker), ..NO_BREAKER };
    let control = CongestionControl::Rlc(presets::rlc(doubling()));
    // The lowest level is more than twice the bottleneck.
    let slow = Link { bytes_per_second: 12_000, ..link(1) };
    let mut network = Network::new(&control, PACKET, &[slow]);
    network.receiver(&control, &limits, 0, Router::default());
    network.run_until(at(29));
    assert_eq!(network.receivers[0].control.level().channels, 1);
    network.run_until(at(600));
    let receiver = &network.receivers[0];
    assert!(receiver.share_at(|level| level == 0) > 0.6, "{:?}", receiver.levels);
    assert!((3..6).contains(&receiver.joins), "{}", receiver.joins);
    // The link gets better, and it stays.
    network.set_rate(0, mbit(3));
    network.run_until(at(800));
    network.reset_counters();
    network.run_until(at(900));
    assert_eq!(network.receivers[0].share_at(|level| level == 0), 0.0);
}

#[test]
fn the_breaker_bears_with_receivers_that_are_still_finding_their_rate() {
    let limits = SubscriptionLimits { breaker: Some(BreakerLimits::default()), ..NO_BREAKER };
    for control in [webrc(60), CongestionControl::Rlc(presets::rlc(doubling()))] {
        let mut network = Network::new(&control, PACKET, &[link(1), link(4)]);
        for index in 0..2 {
            network.receiver(&control, &limits, index, Router::default());
        }
        network.run_until(at(120));
        for receiver in &network.receivers {
            assert_eq!(receiver.share_at(|level| level == 0), 0.0, "{}", control.name());
        }
    }
}

#[test]
fn limits_are_kept_and_those_below_the_lowest_level_are_refused() {
    let first = FirstChannel { now: Instant::ZERO, first_packet_after: None };
    let fixed = CongestionControl::FixedLayers(doubling());
    let with = |max_channels, max_bytes_per_second| {
        let limits = SubscriptionLimits { max_channels, max_bytes_per_second, breaker: None };
        subscribe(&fixed, &limits, first).map(|control| control.level())
    };
    assert_eq!(with(64, 250_000).unwrap().channels, 4);
    assert_eq!(with(64, 249_999).unwrap().channels, 3);
    assert_eq!(with(2, 250_000).unwrap().channels, 2);
    let refused = SubscriptionError::TooSlow { least: 31_250, limit: 31_249 };
    assert_eq!(with(64, 31_249), Err(refused));
    assert_eq!(with(0, u64::MAX), Err(SubscriptionError::NoChannels));

    for control in schemes() {
        let limits = SubscriptionLimits { max_bytes_per_second: mbit(3), ..NO_BREAKER };
        let mut network = Network::new(&control, PACKET, &[link(64)]);
        network.receiver(&control, &limits, 0, Router::default());
        let measured = measure(&mut network, &[3], 60, 120);
        assert!((0.55..1.05).contains(&measured[0].0), "{}: {measured:?}", control.name());
    }
}

#[test]
fn more_losses_in_an_epoch_than_fit_a_count_are_many_losses() {
    let control = webrc(60);
    let base = control.channel_count() - 1;
    let first = FirstChannel { now: Instant::ZERO, first_packet_after: None };
    let mut under_test = subscribe(&control, &NO_BREAKER, first).unwrap();
    let mut sequence = SequenceTracker::new(control.numbering());
    for packet in 0..200_000_u64 {
        let number = (packet * 32_000 % 65_000) as u16;
        let cci = fontana_wire::WebrcCci { slot: 0, channel: base, sequence: number }.emit();
        let lost = sequence.on_packet(Instant::ZERO, ChannelId::BASE, cci, 0);
        let seen = PacketSeen {
            channel: ChannelId::BASE,
            cci,
            congestion_experienced: false,
            lost,
            has_gap: sequence.has_gap(),
        };
        under_test.on_packet(Instant::ZERO, &seen);
    }
    under_test.on_timeout(at(1), &mut sequence);
    assert!(under_test.level().channels <= 2, "the base channel and a first wave");
}

#[test]
fn no_packet_makes_a_control_panic_or_grow() {
    let mut random = SplitMix64::new(5, 5);
    let fixed = CongestionControl::FixedLayers(doubling());
    for control in schemes().into_iter().chain([fixed, CongestionControl::FixedRate]) {
        let first = FirstChannel { now: Instant::ZERO, first_packet_after: None };
        let mut under_test = subscribe(&control, &SubscriptionLimits::default(), first).unwrap();
        let mut sequence = SequenceTracker::new(control.numbering());
        let mut now = Instant::ZERO;
        let mut joined = 1_i64;
        for _ in 0..50_000 {
            now = now + Duration::from_micros(u64::from(random.below(40_000)));
            let channel = random.below(70) as u8;
            // Now and then something that is almost right.
            let word = if random.below(4) == 0 {
                random.next_u64() as u32
            } else {
                random.below(4) << 24
                    | u32::from(channel.saturating_sub(1)) << 16
                    | random.below(99)
            };
            let (channel, cci) = (ChannelId(channel), Cci::from_u32(word));
            let congestion_experienced = random.below(50) == 0;
            let dropped_before = random.next_u64() >> random.below(64);
            let lost = sequence.on_packet(now, channel, cci, dropped_before);
            let has_gap = sequence.has_gap();
            let packet = PacketSeen { channel, cci, congestion_experienced, lost, has_gap };
            under_test.on_packet(now, &packet);
            if under_test.poll_timeout().is_some_and(|at| at <= now) {
                under_test.on_timeout(now, &mut sequence);
            }
            assert!(under_test.poll_timeout().is_none_or(|at| at > now));
            while let Some(change) = under_test.poll_membership() {
                joined += match change {
                    fontana_proto::Membership::Join(_) => 1,
                    fontana_proto::Membership::Leave(_) => -1,
                };
                assert!((0..=i64::from(control.channel_count())).contains(&joined));
            }
        }
    }
}
