//! `df.table3` and `df.table4`: times of encoding and decoding.
//!
//! The paper's Cauchy code is [`XorCauchy`](xor_cauchy::XorCauchy) over the whole file as
//! one block. A file of 16 MB would take a minute per run, so long files are not coded with it.
//! Their time is that of a block of 250 packets, measured in runs that alternate with the other
//! codes, times the ratio of the counted exclusive-ors. This favors the Cauchy code, because the
//! short block is in the caches.

use super::tornado;
use crate::chart::{Axis, Chart, Exhibit, Grid, Panel, Series};
use crate::claim::{Claim, Target, quote};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::statistics::{exponent, largest};
use crate::table::Table;
use crate::timing::{TimedWork, medians};
use coder::{Cauchy, Direction, Fountain};
use serde::{Deserialize, Serialize};

pub(crate) mod coder;
mod xor_cauchy;

/// Files of the paper's tables, in packets of 1 KB, with the printed seconds of Cauchy and of
/// Tornado Z to encode and to decode.
const PRINTED: [(u32, [f64; 2], [f64; 2]); 7] = [
    (250, [4.6, 0.11], [2.06, 0.18]),
    (500, [19.0, 0.18], [8.4, 0.24]),
    (1000, [93.0, 0.29], [40.5, 0.31]),
    (2000, [442.0, 0.57], [199.0, 0.44]),
    (4000, [1717.0, 1.01], [800.0, 0.74]),
    (8000, [6994.0, 1.99], [3166.0, 1.28]),
    (16_000, [30_802.0, 3.93], [13_629.0, 2.27]),
];

/// 16 MB.
const LONGEST: u32 = tornado::SOURCE_SYMBOLS;

/// The longest file that is coded with the Cauchy code itself, quick and full: a quarter of a
/// second of work, and four seconds.
const LONGEST_TIMED: [u32; 2] = [1000, 4000];

/// The block whose time stands for those of longer ones: some ten milliseconds of work, as of the
/// other codes.
const STAND_IN: u32 = 250;

/// The interleaved file of `df.download`: 17 blocks.
const INTERLEAVED: (u32, u32) = (17, 941);

/// Alternating runs, quick and full: odd numbers. More of them do not change the second digit.
const ROUNDS: [u32; 2] = [5, 9];

const CAUCHY: &str = "Cauchy";
const TORNADO: &str = "Tornado Z";
const INTERLEAVED_NAME: &str = "17 blocks";

/// The time of a code for a file.
#[derive(Serialize, Deserialize)]
struct CodingTime {
    code: String,
    k: u32,
    seconds: f64,
    /// The block that was timed.
    timed_k: u32,
    /// Of Cauchy, the time over that of the stand-in in the same turns if it is the file itself,
    /// and the counted factor if it is not.
    times_stand_in: f64,
    /// Exclusive-ors of packets that encode the file, of Cauchy and Tornado Z. Those that decode it
    /// are as many or fewer.
    xors: f64,
}

pub(crate) const TABLE_3: Experiment = Experiment {
    id: "df.table3",
    paper: "digital fountain, table III",
    what: "Processor time to make k redundant packets of 1024 bytes from k source packets: the \
           paper's Cauchy code (exclusive-ors of parts of packets, over GF(2^16), the whole file as \
           one block) beside Tornado Z, LT codes and RaptorQ of ours, medians of alternating runs. Of files \
           beyond 1 MB (full: 4 MB) the time of the Cauchy code is not taken but counted: \
           exclusive-ors over those of a file of 250 KB that is timed in the same turns.",
    sweep: &SweepOf {
        name: "df.table3",
        kind: Kind::Timed,
        cases: |_| PRINTED.len() as u32,
        run: |case| times(case, Direction::Encode),
    },
    claims: || claims(Direction::Encode),
    exhibits: |table| exhibits(table, Direction::Encode),
};

pub(crate) const TABLE_4: Experiment = Experiment {
    id: "df.table4",
    paper: "digital fountain, table IV",
    what: "Processor time to recover a file from as many source packets as redundant ones, \
           planning included, as table III; LT codes are decoded from redundant packets alone, \
           there being no others. And the 17 interleaved Cauchy blocks of 941 packets that a file \
           of 16 MB may be cut into at a loss of 50 % (`df.download`, table V).",
    sweep: &SweepOf {
        name: "df.table4",
        kind: Kind::Timed,
        cases: |_| PRINTED.len() as u32,
        run: |case| times(case, Direction::Decode),
    },
    claims: || claims(Direction::Decode),
    exhibits: |table| exhibits(table, Direction::Decode),
};

