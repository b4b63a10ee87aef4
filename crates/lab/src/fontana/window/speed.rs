//! `fo.speed`: how fast an object is recovered.

use super::code::WindowCode;
use super::recovery::{self, Recovered};
use super::{DELAY_WINDOWS, MOST_OVERHEAD, Stream, encoder};
use crate::chart::{Exhibit, Grid};
use crate::claim::{Claim, Target};
use crate::digital_fountain::times::coder::{Direction, Fountain, SYMBOL_SIZE};
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use crate::row::Rows;
use crate::statistics::largest;
use crate::timing::{TimedWork, medians};
use serde::{Deserialize, Serialize};

/// 100 MB: more than a processor's caches hold.
const SOURCE_SYMBOLS: u32 = 100_000;

/// Windows; and the block of plain RaptorQ beside them.
const WINDOWS: [u32; 2] = [2000, 4096];
const BLOCK: u32 = 10_000;

const LOSS: f64 = 0.5;

/// Turns, quick and full: odd numbers.
const ROUNDS: [u32; 2] = [3, 9];

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fo.speed",
    paper: "beyond the papers",
    what: "Windowed RaptorQ on bytes: processor time of one core to recover 100 000 symbols of 1024 \
           bytes, planning included, from 1.006 k symbols, as many having been lost; beside plain \
           RaptorQ, a block of 10 000 symbols of which half are repair symbols, medians of alternating runs. \
           And how many rows are held at once.",
    sweep: &SweepOf { name: "fo.speed", kind: Kind::Timed, cases: |_| WINDOWS.len() as u32, run },
    claims,
    exhibits: |table| {
        let rows: Vec<Speed> = table.read().unwrap_or_default();
        let line = |row: &Speed| {
            let cell = |value: f64, digits: usize| {
                if value.is_nan() { "–".into() } else { format!("{value:.digits$}") }
            };
            vec![
                row.code.clone(),
                cell(row.gigabytes_per_second, 2),
                cell(row.of_blocks, 2),
                cell(row.rows_held, 1),
                cell(row.reads, 1),
            ]
        };
        let columns =
            ["code", "GB/s", "of blocks", "rows held, in windows", "rows read of a symbol"];
        vec![Exhibit::Grid(Grid {
            title: "Recovery on one core".into(),
            columns: columns.map(String::from).into(),
            rows: rows.iter().map(line).collect(),
        })]
    },
};

/// The speed of recovery with a code.
#[derive(Serialize, Deserialize)]
struct Speed {
    code: String,
    window: u32,
    gigabytes_per_second: f64,
    /// The speed over that of blocks.
    of_blocks: f64,
    /// Rows held at once, in windows.
    rows_held: f64,
    /// Rows that are read for a symbol.
    reads: f64,
}

fn run(case: &Case) -> Vec<Speed> {
    let Some(&window) = WINDOWS.get(case.index as usize) else { return Vec::new() };
    let mut random = case.stream(0);
    let line = WindowCode::new(SOURCE_SYMBOLS, window, random.next_u64());
    let source: Vec<u8> = std::iter::repeat_with(|| random.next_u64().to_le_bytes())
        .take(SOURCE_SYMBOLS as usize * SYMBOL_SIZE / 8)
        .flatten()
        .collect();
    let columns = encoder::columns(&line, &source, SYMBOL_SIZE);
    drop(source);
    let mut stream = Stream::new(LOSS, random.next_u64());
    let esis = stream.first((f64::from(SOURCE_SYMBOLS) * MOST_OVERHEAD) as u32).to_vec();
    let received = encoder::symbols(&line, &columns, &esis, SYMBOL_SIZE);

    let mut recovered: Option<Recovered> = None;
    let mut block = Fountain::raptorq(BLOCK, Direction::Decode, &mut random);
    let mut works: Vec<TimedWork<'_>> = vec![Box::new(|| {
        // Memory that was used before, as that of the other one.
        let memory = recovered.take().map(|recovered| recovered.columns).unwrap_or_default();
        let delay = DELAY_WINDOWS * window;
        recovered = recovery::recover(&line, &esis, &received, SYMBOL_SIZE, delay, memory);
    })];
    works.extend(
        block
            .iter_mut()
            .map(|block| -> TimedWork<'_> { Box::new(|| block.run(Direction::Decode)) }),
    );
    let seconds = medians(case.scale.pick(ROUNDS[0], ROUNDS[1]), &mut works);
    drop(works);

    let right = block.is_some_and(|block| block.is_right(Direction::Decode));
    let (&[windowed, blocks], Some(recovered), true) = (&*seconds, recovered, right) else {
        return Vec::new();
    };
    // Who computed something else took no time that means anything.
    let windowed = if recovered.columns == columns { windowed } else { f64::NAN };
    let rate = |symbols: u32, seconds: f64| f64::from(symbols) * SYMBOL_SIZE as f64 / seconds / 1e9;
    let (windowed, blocks) = (rate(SOURCE_SYMBOLS, windowed), rate(BLOCK, blocks));
    let held = recovered.slots as f64 / f64::from(window);
    let speed = |code: &str, gigabytes_per_second, rows_held, reads| Speed {
        code: format!("{code} {window}"),
        window,
        gigabytes_per_second,
        of_blocks: gigabytes_per_second / blocks,
        rows_held,
        reads,
    };
    vec![
        speed("windows of", windowed, held, recovered.reads),
        speed("blocks beside", blocks, f64::NAN, f64::NAN),
    ]
}

fn claims() -> Vec<Claim> {
    let best = |number: fn(&Speed) -> f64| {
        move |rows: &[Speed]| {
            largest(
                WINDOWS.map(|w| rows.number(|row| row.code == format!("windows of {w}"), number)),
            )
        }
    };
    vec![
        Claim::own(
            "rate",
            "on the wire only if an object is recovered at 2 GB/s by one core: faster of the windows",
            Target::AtLeast(2.0),
            0.0,
            best(|row| row.gigabytes_per_second),
        ),
        Claim::own(
            "memory",
            "in the memory of about 4 windows: rows held at once, larger of the windows",
            Target::AtMost(4.0),
            1.0,
            best(|row| row.rows_held),
        ),
    ]
}
