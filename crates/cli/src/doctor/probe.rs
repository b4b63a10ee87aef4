//! Probes: the packets of `fontana doctor --send`. A run sends steps without end: one with packets
//! of several sizes, then one of a second for each rate.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The group of probes: not that of sessions, which shall not receive them. It has their port,
/// because a firewall that is open for sessions is open for that.
pub(super) const GROUP: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(239, 255, 76, 1)), 7701);
pub(super) const GROUP_V6: SocketAddr =
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0, 0x7600)), 7701);

/// Sizes in bytes of UDP payload: below every MTU; at those of tunnels; the default of sessions;
/// a frame of Ethernet with IPv4; half a jumbo frame, and a whole one.
pub(super) const SIZES: [u16; 8] = [500, 1000, 1200, 1300, 1400, 1472, 4000, 8972];

/// Bits per second, with all headers of Ethernet: where each network is, a fast radio link, and the
/// highest rate of a session that names none.
pub(super) const RATES: [u64; 3] = [2_000_000, 20_000_000, 100_000_000];

/// Probes of each size in a step: all are lost by chance at most once in 10^6 at 50 % loss.
pub(super) const OF_EACH_SIZE: u32 = 20;

/// Bytes of a probe of a rate: less than every MTU that IPv6 allows (RFC 8200 section 5).
const LENGTH: u16 = 1000;

/// Bytes that Ethernet, IPv4 and UDP add to a packet, with preamble and gap.
const ON_THE_WIRE: u64 = 8 + 20 + 18 + 20;

/// Probes per second of a step of sizes: at most about 20 Mbit/s for a moment.
const SIZES_PER_SECOND: f64 = 250.0;

const MAGIC: &[u8; 8] = b"fdoctor1";

/// Magic, run, step, index, numbers of sizes and of rates.
const HEADER: usize = 8 + 8 + 4 + 4 + 1 + 1;

/// What a run sends in turn: the first so many of [`SIZES`] and of [`RATES`], at least one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cycle {
    sizes: u8,
    rates: u8,
}

/// What the probes of a step have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Sizes,
    /// An index into [`RATES`].
    Rate(usize),
}

impl Cycle {
    /// `payload`: bytes that fit the interface's MTU. `speed`: its bits per second, if known.
    /// `None`: not even the smallest probe fits.
    pub(super) fn of(payload: usize, speed: Option<u64>) -> Option<Self> {
        let sizes = SIZES.iter().filter(|&&size| usize::from(size) <= payload).count() as u8;
        let rates = RATES.iter().filter(|&&rate| speed.is_none_or(|speed| rate <= speed)).count();
        (sizes > 0).then(|| Self { sizes, rates: (rates as u8).max(1) })
    }

    pub(super) fn sizes(self) -> &'static [u16] {
        SIZES.get(..usize::from(self.sizes)).unwrap_or_default()
    }

    pub(super) fn rates(self) -> &'static [u64] {
        RATES.get(..usize::from(self.rates)).unwrap_or_default()
    }

    /// Steps until the first one comes again.
    pub(super) fn steps(self) -> u32 {
        1 + u32::from(self.rates)
    }

    /// What the step with this number has.
    pub(super) fn step(self, number: u32) -> Step {
        match number % self.steps() {
            0 => Step::Sizes,
            rate => Step::Rate(rate as usize - 1),
        }
    }

    /// Probes of a step, at most about 12 000.
    pub(super) fn probes(self, step: Step) -> u32 {
        match step {
            Step::Sizes => OF_EACH_SIZE * u32::from(self.sizes),
            Step::Rate(_) => self.per_second(step) as u32,
        }
    }

    pub(super) fn per_second(self, step: Step) -> f64 {
        match step {
            Step::Sizes => SIZES_PER_SECOND,
            Step::Rate(index) => {
                let rate = RATES.get(index).copied().unwrap_or_default();
                rate as f64 / (8 * (u64::from(LENGTH) + ON_THE_WIRE)) as f64
            }
        }
    }

    /// Bytes of a probe.
    fn length(self, step: Step, index: u32) -> usize {
        match step {
            Step::Sizes => {
                let size = self.size(index).and_then(|at| SIZES.get(at));
                size.copied().unwrap_or_default().into()
            }
            Step::Rate(_) => LENGTH.into(),
        }
    }

    /// Which of the sizes a probe of a step of sizes has.
    pub(super) fn size(self, index: u32) -> Option<usize> {
        index.checked_rem(self.sizes.into()).map(|at| at as usize)
    }
}

