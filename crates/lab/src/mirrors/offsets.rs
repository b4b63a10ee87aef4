//! `ms.slow` and `ms.offsets`: section V-C, with a little control information.

use super::reception::turn;
use super::{EPSILON, NEEDED, SOURCE_SYMBOLS};
use crate::chart::{Axis, Chart, Exhibit, Panel, Point, Series};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use fontana_proto::SplitMix64;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How much faster the first sender is than all others.
const RATIOS: [u32; 6] = [1, 2, 4, 8, 16, 64];

/// Receptions of a case.
const TRIALS: u32 = 200;

const SECTION: &str = "section V-C";

/// What a sender does with the offsets that the receiver has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Enhancement {
    /// Begins at its offset into the order that all share, and goes on from there.
    Offset,
    /// Sends its share of the order, and then all packets in a random order of its own.
    Range,
    /// Sends its share of the order, and then packets that the receiver names: those that it has
    /// not received, from the end of the share that has most of them left.
    Renegotiated,
}

const ENHANCEMENTS: [(&str, Enhancement); 3] = [
    ("offsets", Enhancement::Offset),
    ("ranges", Enhancement::Range),
    ("renegotiated", Enhancement::Renegotiated),
];

pub(crate) const OFFSETS: Experiment = Experiment {
    id: "ms.offsets",
    paper: "mirror sites, section V-C",
    what: "Two senders at stretch factor 2 that share one order of the packets, the receiver \
           asking each for its half: offsets only (enhancement 1), start and end offsets and then \
           a random order, ranges that are renegotiated (enhancement 2); the first sender faster \
           than the second by a ratio.",
    sweep: &SweepOf {
        name: "ms.offsets",
        kind: Kind::Counted,
        cases: |_| (ENHANCEMENTS.len() * RATIOS.len()) as u32,
        run: offsets,
    },
    claims: || {
        let distinctness = |name: &'static str, ratio: u32| {
            move |rows: &[Enhanced]| {
                let is = |row: &&Enhanced| row.enhancement == name && row.ratio == ratio;
                rows.iter().find(is).map_or(f64::NAN.into(), Enhanced::distinctness)
            }
        };
        vec![
            Claim::identity(
                "equal",
                "offsets spread evenly, equal rates: copies of a packet until either sender is through \
                 with its half",
                Target::AtMost(1.0),
                0.0,
                distinctness("offsets", 1),
            ),
            Claim::shape(
                "lapped",
                "offsets, at a ratio of 64: copies of a packet",
                quote("distinctness may drop significantly", SECTION),
                Target::AtLeast(1.0001),
                distinctness("offsets", 64),
            ),
            Claim::identity(
                "renegotiated",
                "renegotiated ranges, any ratio: most copies of a packet, of which the receiver names \
                 only those that it lacks",
                Target::AtMost(1.0),
                0.0,
                |rows: &[Enhanced]| {
                    let of = rows.iter().filter(|row| row.enhancement == "renegotiated");
                    Estimate::largest(of.map(Enhanced::distinctness))
                },
            ),
        ]
    },
    exhibits: |table| {
        let rows: Vec<Enhanced> = table.read().unwrap_or_default();
        let curve = |&(name, _): &(&str, Enhancement)| {
            let of = rows.iter().filter(|row| row.enhancement == name);
            let eta = |row: &Enhanced| row.distinctness().times(EPSILON);
            let points: Vec<_> =
                of.map(|row| Point::estimate(row.ratio.into(), eta(row))).collect();
            Series::new(name, points)
        };
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "Two senders that share one order of the packets, c = 2".into(),
            x: Axis::logarithmic("rate of the first sender over the second"),
            y: Axis::linear("reception inefficiency"),
            panels: Panel::only(ENHANCEMENTS.iter().map(curve).collect()),
        })]
    },
};

/// Receptions with an enhancement.
#[derive(Serialize, Deserialize)]
struct Enhanced {
    enhancement: String,
    ratio: u32,
    inefficiency: f64,
    distinctness: f64,
    /// The standard error of `distinctness`.
    error: f64,
}

