use super::*;
use crate::congestion::presets;
use crate::random::SplitMix64;
use fontana_wire::{CongestionControl, LayerRates, RlcCci};

/// A tracker for numbers of 16 bits.
fn tracker() -> SequenceTracker {
    let layers = LayerRates::geometric(10_000, 512, 8).unwrap();
    SequenceTracker::new(CongestionControl::Rlc(presets::rlc(layers)).numbering())
}

fn cci(layer: u8, number: u32) -> Cci {
    RlcCci { sync_point: false, burst: false, layer, sequence: number as u16 }.emit()
}

impl SequenceTracker {
    /// Handles a packet of channel 0.
    fn on_base(&mut self, now: Instant, number: u32, dropped_before: u64) -> Losses {
        self.on_packet(now, ChannelId::BASE, cci(0, number), dropped_before)
    }

    fn totals(&self) -> Vec<(u64, u64)> {
        self.channels().map(|channel| (channel.expected, channel.lost)).collect()
    }
}

/// Number of losses after packets with these numbers, one millisecond apart.
fn lost(numbers: impl IntoIterator<Item = u32>) -> u64 {
    let (mut tracker, mut now, mut lost) = (tracker(), Instant::ZERO, 0);
    for number in numbers {
        now = now + Duration::from_millis(1);
        lost += tracker.on_base(now, number, 0).packets;
    }
    assert_eq!(tracker.detected(), lost);
    lost
}

#[test]
fn a_missing_packet_is_lost_with_the_third_that_follows() {
    assert_eq!(lost([1, 2, 4, 5]), 0);
    assert_eq!(lost([1, 2, 4, 5, 6]), 1);
    assert_eq!(lost([1, 2, 4, 5, 3, 6, 7]), 0, "reordered");
    assert_eq!(lost([65_534, 0, 1, 2]), 1, "around the end of the numbers");
    assert_eq!(lost([1, 1, 2, 2, 3]), 0, "duplicated");
}

#[test]
fn a_missing_packet_is_lost_after_half_a_second() {
    let mut tracker = tracker();
    for number in [1, 3] {
        let lost = tracker.on_base(Instant::ZERO, number, 0);
        assert_eq!(lost.packets, 0);
    }
    assert!(tracker.has_gap());
    let half = Instant::ZERO + LOST_AFTER;
    assert_eq!(tracker.expire(Instant::from_nanos(half.as_nanos() - 1)).packets, 0);
    assert_eq!(tracker.expire(half).packets, 1);
    assert!(!tracker.has_gap());
}

#[test]
fn a_loss_is_dated_by_when_it_was_due() {
    let ms = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    let mut tracker = tracker();
    let mut on = |at, number| tracker.on_base(ms(at), number, 0);
    assert_eq!(on(0, 0), Losses::default());
    // 1 and 2 were due at 100 and 200 ms.
    for (at, number) in [(300, 3), (310, 4)] {
        assert_eq!(on(at, number), Losses::default());
    }
    assert_eq!(on(320, 5), Losses { packets: 2, at: ms(200), space: Duration::from_millis(100) });
    // 6 to 104 were due every 70 ms, and more are missing than can be late.
    assert_eq!(
        on(7320, 105),
        Losses { packets: 99, at: ms(320 + 6930), space: Duration::from_millis(70) }
    );
}

#[test]
fn a_long_gap_is_lost_at_once_and_costs_no_memory() {
    assert_eq!(lost([0, 33]), 0);
    let ms = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    for (gap, silence) in [(33, 9), (390, 100), (19_999, 5_000)] {
        let mut tracker = tracker();
        // A packet in a millisecond; then as many in the silence, or up to four times as many.
        (0..10).for_each(|number| _ = tracker.on_base(ms(number.into()), number, 0));
        assert_eq!(tracker.on_base(ms(9 + silence), 10 + gap, 0).packets, u64::from(gap));
    }
}

#[test]
fn a_jump_further_than_the_sender_can_have_sent_needs_four_packets() {
    assert_eq!(lost((0..10).chain([1_000, 1_001, 1_002])), 0);
    assert_eq!(lost((0..10).chain(1_000..1_004)), 990);
    assert_eq!(lost((0..10).chain(1_000..1_003).chain(10..20)), 0);
    assert_eq!(lost((0..10).chain([1_000, 2_000, 3_000, 4_000, 5_000])), 0);
    assert_eq!(lost([0, 1_000, 1_001, 1_002, 1_003]), 999);
}

/// Twenty packets per second with false numbers beside 200 of the sender.
#[test]
fn lying_numbers_are_not_losses() {
    let mut random = SplitMix64::new(3, 1);
    let mut tracker = tracker();
    for number in 0..20_000_u32 {
        let now = Instant::ZERO + Duration::from_millis(5) * number;
        tracker.on_base(now, number % (1 << 16), 0);
        if number % 10 == 9 {
            tracker.on_base(now, random.below(1 << 16), 0);
        }
    }
    let (expected, lost) = tracker.totals()[0];
    assert!(tracker.detected() < 100 && lost < 1_000, "{} {lost}", tracker.detected());
    assert!((20_000..25_000).contains(&expected), "{expected}");
}

