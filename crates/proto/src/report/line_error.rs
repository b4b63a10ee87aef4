//! Losses of a receiver that do not depend on the rate.

/// Share of lost packets above which a path is full.
pub(super) const OVERLOAD: f64 = 0.05;
/// Standard deviations that the losses have to exceed that share by: with 100 reports a second, one
/// is wrong in some minutes.
pub(super) const CERTAIN: f64 = 4.5;
/// Part of the rate at which losses that depend on the rate would be fewer.
const LOWERED: f64 = 0.7;
/// Part of a share of losses by which it may differ from an equal one.
const EQUAL: f64 = 0.2;
/// Fewest packets whose share is compared.
const LEAST_PACKETS: f64 = 200.0;
/// Weight of the latest share in the mean.
const LATEST: f64 = 0.25;
/// The largest that is believed, and the largest while the rate doubles.
const MOST: f64 = 0.3;
const MOST_AT_START: f64 = 0.5;
/// The least that is noted at the start: a path without errors may lose as much by chance.
const LEAST_SHARE: f64 = 0.01;

/// Tells line errors from congestion: if the share of lost packets stays the same while the rate is
/// reduced by 30 %, it is not the rate that causes it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LineError {
    /// Mean share of lost packets; `None` before the first report.
    mean: Option<f64>,
    /// The first of the reports of a full path whose shares were equal.
    first: Option<First>,
    /// Share of lost packets that the line loses; 0: not known.
    share: f64,
}

#[derive(Clone, Copy, Debug)]
struct First {
    share: f64,
    packets: f64,
    rate: f64,
}

impl LineError {
    /// The share of lost packets that are not lost because of the rate.
    pub(super) fn share(&self) -> f64 {
        self.share
    }

    /// The share of lost packets that is no news.
    pub(super) fn usual(&self) -> f64 {
        self.mean.unwrap_or(0.0).max(self.share)
    }

    /// A line that loses this share.
    pub(super) fn of(share: f64) -> Self {
        Self { mean: Some(share), first: None, share: share.min(MOST) }
    }

    /// Notes a share of lost packets of so many. `is_full`: they are more than a path loses that is
    /// not full. Returns the rate before the first reduction, if it turns out to be a line error.
    pub(super) fn note(
        &mut self,
        share: f64,
        packets: f64,
        is_full: bool,
        rate: f64,
    ) -> Option<f64> {
        let mean = self.mean.map_or(share, |mean| mean + LATEST * (share - mean));
        self.mean = Some(mean);
        if self.share > 0.0 && mean < self.share / 2.0 {
            // The line has become better.
            (self.share, self.first) = (0.0, None);
        }
        if !is_full || packets < LEAST_PACKETS {
            return None;
        }
        let is_equal = |first: &First| {
            let deviation = (first.share / first.packets + share / packets).sqrt();
            (share - first.share).abs() <= EQUAL * first.share + 2.0 * deviation
        };
        let Some(first) = self.first.filter(is_equal) else {
            self.first = Some(First { share, packets, rate });
            return None;
        };
        if rate > LOWERED * first.rate {
            return None;
        }
        self.first = None;
        self.share = mean.min(share).min(MOST);
        Some(first.rate)
    }
}

/// What a receiver loses while the rate doubles from one that most paths carry. If it loses the
/// same share at twice the rate, it is not the rate that causes it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StartLosses {
    /// At the rates before, and the highest of them.
    before: Lost,
    highest: f64,
    /// At the present one.
    present: Lost,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    lost: f64,
    packets: f64,
}

impl Lost {
    fn share(self) -> Option<f64> {
        (self.packets > 0.0).then(|| self.lost / self.packets)
    }
}

impl StartLosses {
    /// The share of lost packets that is taken for errors of the line: that at the rates before, or
    /// the first one, of so many packets. What is more than half, or a third where the first rate
    /// is not the lowest, is none. And what a share of so many packets exceeds that by at most.
    pub(super) fn line(&self, share: f64, packets: f64, is_first_rate: bool) -> (f64, f64) {
        let most = if is_first_rate { MOST_AT_START } else { MOST };
        let line = self.before.share().unwrap_or(share.min(most)).min(MOST_AT_START);
        let both = match self.before.packets {
            0.0 => packets,
            before => packets * before / (packets + before),
        };
        (line, deviation(CERTAIN, line.max(OVERLOAD), both))
    }

    /// Since the rate is the same, so many packets have arrived, and so many were lost.
    pub(super) fn note(&mut self, received: u32, lost: u32) {
        let lost = f64::from(lost);
        self.present = Lost { lost, packets: lost + f64::from(received) };
    }

    /// The rate changes. What a path loses that did not carry it says nothing of the line.
    pub(super) fn end_rate(&mut self, arrives: bool, rate: f64) {
        let Lost { lost, packets } = std::mem::take(&mut self.present);
        if arrives && packets > 0.0 {
            self.before.lost += lost;
            self.before.packets += packets;
            self.highest = self.highest.max(rate);
        }
    }

    /// The share that the line loses, if as much was lost at the rates at the start as now at a
    /// much higher one, of so many packets. Asked once: it then knows nothing more.
    pub(super) fn persists(&mut self, share: f64, packets: f64, rate: f64) -> Option<f64> {
        let before = self.before.share().filter(|_| rate * LOWERED > self.highest)?;
        let both = packets * self.before.packets / (packets + self.before.packets);
        *self = Self::default();
        (is_equal(share, before, both) && share >= LEAST_SHARE).then_some(share)
    }
}

/// Whether a share of lost packets of so many is as large as another one.
pub(super) fn is_equal(share: f64, other: f64, packets: f64) -> bool {
    (share - other).abs() <= EQUAL * other + 2.0 * (share.max(other) / packets).sqrt()
}

/// What the share of lost packets of so many exceeds its mean by at most, with this certainty. Few
/// packets have larger shares than a normal distribution says: two are added.
pub(super) fn deviation(certainty: f64, mean: f64, packets: f64) -> f64 {
    certainty * (mean * (1.0 - mean) / packets).sqrt() + 2.0 / packets
}
