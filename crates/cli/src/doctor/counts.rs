//! What arrives of the probes of each run. Hostile probes count for their own run alone: the number
//! of runs is limited, and so is the memory of each.

use super::probe::{Cycle, OF_EACH_SIZE, Probe, RATES, SIZES, Step};
use std::net::IpAddr;
use std::time::Duration;

/// Largest number of runs that are counted: anyone can send probes of any run. A run takes 12 kB.
const MAX_RUNS: usize = 16;

/// Largest number of them from one address: it takes several hosts to keep others out.
const MAX_RUNS_OF_HOST: usize = 4;

/// Probes of the whole steps of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) sent: u64,
    pub(super) arrived: u64,
    /// Dropped by this host, because the program did not take them in time. At least.
    pub(super) dropped: u64,
}

impl Tally {
    /// Both together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            arrived: self.arrived + other.arrived,
            dropped: self.dropped + other.dropped,
        }
    }

    /// The share that was lost in the network. `None` if no step was received as a whole.
    pub(super) fn loss(self) -> Option<f64> {
        let lost = self.sent.saturating_sub(self.arrived).saturating_sub(self.dropped);
        (self.sent > 0).then(|| lost as f64 / self.sent as f64)
    }

    /// The share that this host has dropped.
    pub(super) fn dropped(self) -> Option<f64> {
        let dropped = self.dropped.min(self.sent.saturating_sub(self.arrived));
        (self.sent > 0).then(|| dropped as f64 / self.sent as f64)
    }
}

/// What arrived of a run.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) from: IpAddr,
    pub(super) cycle: Cycle,
    /// When the first and the last probe arrived, since the begin of listening.
    pub(super) first: Duration,
    pub(super) last: Duration,
    pub(super) rates: [Tally; RATES.len()],
    pub(super) sizes: [Tally; SIZES.len()],
    number: u64,
    step: u32,
    /// Its first probes were not missed because listening began later.
    is_whole: bool,
    /// Of the probes of the step, whether they have arrived.
    arrived: Vec<bool>,
    /// What this host has dropped during the step.
    dropped: u64,
}

impl Run {
    fn new(from: IpAddr, probe: &Probe, now: Duration) -> Self {
        let Probe { run, cycle, step, index } = *probe;
        Self {
            from,
            cycle,
            first: now,
            last: now,
            rates: Default::default(),
            sizes: Default::default(),
            number: run,
            step,
            is_whole: index == 0,
            arrived: vec![false; cycle.probes(cycle.step(step)) as usize],
            dropped: 0,
        }
    }

    fn is_of(&self, from: IpAddr, probe: &Probe) -> bool {
        (self.from, self.number, self.cycle) == (from, probe.run, probe.cycle)
    }

    fn take(&mut self, probe: &Probe, now: Duration) {
        self.last = now;
        if probe.step > self.step {
            self.close();
            // What was lost as a whole. A run that leaps has at most one of each kind.
            let missed = self.step.saturating_add(1)..probe.step;
            for step in missed.take(self.cycle.steps() as usize) {
                self.begin(step);
                self.close();
            }
            self.begin(probe.step);
        }
        if probe.step == self.step
            && let Some(arrived) = self.arrived.get_mut(probe.index as usize)
        {
            *arrived = true;
        }
    }

    fn begin(&mut self, step: u32) {
        (self.step, self.is_whole, self.dropped) = (step, true, 0);
        let probes = self.cycle.probes(self.cycle.step(step)) as usize;
        self.arrived.clear();
        self.arrived.resize(probes, false);
    }

