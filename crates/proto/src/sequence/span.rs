//! Packets of a channel that were sent, and those of them that never arrived.

use super::losses::ChannelLoss;
use fontana_wire::SequenceNumber;

/// Largest number of steps between two packets of one run of the sender. At 100 000 packets per
/// second, it is more than a minute of silence.
pub(super) const LARGEST_GAP: u64 = 1 << 23;
/// Largest number of packets by which a packet may be older than the first one that arrived.
const MAX_EARLIER: u64 = 64;

/// Counts the sequence numbers of a channel from the lowest to the highest that arrived. They may
/// start anywhere and wrap around.
#[derive(Clone, Debug, Default)]
pub(super) struct Span {
    highest: u32,
    /// Number of packets from the lowest to the highest; 0 before the first packet.
    length: u64,
    received: u64,
    /// Totals before the channel was joined again.
    before: ChannelLoss,
}

impl Span {
    #[inline]
    pub(super) fn on_number(&mut self, number: SequenceNumber) {
        if self.length > 0 && number.follows(self.highest) {
            (self.highest, self.length) = (number.value, self.length + 1);
        } else {
            self.on_other_number(number);
        }
        self.received += 1;
    }

    /// Handles a number that is not the next one.
    fn on_other_number(&mut self, number: SequenceNumber) {
        let step = number.steps_from(self.highest);
        let distance = step.unsigned_abs();
        if self.length == 0 {
            (self.highest, self.length) = (number.value, 1);
        } else if distance > LARGEST_GAP.min(number.modulus / 4) {
            // The sender started again. Between its runs nothing counts as lost.
            (self.highest, self.length) = (number.value, self.length + 1);
        } else if step > 0 {
            (self.highest, self.length) = (number.value, self.length + distance);
        } else {
            // A late packet, possibly older than the first that arrived.
            if distance < self.length + MAX_EARLIER {
                self.length = self.length.max(distance + 1);
            }
        }
    }

    /// Counts packets that were ignored until a later one confirmed their numbers.
    pub(super) fn on_confirmed(&mut self, packets: u64) {
        self.received += packets;
    }

    /// The next number says nothing about those before.
    pub(super) fn interrupt(&mut self) {
        *self = Self { before: self.loss(), ..Self::default() };
    }

    pub(super) fn loss(&self) -> ChannelLoss {
        let lost = self.length.saturating_sub(self.received);
        ChannelLoss { expected: self.before.expected + self.length, lost: self.before.lost + lost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(span: &Span) -> (u64, u64) {
        let ChannelLoss { expected, lost } = span.loss();
        (expected, lost)
    }

    fn counted(sequences: impl IntoIterator<Item = u32>) -> (u64, u64) {
        let mut span = Span::default();
        let number = |value| SequenceNumber { value, modulus: 1 << 32 };
        sequences.into_iter().for_each(|value| span.on_number(number(value)));
        totals(&span)
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
    fn numbers_wrap_around_at_any_modulus() {
        for modulus in [65_536, 65_529] {
            let end = modulus as u32;
            let mut span = Span::default();
            for value in [end - 2, end - 1, 1, 2] {
                span.on_number(SequenceNumber { value, modulus });
            }
            assert_eq!(totals(&span), (5, 1), "modulo {modulus}");
            // A wave that starts again is no loss of thousands (RFC 3738: its last number is
            // 65535).
            span.on_number(SequenceNumber { value: 0x8000, modulus });
            assert_eq!(totals(&span), (6, 1), "modulo {modulus}");
        }
    }
}
