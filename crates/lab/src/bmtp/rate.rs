//! The send rate: that of the slowest receiver, and a little more (sections 3 and 4).

use std::time::Duration;

/// A rate, in thousandths of a packet per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PacketRate(u64);

impl PacketRate {
    /// The least rate: a sender that never sends hears of no receiver.
    const LEAST: Self = Self::per_second(1);

    pub(super) const fn per_second(packets: u32) -> Self {
        Self(packets as u64 * 1_000)
    }

    /// The rate of so many packets in an interval; `None` if the interval is 0.
    pub(super) fn of(packets: u64, interval_ms: u32) -> Option<Self> {
        packets.saturating_mul(1_000_000).checked_div(interval_ms.into()).map(Self)
    }

    /// Time from one packet to the next.
    pub(super) fn spacing(self) -> Duration {
        Duration::from_nanos(1_000_000_000_000 / self.0.max(1))
    }

    fn percent(self, percent: u64) -> Self {
        Self(self.0.saturating_mul(percent) / 100)
    }
}

/// The paper's overload: the send rate in per cent of the least reported one.
const OVERLOAD_PERCENT: u64 = 105;
/// Reports below this, in per cent of the send rate, lower it: "substantially less".
const SUBSTANTIAL_PERCENT: u64 = 95;

/// The send rate, and what receivers have reported in the last two control intervals.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendRate {
    rate: PacketRate,
    current: Option<PacketRate>,
    previous: Option<PacketRate>,
}

impl SendRate {
    pub(super) fn new(rate: PacketRate) -> Self {
        Self { rate, current: None, previous: None }
    }

    pub(super) fn get(&self) -> PacketRate {
        self.rate
    }

    /// A receiver reports the rate at which it receives. A substantially lower one takes effect at
    /// once.
    pub(super) fn report(&mut self, reported: PacketRate) {
        let least = |least: PacketRate| least.min(reported);
        self.current = Some(self.current.map_or(reported, least));
        if reported < self.rate.percent(SUBSTANTIAL_PERCENT) {
            self.rate = reported.max(PacketRate::LEAST);
        }
    }

    /// Raises the rate to just above the least one that was reported in the last two control
    /// intervals, and begins the next interval. Nothing else raises it.
    pub(super) fn adjust(&mut self) {
        if let Some(least) = self.current.into_iter().chain(self.previous).min() {
            self.rate = self.rate.max(least.percent(OVERLOAD_PERCENT));
        }
        self.previous = self.current.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thousandths(packets: u64) -> PacketRate {
        PacketRate(packets)
    }

    #[test]
    fn a_report_of_95_percent_changes_nothing_and_a_lower_one_takes_effect_at_once() {
        let mut rate = SendRate::new(PacketRate::per_second(42));
        rate.report(thousandths(39_900));
        assert_eq!(rate.get(), PacketRate::per_second(42));
        rate.report(thousandths(39_899));
        assert_eq!(rate.get(), thousandths(39_899));
    }

    #[test]
    fn the_rate_is_raised_to_105_percent_of_the_least_report_of_two_intervals() {
        let mut rate = SendRate::new(PacketRate::per_second(40));
        rate.report(PacketRate::per_second(40));
        rate.report(PacketRate::per_second(60));
        rate.adjust();
        assert_eq!(rate.get(), PacketRate::per_second(42));
        rate.report(PacketRate::per_second(60));
        rate.adjust();
        assert_eq!(rate.get(), PacketRate::per_second(42), "40 is of the interval before");
        rate.adjust();
        assert_eq!(rate.get(), PacketRate::per_second(63));
        rate.adjust();
        rate.adjust();
        assert_eq!(rate.get(), PacketRate::per_second(63), "without reports it stays");
    }

    #[test]
    fn the_rate_never_becomes_zero() {
        let mut rate = SendRate::new(PacketRate::per_second(42));
        rate.report(PacketRate::of(0, 20_000).unwrap());
        assert_eq!(rate.get(), PacketRate::per_second(1));
        assert_eq!(PacketRate::of(800, 0), None);
    }

    #[test]
    fn packets_are_spaced_by_the_inverse_of_the_rate() {
        assert_eq!(PacketRate::of(800, 20_000), Some(PacketRate::per_second(40)));
        assert_eq!(PacketRate::per_second(40).spacing(), Duration::from_millis(25));
    }
}
