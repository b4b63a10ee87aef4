//! Losses of a receiver that do not depend on the rate.

/// Part of the rate at which losses that depend on the rate would be fewer.
const LOWERED: f64 = 0.7;
/// Part of a share of losses by which it may differ from an equal one.
const EQUAL: f64 = 0.2;
/// Fewest packets whose share is compared.
const LEAST_PACKETS: f64 = 200.0;
/// Weight of the latest share in the mean.
const LATEST: f64 = 0.25;
/// The largest that is believed.
const MOST: f64 = 0.3;

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
