//! How many packets of a session were lost on the way, from their sequence numbers.

use crate::channel::ChannelId;
use fontana_wire::CongestionControl;

/// Loss on each channel of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChannelLoss {
    /// By channel, as far as any was heard: 256 at most.
    meters: Vec<LossMeter>,
    /// Bits above the number that are not part of it.
    spare_bits: u32,
}

impl ChannelLoss {
    /// Packets are numbered as their congestion control does it: in 32 bits, or in 16 below what
    /// else it has to say. What was counted otherwise is forgotten.
    pub(crate) fn number_by(&mut self, control: &CongestionControl) {
        let spare_bits = match control {
            CongestionControl::FixedRate | CongestionControl::FixedLayers(_) => 0,
            CongestionControl::Rlc(_)
            | CongestionControl::FlidSl(_)
            | CongestionControl::Webrc(_) => 16,
        };
        if self.spare_bits != spare_bits {
            *self = Self { meters: Vec::new(), spare_bits };
        }
    }

    pub(crate) fn on_sequence(&mut self, channel: ChannelId, sequence: u32) {
        let index = usize::from(channel.0);
        if self.meters.len() <= index {
            self.meters.resize(index + 1, LossMeter::default());
        }
        if let Some(meter) = self.meters.get_mut(index) {
            meter.on_sequence(sequence, self.spare_bits);
        }
    }

    /// The channel was not joined for a while: what was sent meanwhile was not lost.
    pub(crate) fn on_join(&mut self, channel: ChannelId) {
        self.meters.get_mut(usize::from(channel.0)).into_iter().for_each(LossMeter::interrupt);
    }

    /// Of each channel, the packets that were sent and those of them that never arrived.
    pub(crate) fn channels(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.meters.iter().map(|meter| (meter.expected(), meter.lost()))
    }
}

/// Counts a channel's sequence numbers, which start anywhere and wrap around.
#[derive(Clone, Debug, Default)]
struct LossMeter {
    /// First and highest number seen, unwrapped: the very first counts as `2^32` more than it is.
    span: Option<(u64, u64)>,
    received: u64,
    /// Packets sent and lost before the span.
    before: (u64, u64),
}

/// A jump by more than this is a sender that started again, not a gap: more than a minute of
/// silence at 100 000 packets a second.
const LARGEST_GAP: i64 = 1 << 23;

impl LossMeter {
    fn on_sequence(&mut self, sequence: u32, spare_bits: u32) {
        let sequence = (sequence << spare_bits) >> spare_bits;
        let Some((first, highest)) = self.span else {
            let start = (1 << 32) + u64::from(sequence);
            self.span = Some((start, start));
            self.received = 1;
            return;
        };
        let step = (sequence.wrapping_sub(highest as u32) << spare_bits) as i32 >> spare_bits;
        let step = i64::from(step);
        if step.abs() > LARGEST_GAP.min(1 << (30 - spare_bits)) {
            // Keep what was counted: shift the span so that nothing seems lost in between.
            let counted = highest - first;
            let sequence = (1 << 48) + u64::from(sequence);
            self.span = Some((sequence.saturating_sub(counted + 1), sequence));
        } else if step > 0 {
            self.span = Some((first, highest + step.unsigned_abs()));
        } else if highest.saturating_sub(step.unsigned_abs()) < first {
            self.span = Some((highest.saturating_sub(step.unsigned_abs()), highest));
        }
        self.received += 1;
    }

    /// The next number says nothing about those before.
    fn interrupt(&mut self) {
        self.before = (self.expected(), self.lost());
        (self.span, self.received) = (None, 0);
    }

    /// Packets that were sent since the first one heard, as far as is known.
    fn expected(&self) -> u64 {
        self.before.0 + self.in_span()
    }

    /// Packets that never arrived. A duplicate on the network hides one loss.
    fn lost(&self) -> u64 {
        self.before.1 + self.in_span().saturating_sub(self.received)
    }

    fn in_span(&self) -> u64 {
        self.span.map_or(0, |(first, highest)| highest - first + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(sequences: impl IntoIterator<Item = u32>) -> (u64, u64) {
        let mut meter = LossMeter::default();
        sequences.into_iter().for_each(|s| meter.on_sequence(s, 0));
        (meter.expected(), meter.lost())
    }

    #[test]
    fn gaps_are_losses_and_reordering_is_not() {
        assert_eq!(counted([]), (0, 0));
        assert_eq!(counted([7]), (1, 0));
        assert_eq!(counted([7, 8, 10]), (4, 1));
        assert_eq!(counted([8, 7, 10, 9]), (4, 0));
    }

    #[test]
    fn numbers_wrap_around() {
        assert_eq!(counted([u32::MAX - 1, u32::MAX, 1]), (4, 1));
        assert_eq!(counted([0, u32::MAX]), (2, 0), "the first to arrive was number two");
    }

    #[test]
    fn a_sender_that_starts_again_is_not_a_loss_of_millions() {
        assert_eq!(counted([10, 11, 2_000_000_000, 2_000_000_001]), (4, 0));
        assert_eq!(counted([4_000_000_000, 10, 12]), (4, 1));
    }

    #[test]
    fn what_is_sent_while_a_channel_is_not_joined_is_not_lost() {
        let mut loss = ChannelLoss::default();
        let hear = |loss: &mut ChannelLoss, channel, sequences: &[u32]| {
            sequences.iter().for_each(|&s| loss.on_sequence(ChannelId(channel), s));
        };
        hear(&mut loss, 0, &[1, 2, 4]);
        hear(&mut loss, 2, &[7, 8]);
        loss.on_join(ChannelId(2));
        loss.on_join(ChannelId(9));
        hear(&mut loss, 2, &[1000, 1002]);
        assert_eq!(loss.channels().collect::<Vec<_>>(), [(4, 1), (0, 0), (5, 1)]);
    }

    #[test]
    fn numbers_of_16_bits_wrap_around_below_what_else_the_packet_says() {
        let mut meter = LossMeter::default();
        for number in [0x1234_fffe_u32, 0x5678_ffff, 0x9abc_0001, 0x0000_0002] {
            meter.on_sequence(number, 16);
        }
        assert_eq!((meter.expected(), meter.lost()), (5, 1));
        // A wave that begins anew is no loss of thousands (RFC 3738: its last number is 65535).
        meter.on_sequence(0x8000, 16);
        assert_eq!((meter.expected(), meter.lost()), (6, 1));
    }
}