#[test]
fn a_channel_that_starts_again_from_behind_is_followed_and_blamed_for_nothing() {
    assert_eq!(lost((40_000..40_010).chain(39_000..39_100)), 0);
    let with_a_loss = (40_000..40_010).chain(39_000..39_100).chain(39_101..39_110);
    assert_eq!(lost(with_a_loss), 1);
}

#[test]
fn what_this_host_dropped_is_no_congestion() {
    let mut tracker = tracker();
    let mut on = |number, dropped| tracker.on_base(Instant::from_nanos(1), number, dropped).packets;
    assert_eq!((on(0, 0), on(50, 40)), (0, 9));
}

#[test]
fn memory_is_bounded_whatever_the_numbers() {
    let mut tracker = tracker();
    let mut random = SplitMix64::new(1, 1);
    for i in 0..20_000 {
        let number = random.below(1 << 16);
        tracker.on_base(Instant::from_nanos(i), number, u64::MAX);
        assert!(tracker.missing <= gaps::MAX_MISSING);
        assert_eq!(tracker.missing, tracker.channels.iter().map(|c| c.gaps.missing()).sum());
    }
}

#[test]
fn packets_that_are_sent_while_a_channel_is_not_joined_are_not_lost() {
    let mut tracker = tracker();
    let receive = |tracker: &mut SequenceTracker, channel, numbers: &[u32]| {
        for &number in numbers {
            tracker.on_packet(Instant::ZERO, ChannelId(channel), cci(channel, number), 0);
        }
    };
    receive(&mut tracker, 0, &[1, 2, 4]);
    receive(&mut tracker, 2, &[7, 8, 10]);
    assert_eq!(tracker.missing, 2);
    tracker.on_leave(ChannelId(2));
    assert_eq!(tracker.missing, 1);
    tracker.on_join(ChannelId(2));
    tracker.on_join(ChannelId(9));
    receive(&mut tracker, 2, &[1000, 1002]);
    assert_eq!(tracker.totals(), [(4, 1), (0, 0), (7, 2)]);
    assert_eq!((tracker.missing, tracker.detected()), (2, 0));
    tracker.forget_all_gaps();
    assert!(!tracker.has_gap());
    assert_eq!(tracker.totals(), [(4, 1), (0, 0), (7, 2)]);
}

#[test]
fn another_numbering_starts_the_count_again() {
    let mut tracker = SequenceTracker::default();
    for number in [1, 3] {
        tracker.on_packet(Instant::ZERO, ChannelId::BASE, Cci::from_u32(number), 0);
    }
    tracker.set_numbering(CongestionControl::FixedRate.numbering());
    assert_eq!(tracker.totals(), [(3, 1)]);
    tracker.set_numbering(self::tracker().numbering);
    assert_eq!((tracker.totals(), tracker.has_gap()), (Vec::new(), false));
}

#[test]
fn the_base_channel_of_webrc_loses_nothing_where_its_numbers_wrap_around() {
    let webrc = presets::webrc_fast(1_250_000, 1400).unwrap();
    let (modulus, channel) = (webrc.base_modulus(), webrc.wave_channels());
    assert!(modulus < 1 << 16, "{modulus}");
    let mut tracker = SequenceTracker::new(CongestionControl::Webrc(webrc).numbering());
    for packet in modulus - 10..modulus + 10 {
        let sequence = (packet % modulus) as u16;
        let cci = fontana_wire::WebrcCci { slot: 0, channel, sequence }.emit();
        tracker.on_packet(Instant::ZERO, ChannelId::BASE, cci, 0);
    }
    assert_eq!((tracker.totals(), tracker.detected()), (vec![(20, 0)], 0));
}

/// A forged number of 32 bits in a session of fixed layers.
#[test]
fn one_packet_counts_a_bounded_number_of_losses() {
    for forged in [1 << 23, 1 << 24, 1 << 30, 1 << 31, (1 << 31) - 1, u32::MAX] {
        let mut tracker = SequenceTracker::default();
        for number in [0, 1, forged, 2, 3] {
            tracker.on_packet(Instant::ZERO, ChannelId::BASE, Cci::from_u32(number), 0);
        }
        let lost: u64 = tracker.channels().map(|channel| channel.lost).sum();
        assert!(lost.max(tracker.detected()) < 1 << 23, "{forged}: {lost}, {tracker:?}");
    }
}

#[test]
fn packets_of_another_channel_are_not_counted() {
    let mut tracker = tracker();
    tracker.on_packet(Instant::ZERO, ChannelId(1), cci(0, 5), 0);
    tracker.on_packet(Instant::ZERO, ChannelId(1), Cci::new(1, 2).unwrap(), 0);
    assert_eq!(tracker.totals(), []);
}
