//! How many packets of a session were lost on the way, from their sequence numbers.

/// Counts a channel's 32-bit sequence numbers, which start anywhere and wrap around.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossMeter {
    /// First and highest number seen, unwrapped: the very first counts as `2^32` more than it is.
    span: Option<(u64, u64)>,
    received: u64,
}

/// A jump by more than this is a sender that started again, not a gap: more than a minute of
/// silence at 100 000 packets a second.
const LARGEST_GAP: i64 = 1 << 23;

impl LossMeter {
    pub(crate) fn on_sequence(&mut self, sequence: u32) {
        let Some((first, highest)) = self.span else {
            let start = (1 << 32) + u64::from(sequence);
            self.span = Some((start, start));
            self.received = 1;
            return;
        };
        let step = i64::from(sequence.wrapping_sub(highest as u32) as i32);
        if step.abs() > LARGEST_GAP {
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

    /// Packets that were sent since the first one heard, as far as is known.
    pub(crate) fn expected(&self) -> u64 {
        self.span.map_or(0, |(first, highest)| highest - first + 1)
    }

    /// Packets that never arrived. A duplicate on the network hides one loss.
    pub(crate) fn lost(&self) -> u64 {
        self.expected().saturating_sub(self.received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(sequences: impl IntoIterator<Item = u32>) -> (u64, u64) {
        let mut meter = LossMeter::default();
        sequences.into_iter().for_each(|s| meter.on_sequence(s));
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
}