/// Printed time of Cauchy over that of Tornado Z.
fn printed_ratio(direction: Direction, k: u32) -> f64 {
    let line = PRINTED.iter().find(|line| line.0 == k);
    line.map_or(f64::NAN, |&(_, encode, decode)| {
        let [cauchy, tornado] = if direction == Direction::Encode { encode } else { decode };
        cauchy / tornado
    })
}

fn times(case: &Case, direction: Direction) -> Vec<CodingTime> {
    let Some(&(k, ..)) = PRINTED.get(case.index as usize) else { return Vec::new() };
    let mut random = case.stream(0);
    let is_timed = k <= case.scale.pick(LONGEST_TIMED[0], LONGEST_TIMED[1]);
    let lengths = if is_timed && k != STAND_IN { vec![STAND_IN, k] } else { vec![STAND_IN] };
    let mut cauchy: Vec<Cauchy> =
        lengths.iter().filter_map(|&length| Cauchy::new(length, &mut random)).collect();
    let mut fountains: Vec<Fountain> = Fountain::all(k, direction, &mut random);
    let names: Vec<&str> = fountains.iter().map(Fountain::name).collect();

    let mut works: Vec<TimedWork<'_>> = Vec::new();
    works.extend(
        cauchy.iter_mut().map(|code| -> TimedWork<'_> { Box::new(|| code.run(direction)) }),
    );
    works.extend(
        fountains.iter_mut().map(|code| -> TimedWork<'_> { Box::new(|| code.run(direction)) }),
    );
    let seconds = medians(case.scale.pick(ROUNDS[0], ROUNDS[1]), &mut works);
    drop(works);

    // The time of a wrong result counts as unknown.
    let right = cauchy.iter().map(|code| code.is_right(direction));
    let right = right.chain(fountains.iter().map(|code| code.is_right(direction)));
    let seconds: Vec<f64> =
        seconds.into_iter().zip(right).map(|(s, right)| if right { s } else { f64::NAN }).collect();
    let (of_cauchy, of_fountains) = seconds.split_at(cauchy.len());
    let (Some(&stand_in), Some(&last)) = (of_cauchy.first(), of_cauchy.last()) else {
        return Vec::new();
    };
    let xors = |k: u32| coder::cauchy_xors(k, direction).map_or(f64::NAN, |xors| xors as f64);
    let parts = f64::from(coder::BITS);
    let row = |code: &str, timed_k: u32, seconds: f64, xors: f64| {
        let times_stand_in = seconds / stand_in;
        CodingTime { code: code.into(), k, seconds, timed_k, times_stand_in, xors }
    };
    let counted = |code: &str, factor: f64| {
        let xors = factor * xors(STAND_IN) / parts;
        let row = row(code, STAND_IN, stand_in * factor, xors);
        CodingTime { times_stand_in: factor, ..row }
    };
    let mut rows = vec![if is_timed {
        row(CAUCHY, k, last, xors(k) / parts)
    } else {
        counted(CAUCHY, xors(k) / xors(STAND_IN))
    }];
    if k == LONGEST && direction == Direction::Decode {
        let (blocks, length) = INTERLEAVED;
        rows.push(counted(INTERLEAVED_NAME, f64::from(blocks) * xors(length) / xors(STAND_IN)));
    }
    let edges = tornado::graph(k).edges() as f64;
    let fountains = names.into_iter().zip(of_fountains).map(|(name, &seconds)| {
        let xors = if name == TORNADO { edges } else { f64::NAN };
        row(name, k, seconds, xors)
    });
    rows.extend(fountains);
    rows
}

fn claims(direction: Direction) -> Vec<Claim> {
    let printed = printed_ratio(direction, LONGEST);
    // On another computer, only the order of magnitude is comparable.
    let third = |ratio: f64| Target::AtLeast((ratio / 3.0).round());
    let (section, cauchy, tornado, exponents) = match direction {
        Direction::Encode => ("table III", "30802 seconds", "3.93 seconds", [2.12, 0.86]),
        Direction::Decode => ("table IV", "13629 seconds", "2.27 seconds", [2.12, 0.61]),
    };
    let [of_cauchy, of_tornado] = exponents;
    let mut claims = vec![
        Claim::printed(
            "cauchy",
            "Cauchy: time as a power of k, of the files that are timed; of the printed times",
            quote(cauchy, section),
            Target::Equal(of_cauchy),
            0.25,
            |rows: &[CodingTime]| exponent(&timed_cauchy(rows)),
        ),
        Claim::printed(
            "tornado",
            "Tornado Z: exclusive-ors to encode as a power of k; the printed times",
            quote(tornado, section),
            Target::Equal(of_tornado),
            0.2,
            |rows: &[CodingTime]| {
                exponent(&rows.points(|row| row.code == TORNADO, |row| (row.k.into(), row.xors)))
            },
        ),
        Claim::shape(
            "ratio",
            format!("16 MB: time of Cauchy over Tornado Z; printed, {printed:.0}: a third of it"),
            quote("much faster than RS codes, even for relatively small files", "section V-C"),
            third(printed),
            |rows: &[CodingTime]| over_tornado(rows, CAUCHY, LONGEST),
        ),
    ];
    if direction == Direction::Decode {
        claims.push(Claim::shape(
            "interleaved",
            "16 MB at a loss of 50 %, interleaved, over Tornado Z; printed, 481 s over 2.27 s: a \
             third of it",
            quote("compared with just over 2 seconds for Tornado Z", "section VI-A"),
            third(212.0),
            |rows: &[CodingTime]| over_tornado(rows, INTERLEAVED_NAME, LONGEST),
        ));
        claims.push(Claim::shape(
            "lt",
            "time of LT (fast) over Tornado Z, largest of all files",
            quote("strictly faster decoding time than Tornado Z", "section VI"),
            Target::AtMost(1.0),
            |rows: &[CodingTime]| {
                largest(PRINTED.map(|(k, ..)| over_tornado(rows, "LT (fast)", k)))
            },
        ));
    }
    claims
}

/// Time over that of the stand-in against `k`, where it was taken.
fn timed_cauchy(rows: &[CodingTime]) -> Vec<(f64, f64)> {
    let is = |row: &CodingTime| row.code == CAUCHY && row.timed_k == row.k;
    rows.points(is, |row| (row.k.into(), row.times_stand_in))
}

fn over_tornado(rows: &[CodingTime], code: &str, k: u32) -> f64 {
    let seconds = |code| rows.number(|row| row.code == code && row.k == k, |row| row.seconds);
    seconds(code) / seconds(TORNADO)
}

fn exhibits(table: &Table, direction: Direction) -> Vec<Exhibit> {
    let rows: Vec<CodingTime> = table.read().unwrap_or_default();
    let mut codes = rows.distinct(|row| row.code.clone());
    codes.retain(|code| code != INTERLEAVED_NAME);
    let curve = |code: &String| {
        let points = rows.points(|row| row.code == *code, |row| (row.k.into(), row.seconds));
        Series::new(code.clone(), points)
    };
    let printed = [CAUCHY, TORNADO].into_iter().enumerate().map(|(column, code)| {
        let point = |&(k, encode, decode): &(u32, [f64; 2], [f64; 2])| {
            let seconds = if direction == Direction::Encode { encode } else { decode };
            (f64::from(k), seconds[column])
        };
        Series::printed_curve("paper, on its host", PRINTED.iter().map(point)).in_color_of(code)
    });
    let chart = Chart {
        name: "",
        title: match direction {
            Direction::Encode => "Encoding at stretch 2".into(),
            Direction::Decode => "Decoding, half of the packets redundant".into(),
        },
        x: Axis::logarithmic("packets of 1 KB in the file"),
        y: Axis::logarithmic("seconds of processor time"),
        panels: Panel::only(codes.iter().map(curve).chain(printed).collect()),
    };
    let others: Vec<String> = codes.iter().filter(|code| *code != TORNADO).cloned().collect();
    let cell = |code: &String, k: u32| {
        let ours = over_tornado(&rows, code, k);
        match code.as_str() {
            CAUCHY => format!("{ours:.0} ({:.0})", printed_ratio(direction, k)),
            _ => format!("{ours:.2}"),
        }
    };
    let line = |&(k, ..): &(u32, _, _)| {
        let cells = others.iter().map(|code| cell(code, k));
        [k.to_string()].into_iter().chain(cells).collect()
    };
    let grid = Grid {
        title: "Time over that of Tornado Z, ours (and printed)".into(),
        columns: ["packets".to_owned()].into_iter().chain(others.iter().cloned()).collect(),
        rows: PRINTED.iter().map(line).collect(),
    };
    vec![Exhibit::Grid(grid), Exhibit::Chart(chart)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Scale;

    #[test]
    fn every_code_has_a_time_in_both_directions() {
        for direction in [Direction::Encode, Direction::Decode] {
            let case = Case { index: 0, scale: Scale::Quick, seed: 1, sweep: "times" };
            let rows = times(&case, direction);
            let seconds = rows.numbers(|row| row.k == STAND_IN, |row| row.seconds);
            assert_eq!(seconds.len(), 5);
            // A code that computed something wrong has none.
            assert!(seconds.iter().all(|&seconds| seconds > 0.0), "{seconds:?}");
        }
    }

    #[test]
    fn the_printed_ratios_are_those_of_the_summary() {
        assert_eq!(printed_ratio(Direction::Encode, LONGEST).round(), 7838.0);
        assert_eq!(printed_ratio(Direction::Decode, LONGEST).round(), 6004.0);
        assert_eq!(INTERLEAVED.0 * INTERLEAVED.1, LONGEST - 3);
    }
}