    /// Counts the step.
    fn close(&mut self) {
        let arrived = self.arrived.iter().enumerate().filter(|(_, arrived)| **arrived);
        match self.cycle.step(self.step) {
            Step::Rate(index) if self.is_whole => {
                let count = arrived.count() as u64;
                if let Some(tally) = self.rates.get_mut(index) {
                    tally.sent += self.arrived.len() as u64;
                    tally.arrived += count;
                    tally.dropped += self.dropped;
                }
            }
            Step::Rate(_) => {}
            Step::Sizes => {
                let sizes = arrived.filter_map(|(index, _)| self.cycle.size(index as u32));
                for size in sizes {
                    self.sizes[size].arrived += 1;
                }
                let sent = u64::from(self.is_whole) * u64::from(OF_EACH_SIZE);
                let of_cycle = self.sizes.iter_mut().take(self.cycle.sizes().len());
                of_cycle.for_each(|tally| tally.sent += sent);
            }
        }
    }

    /// Whether a whole step of each kind has been received.
    fn is_complete(&self) -> bool {
        let rates = self.rates.iter().take(self.cycle.rates().len());
        rates.chain(self.sizes.first()).all(|tally| tally.sent > 0)
    }
}

/// What arrived of all runs.
#[derive(Debug, Default)]
pub(super) struct Counts {
    runs: Vec<Run>,
    /// The run of the last probe.
    latest: usize,
    /// Probes of runs beyond the first ones.
    pub(super) uncounted: u64,
    /// Other packets.
    pub(super) others: u64,
}

impl Counts {
    /// Counts a packet that arrived at this time since the begin of listening.
    pub(super) fn take(&mut self, from: IpAddr, packet: &[u8], now: Duration) {
        let Some(probe) = Probe::parse(packet) else {
            self.others += 1;
            return;
        };
        let known = self.runs.iter().position(|run| run.is_of(from, &probe));
        if known.is_none() && !self.has_room(from) {
            self.uncounted += 1;
            return;
        }
        self.latest = known.unwrap_or_else(|| {
            self.runs.push(Run::new(from, &probe, now));
            self.runs.len() - 1
        });
        if let Some(run) = self.runs.get_mut(self.latest) {
            run.take(&probe, now);
        }
    }

    /// Whether a further run from this address is counted.
    fn has_room(&self, from: IpAddr) -> bool {
        let of_host = self.runs.iter().filter(|run| run.from == from).count();
        self.runs.len() < MAX_RUNS && of_host < MAX_RUNS_OF_HOST
    }

    /// Counts packets that this host has dropped.
    pub(super) fn drop(&mut self, packets: u64) {
        if let Some(run) = self.runs.get_mut(self.latest) {
            run.dropped += packets;
        }
    }

    /// Those of which most has arrived first.
    pub(super) fn runs(&self) -> Vec<&Run> {
        let mut runs: Vec<_> = self.runs.iter().collect();
        let arrived = |run: &Run| run.rates.iter().map(|tally| tally.arrived).sum::<u64>();
        runs.sort_by_key(|run| std::cmp::Reverse(arrived(run)));
        runs
    }

    /// When the first probe has arrived.
    pub(super) fn first(&self) -> Option<Duration> {
        self.runs.iter().map(|run| run.first).min()
    }

    /// Whether enough of every run has arrived.
    pub(super) fn is_complete(&self) -> bool {
        !self.runs.is_empty() && self.runs.iter().all(Run::is_complete)
    }
}