impl Enhanced {
    fn distinctness(&self) -> Estimate {
        Estimate { value: self.distinctness, error: self.error }
    }
}

fn offsets(case: &Case) -> Vec<Enhanced> {
    let index = case.index as usize;
    let (Some(&(name, enhancement)), Some(&ratio)) =
        (ENHANCEMENTS.get(index / RATIOS.len()), RATIOS.get(index % RATIOS.len()))
    else {
        return Vec::new();
    };
    let mut random = case.stream(0);
    let packets = mean(|| receive(enhancement, &[ratio, 1], 2 * SOURCE_SYMBOLS, &mut random));
    let inefficiency = packets.value / f64::from(SOURCE_SYMBOLS);
    let Estimate { value: distinctness, error } = packets.times(1.0 / f64::from(NEEDED));
    vec![Enhanced { enhancement: name.into(), ratio, inefficiency, distinctness, error }]
}

/// Stretch factors over `eps s`, in hundredths, and numbers of senders of `ms.slow`.
const MARGINS: [u32; 3] = [90, 100, 105];
const SENDERS: [u32; 3] = [2, 3, 4];

pub(crate) const SLOW: Experiment = Experiment {
    id: "ms.slow",
    paper: "mirror sites, section V-C",
    what: "The senders share the packets evenly, each with its range, and all but the first are \
           slower by a ratio: duplicates that the receiver gets, at stretch factors just below, at \
           and just above eps s.",
    sweep: &SweepOf {
        name: "ms.slow",
        kind: Kind::Counted,
        cases: |_| (SENDERS.len() * MARGINS.len()) as u32,
        run: slow,
    },
    claims: || {
        vec![
            Claim::identity(
                "enough",
                "c >= eps s, however slow the others: most copies of a packet, of which each sender has \
                 enough in its own range",
                Target::AtMost(1.0),
                0.0,
                |rows: &[SlowSenders]| {
                    let of = rows.iter().filter(|row| row.margin >= 100);
                    Estimate::largest(of.map(SlowSenders::distinctness))
                },
            ),
            Claim::own(
                "necessary",
                "with 10 % less one sender does not suffice at a ratio of 64: fewest copies of a \
                 packet",
                Target::AtLeast(1.0001),
                0.0,
                |rows: &[SlowSenders]| {
                    let of = rows.iter().filter(|row| row.margin == 90 && row.ratio == 64);
                    let fewest = Estimate::largest(of.map(|row| row.distinctness().times(-1.0)));
                    fewest.times(-1.0)
                },
            ),
        ]
    },
    exhibits: |_| Vec::new(),
};

/// Receptions from senders of which all but one are slow.
#[derive(Serialize, Deserialize)]
struct SlowSenders {
    senders: u32,
    /// Stretch factor over `eps s`, in hundredths.
    margin: u32,
    ratio: u32,
    distinctness: f64,
    /// The standard error of `distinctness`.
    error: f64,
}

impl SlowSenders {
    fn distinctness(&self) -> Estimate {
        Estimate { value: self.distinctness, error: self.error }
    }
}

fn slow(case: &Case) -> Vec<SlowSenders> {
    let index = case.index as usize;
    let (Some(&senders), Some(&margin)) =
        (SENDERS.get(index / MARGINS.len()), MARGINS.get(index % MARGINS.len()))
    else {
        return Vec::new();
    };
    let stretch = EPSILON * f64::from(senders) * f64::from(margin) / 100.0;
    // Each sender has its full share: a whole number of packets for each.
    let share = (stretch * f64::from(SOURCE_SYMBOLS) / f64::from(senders)).round() as u32;
    let mut random = case.stream(0);
    RATIOS
        .iter()
        .map(|&ratio| {
            let mut rates = vec![1; senders as usize];
            rates[0] = ratio;
            let packets =
                mean(|| receive(Enhancement::Range, &rates, share * senders, &mut random));
            let Estimate { value: distinctness, error } = packets.times(1.0 / f64::from(NEEDED));
            SlowSenders { senders, margin, ratio, distinctness, error }
        })
        .collect()
}

