use super::*;
use crate::congestion::presets;

const P: f64 = 0.75;

/// A control with slots of one second, on a path of 100 ms.
fn control() -> WebrcControl {
    let webrc = presets::webrc_fast(2_500_000, 1400).unwrap();
    let first_packet_after = Some(Duration::from_millis(100));
    WebrcControl::new(
        &webrc,
        f64::INFINITY,
        64,
        FirstChannel { now: Instant::ZERO, first_packet_after },
    )
}

fn ms(milliseconds: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(milliseconds)
}

/// A control after start-up, at this rate in packets per second.
fn settled(rate: f64) -> WebrcControl {
    let mut control = control();
    control.slots.on_packet(Instant::ZERO, 0);
    control.rates = Some(Rates { average: rate, received: rate });
    control.end_start_up(rate);
    control
}

#[test]
fn losses_of_one_overflow_are_one_event_however_late_they_show() {
    let sent_every =
        |space, at| Losses { packets: 1, at: ms(at), space: Duration::from_millis(space) };
    let lost = |at| sent_every(0, at);
    let events_of = |late| {
        let mut control = settled(100.0);
        control.loss.on_packets(1000.0);
        control.on_losses(ms(1000), lost(990));
        let after_one = control.loss.probability();
        control.on_losses(ms(1500), late);
        (after_one, control.loss.probability())
    };
    // The round trip is 100 ms, and the event began at 990 ms.
    for within in [891, 990, 1089] {
        let (one, late) = events_of(lost(within));
        assert!(late <= one, "the gap of a slow wave: {one} {late}");
    }
    for beyond in [890, 1090] {
        let (one, second) = events_of(lost(beyond));
        assert!(second > one, "another event: {one} {second}");
    }
    // A wave that sends every 50 ms, and one that sends every 10 s.
    for (space, edge) in [(50, 1140), (10_000, 1190)] {
        let (one, late) = events_of(sent_every(space, edge - 1));
        assert!(late <= one, "it may have been earlier: {one} {late}");
        let (one, second) = events_of(sent_every(space, edge));
        assert!(second > one, "it was later: {one} {second}");
    }
}

/// A control whose target is 1000 packets per second.
fn with_arrivals(stretches: Option<Stretches>) -> (WebrcControl, Rates) {
    let mut control = settled(100.0);
    control.arrivals.stretches = stretches;
    control.loss = LossEstimate::starting_at(loss_at(1000.0, 0.1));
    let rates = control.rates.expect("settled");
    assert!(control.may_join(ms(0), rates));
    (control, rates)
}

#[test]
fn a_wave_is_not_joined_while_what_arrives_does_not_decay() {
    let joins_at = |arrivals| {
        let (mut control, rates) = with_arrivals(arrivals);
        let before = control.target(rates);
        control.join_unless_full(ms(0), rates);
        assert_eq!(control.target(rates), before, "it is for losses to say what is too much");
        !control.joined.is_empty()
    };
    // In a fifth of a slot a wave loses 1 - 0.75^0.2 = 5.59 % of its rate.
    let of = |latest, fastest| Some(Stretches { latest, fastest });
    assert!(joins_at(of(944.0, 1000.0)) && !joins_at(of(944.2, 1000.0)));
    // Two packets in four epochs of 50 ms are 10 in a second.
    assert!(joins_at(of(90.0, 100.0)) && !joins_at(of(91.0, 100.0)));
    assert!(!joins_at(None), "before a stretch is whole");
}

#[test]
fn an_epoch_that_ends_late_was_no_faster() {
    let mut control = settled(1000.0);
    let mut now = 0;
    for length in [50, 58, 50, 50, 55, 50, 61, 50, 50, 50] {
        now += length;
        control.received = length as u32;
        control.on_epoch(ms(now), &mut SequenceTracker::default());
    }
    let Stretches { latest, fastest } = control.arrivals.stretches.expect("two stretches and more");
    assert!((latest - 1000.0).abs() < 0.01 && (fastest - 1000.0).abs() < 0.01, "{fastest}");
}

#[test]
fn who_gets_next_to_nothing_is_not_taken_for_one_far_away() {
    let slow = settled(3.3);
    // Eight packets take 2.4 s.
    assert_eq!(slow.round_trip_at(3.3), 0.1);
    assert_eq!(slow.round_trip_at(1000.0), 0.1, "what was measured");
    let near = WebrcControl { round_trip: RoundTrip::new(Duration::from_millis(1), P), ..slow };
    assert_eq!(near.round_trip_at(1000.0), 0.008);
}

#[test]
fn the_base_channel_goes_up_with_a_slot_that_ends_no_wave() {
    let average = |waves: usize| {
        let mut control = settled(100.0);
        control.joined =
            (0..waves as u8).map(|channel| Wave { channel, is_received: true }).collect();
        control.follow_slot(ms(1000), 1);
        control.rates.map(|rates| rates.average)
    };
    // BCR_P is 5: it goes up by a quarter of that, and a wave leaves with it.
    assert_eq!(average(0), Some(101.25));
    assert_eq!(average(1), Some(96.25));
}