#[cfg(test)]
impl Counts {
    /// Takes the probes of a run's steps that `arrives` lets pass, with their lengths. A step takes
    /// a second.
    pub(super) fn feed(
        &mut self,
        from: IpAddr,
        run: u64,
        steps: std::ops::Range<u32>,
        arrives: impl Fn(&Probe, usize) -> bool,
    ) {
        let cycle = Cycle::of(1472, None).unwrap();
        for step in steps {
            for index in 0..cycle.probes(cycle.step(step)) {
                let probe = Probe { run, cycle, step, index };
                let mut packet = Vec::new();
                probe.emit(&mut packet);
                if arrives(&probe, packet.len()) {
                    self.take(from, &packet, Duration::from_secs(step.into()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 77, 0, 1));

    #[test]
    fn losses_are_counted_for_each_rate_in_whole_steps_alone() {
        let mut counts = Counts::default();
        // Listening began in the second step.
        counts.feed(FROM, 1, 1..2, |probe, _| probe.index > 100);
        assert!(!counts.is_complete());
        counts.feed(FROM, 1, 2..6, |probe, _| probe.step != 3 || probe.index % 10 != 0);
        counts.feed(FROM, 1, 6..7, |probe, _| probe.index == 0);
        assert!(counts.is_complete());
        let run = counts.runs()[0];
        let losses = run.rates.map(|tally| tally.loss().unwrap());
        assert_eq!((losses[0], losses[1]), (0.0, 0.0));
        assert!((losses[2] - 0.1).abs() < 0.001, "{losses:?}");
        let all = Tally { sent: 20, arrived: 20, dropped: 0 };
        assert_eq!(run.sizes[..6], [all; 6]);
        assert_eq!(run.sizes[6..], [Tally::default(); 2]);
    }

    #[test]
    fn repeated_and_late_probes_do_not_count_and_whole_steps_may_be_lost() {
        let mut counts = Counts::default();
        counts.feed(FROM, 1, 0..2, |_, _| true);
        counts.feed(FROM, 1, 1..2, |_, _| true);
        // The third and the fourth step are lost.
        counts.feed(FROM, 1, 4..5, |_, _| true);
        counts.feed(FROM, 1, 0..3, |_, _| true);
        counts.feed(FROM, 1, 5..6, |_, _| true);
        let run = counts.runs()[0];
        let losses = run.rates.map(Tally::loss);
        assert_eq!(losses, [Some(0.0), Some(1.0), Some(1.0)]);
        assert_eq!(run.sizes[0], Tally { sent: 40, arrived: 40, dropped: 0 });
    }

    #[test]
    fn what_the_host_has_dropped_is_no_loss_of_the_network() {
        let mut counts = Counts::default();
        counts.feed(FROM, 1, 0..1, |_, _| true);
        counts.feed(FROM, 1, 1..2, |probe, _| probe.index >= 10);
        counts.drop(8);
        counts.feed(FROM, 1, 2..3, |_, _| true);
        let tally = counts.runs()[0].rates[0];
        assert_eq!(tally, Tally { sent: 234, arrived: 224, dropped: 8 });
        assert_eq!(tally.loss(), Some(2.0 / 234.0));
        assert_eq!(tally.dropped(), Some(8.0 / 234.0));
        assert_eq!(Tally::default().loss(), None);
    }

    #[test]
    fn runs_of_strangers_are_bounded_and_change_no_other_run() {
        let mut counts = Counts::default();
        let stranger = |number: u64| std::net::Ipv4Addr::new(10, 77, 1, number as u8).into();
        let first = |probe: &Probe, _: usize| probe.index == 0;
        for run in 0..100 {
            counts.feed(stranger(0), run, 0..1, first);
        }
        assert_eq!((counts.runs().len(), counts.uncounted), (MAX_RUNS_OF_HOST, 96));
        counts.feed(FROM, 0, 0..1, |_, _| true);
        for run in 0..100 {
            counts.feed(stranger(run), run, 0..1, first);
        }
        assert_eq!(counts.runs().len(), MAX_RUNS);
        counts.feed(FROM, 0, 1..7, |_, _| true);
        assert_eq!(counts.runs()[0].rates.map(Tally::loss), [Some(0.0); 3]);
        // A leap counts one step of each kind.
        let mut counts = Counts::default();
        counts.feed(FROM, 0, 0..1, |_, _| true);
        counts.feed(FROM, 0, u32::MAX - 1..u32::MAX, |_, _| true);
        assert_eq!(counts.runs()[0].rates.map(Tally::loss), [Some(1.0); 3]);
        counts.take(FROM, b"fdoctor1", Duration::ZERO);
        assert_eq!(counts.others, 1);
    }
}