/// The mean of as many receptions as a case has.
fn mean(mut receive: impl FnMut() -> u32) -> Estimate {
    let packets: Vec<f64> = (0..TRIALS).map(|_| receive().into()).collect();
    Estimate::mean(&packets)
}

/// Packets that a receiver gets until [`NEEDED`] of `encoding_symbols` are distinct, from senders
/// of these rates that share one order.
fn receive(
    enhancement: Enhancement,
    rates: &[u32],
    encoding_symbols: u32,
    random: &mut SplitMix64,
) -> u32 {
    let mut shared = Shared::new(rates.len(), encoding_symbols);
    let (mut packets, mut distinct) = (0, 0);
    for &sender in turn(rates).iter().cycle() {
        if distinct >= NEEDED.min(encoding_symbols) {
            break;
        }
        let place = shared.next(enhancement, sender, random);
        packets += 1;
        distinct += u32::from(!std::mem::replace(&mut shared.seen[place as usize], true));
    }
    packets
}

/// Senders that share one order. The order being random, packets are named by their place in it.
struct Shared {
    seen: Vec<bool>,
    /// Packets that each sender has sent.
    sent: Vec<u32>,
    /// For each sender an order of its own, for when it is through with its share.
    own: Vec<Vec<u32>>,
}

impl Shared {
    fn new(senders: usize, encoding_symbols: u32) -> Self {
        Self {
            seen: vec![false; encoding_symbols as usize],
            sent: vec![0; senders],
            own: vec![(0..encoding_symbols).collect(); senders],
        }
    }

    /// The share of a sender: equal parts of the order.
    fn share(&self, sender: usize) -> Range<u32> {
        let start = |sender: usize| (sender * self.seen.len() / self.sent.len()) as u32;
        start(sender)..start(sender + 1)
    }

    /// The packet that a sender sends next.
    fn next(&mut self, enhancement: Enhancement, sender: usize, random: &mut SplitMix64) -> u32 {
        let encoding_symbols = self.seen.len() as u32;
        let share = self.share(sender);
        let next = share.start + self.sent[sender];
        self.sent[sender] += 1;
        match enhancement {
            Enhancement::Offset => next % encoding_symbols,
            Enhancement::Range if share.contains(&next) => next,
            Enhancement::Range => {
                let at = (next - share.end) % encoding_symbols;
                let other = at + random.below(encoding_symbols - at);
                let order = &mut self.own[sender];
                order.swap(at as usize, other as usize);
                order[at as usize]
            }
            Enhancement::Renegotiated if share.contains(&next) && !self.seen[next as usize] => next,
            Enhancement::Renegotiated => self.wanted(),
        }
    }

    /// The last packet that the receiver lacks of the share that is farthest from being sent.
    fn wanted(&self) -> u32 {
        let left =
            |sender: usize| (self.share(sender).len() as u32).saturating_sub(self.sent[sender]);
        let slowest = (0..self.sent.len()).max_by_key(|&sender| left(sender)).unwrap_or(0);
        let lacking = |place: &u32| !self.seen[*place as usize];
        let wanted = self.share(slowest).rev().find(lacking);
        wanted.or_else(|| (0..self.seen.len() as u32).find(lacking)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renegotiation_never_brings_a_packet_twice_even_if_all_are_needed() {
        for rates in [[1, 1], [7, 1], [64, 1]] {
            let mut random = SplitMix64::new(1, 1);
            let packets = receive(Enhancement::Renegotiated, &rates, NEEDED, &mut random);
            assert_eq!(packets, NEEDED, "{rates:?}");
        }
    }

    #[test]
    fn a_sender_that_begins_in_the_middle_comes_to_the_beginning() {
        let mut shared = Shared::new(2, 10);
        let mut random = SplitMix64::new(1, 1);
        let places: Vec<_> =
            (0..7).map(|_| shared.next(Enhancement::Offset, 1, &mut random)).collect();
        assert_eq!(places, [5, 6, 7, 8, 9, 0, 1]);
    }
}