/// What a probe says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    /// A random number of the process that sends.
    pub(super) run: u64,
    pub(super) cycle: Cycle,
    /// The number of the step in the run, from 0.
    pub(super) step: u32,
    /// The number of the probe in its step, from 0.
    pub(super) index: u32,
}

impl Probe {
    /// Appends the packet to `to`.
    pub(super) fn emit(&self, to: &mut Vec<u8>) {
        let Self { run, cycle, step, index } = self;
        let end = to.len() + cycle.length(cycle.step(*step), *index);
        to.extend(MAGIC);
        to.extend(run.to_be_bytes());
        to.extend(step.to_be_bytes());
        to.extend(index.to_be_bytes());
        to.extend([cycle.sizes, cycle.rates]);
        to.resize(end, 0);
    }

    /// `None`: another packet, or one that no run sends.
    pub(super) fn parse(packet: &[u8]) -> Option<Self> {
        let header: &[u8; HEADER] = packet.first_chunk()?;
        let (magic, rest) = header.split_first_chunk()?;
        let (run, rest) = rest.split_first_chunk()?;
        let (step, rest) = rest.split_first_chunk()?;
        let (index, rest) = rest.split_first_chunk()?;
        let &[sizes, rates] = rest.first_chunk()?;
        let is_known = (1..=SIZES.len()).contains(&usize::from(sizes))
            && (1..=RATES.len()).contains(&usize::from(rates));
        let cycle = Cycle { sizes, rates };
        let step = u32::from_be_bytes(*step);
        let index = u32::from_be_bytes(*index);
        let kind = cycle.step(step);
        let is_sent = is_known
            && magic == MAGIC
            && index < cycle.probes(kind)
            && packet.len() == cycle.length(kind, index);
        is_sent.then(|| Self { run: u64::from_be_bytes(*run), cycle, step, index })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_read_as_they_were_written() {
        let cycle = Cycle::of(1472, None).unwrap();
        assert_eq!((cycle.sizes().last(), cycle.steps()), (Some(&1472), 4));
        for step in 0..5 {
            let probe = Probe { run: 7, cycle, step, index: 3 };
            let mut packet = Vec::new();
            probe.emit(&mut packet);
            assert_eq!(Probe::parse(&packet), Some(probe));
            assert_eq!(packet.len(), if step % 4 == 0 { 1300 } else { 1000 });
            packet.push(0);
            assert_eq!(Probe::parse(&packet), None, "another length");
        }
        let beyond = Probe { run: 7, cycle, step: 1, index: cycle.probes(Step::Rate(0)) };
        let mut packet = Vec::new();
        beyond.emit(&mut packet);
        assert_eq!(Probe::parse(&packet), None);
    }

    #[test]
    fn a_run_sends_what_its_interface_carries() {
        assert_eq!(Cycle::of(499, None), None);
        assert_eq!(Cycle::of(500, Some(1)).unwrap().sizes(), [500]);
        assert_eq!(Cycle::of(500, Some(1)).unwrap().rates(), [2_000_000]);
        assert_eq!(Cycle::of(65_507, Some(10_000_000)).unwrap().sizes(), SIZES);
        assert_eq!(Cycle::of(1472, Some(100_000_000)).unwrap().rates(), RATES);
        let cycle = Cycle::of(1472, None).unwrap();
        let probes = (0..4).map(|number| cycle.probes(cycle.step(number)));
        assert_eq!(probes.collect::<Vec<_>>(), [120, 234, 2345, 11_726]);
    }

    #[test]
    fn no_packet_makes_the_parser_panic() {
        let numbers = [0, 1, 3, 233, 234, 11_726, u32::MAX - 1, u32::MAX];
        let counts = [0, 1, 2, 3, 4, 8, 9, 255];
        let mut known = 0;
        for (step, index) in numbers.iter().flat_map(|a| numbers.map(|b| (*a, b))) {
            for (sizes, rates) in counts.iter().flat_map(|a| counts.map(|b| (*a, b))) {
                let mut packet = MAGIC.to_vec();
                packet.extend([7; 8]);
                packet.extend(step.to_be_bytes());
                packet.extend(index.to_be_bytes());
                packet.extend([sizes, rates]);
                for length in [65_507, 8972, 1400, 1000, 500, 26, 25, 8, 7, 0] {
                    packet.resize(length, 0);
                    known += u32::from(Probe::parse(&packet).is_some());
                }
            }
        }
        // Of sizes and of rates, with a number in range.
        assert!(known > 100, "{known}");
    }
}
