//! Subscription controls whose packets have any congestion control information.

use crate::fuzz::SEQUENCES;
use bolero::check;
use fontana_proto::{
    BreakerLimits, ChannelId, ChannelSet, FirstChannel, Instant, Membership, PacketSeen,
    SequenceTracker, SubscriptionControl, SubscriptionLimits, subscribe,
};
use fontana_testing::Script;
use fontana_wire::{
    Cci, CongestionControl, FlidCci, FlidSl, LayerRates, Rlc, RlcCci, SyncSpacing, Webrc, WebrcCci,
};
use std::time::Duration;

fn layers(script: &mut Script<'_>) -> Option<LayerRates> {
    let count = script.below(70);
    if script.once_in(2) {
        let (base, ratio) = (script.magnitude() as u32, 256 + script.u16() % 600);
        return LayerRates::geometric(base, ratio, count).ok();
    }
    let rates = (0..count).map(|_| script.magnitude() as u32 >> 6).collect();
    LayerRates::listed(rates).ok()
}

/// Any parameters that a head can have.
fn control(script: &mut Script<'_>) -> Option<CongestionControl> {
    let control = match script.below(5) {
        0 => CongestionControl::FixedRate,
        1 => CongestionControl::FixedLayers(layers(script)?),
        2 => CongestionControl::Rlc(Rlc {
            layers: layers(script)?,
            cycle_milliseconds: script.magnitude() as u16,
            spacing: if script.once_in(2) { SyncSpacing::Nested } else { SyncSpacing::Mcl },
            burst_milliseconds: script.u8().into(),
            deaf_milliseconds: script.u16(),
        }),
        3 => CongestionControl::FlidSl(FlidSl {
            layers: layers(script)?,
            slot_milliseconds: script.magnitude() as u16,
        }),
        _ => CongestionControl::Webrc(Webrc {
            rate_bytes_per_second: script.magnitude() as u32,
            packet_bytes: 28 + script.u16() % 1500,
            base_packets_per_second: script.magnitude() as u16,
            slot_milliseconds: 100 + script.magnitude() as u16 % 20_000,
            decay_256ths: 128 + script.below(123),
            wave_slots: 1 + script.below(40),
            quiet_slots: 1 + script.below(40),
        }),
    };
    control.checked().ok()
}

/// A CCI of the scheme's form, or any number.
fn cci(script: &mut Script<'_>, control: &CongestionControl, channel: u8, sequence: u16) -> Cci {
    let sequence = if script.once_in(8) { script.u16() } else { sequence };
    let channel = if script.once_in(16) { script.u8() } else { channel };
    match (script.below(16), control) {
        (0, _) => Cci::from_u32(script.u32()),
        (1, _) => Cci::new(script.u64().into(), 2 + script.below(3)).unwrap_or_default(),
        (_, CongestionControl::Rlc(_)) => {
            let (sync_point, burst) = (script.once_in(3), script.once_in(4));
            RlcCci { sync_point, burst, layer: channel, sequence }.emit()
        }
        (_, CongestionControl::FlidSl(_)) => {
            let (trigger, slot) = (script.once_in(3), script.u8());
            FlidCci { trigger, slot, layer: channel, sequence }.emit()
        }
        (_, CongestionControl::Webrc(webrc)) => {
            let slot = script.u8() % webrc.wave_channels().max(1);
            let channel = channel.checked_sub(1).unwrap_or(webrc.wave_channels());
            WebrcCci { slot, channel, sequence }.emit()
        }
        _ => Cci::from_u32(sequence.into()),
    }
}

/// Applies what the control asks for.
fn poll(control: &mut dyn SubscriptionControl, joined: &mut ChannelSet, channels: u8) {
    for count in 0.. {
        assert!(count < 1000, "a control changes its subscription without end");
        match control.poll_membership() {
            Some(Membership::Join(channel)) => {
                assert!(channel.0 < channels, "joined {channel:?} of {channels}");
                joined.insert(channel);
            }
            Some(Membership::Leave(channel)) => _ = joined.remove(channel),
            None => return,
        }
    }
}

#[test]
fn any_congestion_control_information() {
    check!().with_iterations(4 * SEQUENCES).for_each(|input: &[u8]| {
        let mut script = Script::new(input);
        let Some(declared) = control(&mut script) else { return };
        let breaker = BreakerLimits { window: Duration::from_secs(3), ..BreakerLimits::default() };
        let limits = SubscriptionLimits {
            max_channels: script.u8(),
            max_bytes_per_second: if script.once_in(2) { u64::MAX } else { script.magnitude() },
            breaker: script.once_in(2).then_some(breaker),
        };
        let after = script.once_in(2).then(|| Duration::from_nanos(script.magnitude()));
        let mut now = Instant::ZERO + Duration::from_millis(script.u16().into());
        let first = FirstChannel { now, first_packet_after: after };
        let Ok(mut control) = subscribe(&declared, &limits, first) else { return };
        let channels = declared.channel_count();
        let mut tracker = SequenceTracker::new(declared.numbering());
        let mut joined = ChannelSet::default();
        joined.insert(ChannelId::BASE);
        let mut sequences = [0_u16; 256];
        for _ in 0..Script::STEPS {
            now = crate::fuzz::advance(&mut script, now);
            let channel = if script.once_in(16) { script.u8() } else { script.below(channels) };
            let sequence = &mut sequences[usize::from(channel)];
            let step = if script.once_in(4) { u16::from(script.u8()) } else { 1 };
            *sequence = sequence.wrapping_add(step);
            let cci = cci(&mut script, &declared, channel, *sequence);
            let channel = ChannelId(channel);
            let dropped = if script.once_in(8) { script.magnitude() } else { 0 };
            let lost = tracker.on_packet(now, channel, cci, dropped);
            control.on_packet(
                now,
                &PacketSeen {
                    channel,
                    cci,
                    congestion_experienced: script.once_in(8),
                    lost,
                    has_gap: script.once_in(8),
                },
            );
            poll(&mut *control, &mut joined, channels);
            for _ in 0..100 {
                if control.poll_timeout().is_none_or(|due| due > now) {
                    break;
                }
                control.on_timeout(now, &mut tracker);
                poll(&mut *control, &mut joined, channels);
            }
            let due = control.poll_timeout();
            assert!(due.is_none_or(|due| due > now), "{declared:?}: {due:?} at {now:?}");
            assert!(control.level().channels <= channels.min(limits.max_channels).max(1));
        }
    });
}
