//! `ms.losses`: equal senders whose packets are lost, and the scheme without a code.

use super::reception::{Mirrors, turn};
use super::{NEEDED, SOURCE_SYMBOLS};
use crate::chart::{Exhibit, Grid};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, SweepOf};
use fontana_proto::SplitMix64;
use fontana_sim::{Loss, LossModel};
use serde::{Deserialize, Serialize};

/// "One out of every ten packets is dropped", and in bursts of so many packets.
const LOSS: f64 = 0.1;
const BURST: f64 = 5.0;
const LOSSES: [&str; 3] = [NONE, STEADY, BURSTS];
const NONE: &str = "none";
const STEADY: &str = "steady";
const BURSTS: &str = "bursts";
const SENDERS: [u32; 4] = [1, 2, 3, 4];
const STRETCH: u32 = 4;
const TRIALS: u32 = 1000;
/// Blocks of the scheme without a code (section II).
const BLOCKS: u32 = 10;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "ms.losses",
    paper: "mirror sites, sections II and V-A.2",
    what: "Speed-up of equal senders over one, at stretch factor 4 as in ms.fig1, without losses, if \
           every tenth packet of each sender is lost, and if as many are lost in bursts of 5 on average; \
           1000 receptions of each. And the paper's scheme without a code: ten blocks, each from the \
           first sender that is free, which sends a block again from its beginning to its end until \
           nothing of it is missing.",
    sweep: &SweepOf {
        name: "ms.losses",
        kind: Kind::Counted,
        cases: |_| (LOSSES.len() * SENDERS.len()) as u32,
        run: |case| run(case).into_iter().collect(),
    },
    claims,
    exhibits: |table| vec![grid(&table.read().unwrap_or_default())],
};

/// Packets that the first sender sends until a receiver has everything.
#[derive(Serialize, Deserialize)]
struct Losses {
    loss: String,
    senders: u32,
    coded: f64,
    coded_error: f64,
    blocks: f64,
    blocks_error: f64,
}

impl Losses {
    fn coded(&self) -> Estimate {
        Estimate { value: self.coded, error: self.coded_error }
    }

    fn blocks(&self) -> Estimate {
        Estimate { value: self.blocks, error: self.blocks_error }
    }
}

fn run(case: &Case) -> Option<Losses> {
    let index = case.index as usize;
    let loss = *LOSSES.get(index / SENDERS.len())?;
    let senders = *SENDERS.get(index % SENDERS.len())?;
    let model = match loss {
        STEADY => LossModel::Periodic { period: (1.0 / LOSS) as u32, first: 0 },
        BURSTS => LossModel::markov(LOSS, BURST),
        _ => LossModel::None,
    };
    let mut random = case.stream(0);
    let rates = vec![1; senders as usize];
    let encoding_symbols = STRETCH * SOURCE_SYMBOLS;
    let mut mirrors = Mirrors::new(&rates, encoding_symbols, NEEDED).with_loss(model.clone());
    let coded = mirrors.mean(TRIALS, &mut random).first;
    let each = || f64::from(in_blocks(&rates, &model, &mut random));
    let blocks =
        Estimate::mean(&std::iter::repeat_with(each).take(TRIALS as usize).collect::<Vec<_>>());
    Some(Losses {
        loss: loss.into(),
        senders,
        coded: coded.value,
        coded_error: coded.error,
        blocks: blocks.value,
        blocks_error: blocks.error,
    })
}

/// Turns until all packets of [`BLOCKS`] blocks have arrived. A sender that is done with a block
/// takes the next one; if all are taken, it helps with none.
fn in_blocks(rates: &[u32], loss: &LossModel, random: &mut SplitMix64) -> u32 {
    let length = SOURCE_SYMBOLS / BLOCKS;
    let mut losses = vec![Loss::new(loss.clone()); rates.len()];
    // A sender starts anywhere in the pattern of its losses.
    for each in &mut losses {
        (0..random.below(length)).for_each(|_| _ = each.next(random));
    }
    let mut lacking: Vec<u32> = vec![0; rates.len()];
    let (mut taken, mut turns) = (0, 0);
    let order = turn(rates);
    while taken < BLOCKS || lacking.iter().any(|&count| count > 0) {
        turns += 1;
        for &sender in &order {
            if lacking[sender] == 0 && taken < BLOCKS {
                (lacking[sender], taken) = (length, taken + 1);
            }
            if lacking[sender] > 0 && !losses[sender].next(random) {
                lacking[sender] -= 1;
            }
        }
    }
    turns
}

fn of(rows: &[Losses], loss: &str, senders: u32, number: fn(&Losses) -> Estimate) -> Estimate {
    let row = rows.iter().find(|row| row.loss == loss && row.senders == senders);
    row.map_or(f64::NAN.into(), number)
}

fn speedup(rows: &[Losses], loss: &str, senders: u32, number: fn(&Losses) -> Estimate) -> Estimate {
    of(rows, loss, 1, number).over(of(rows, loss, senders, number))
}

const SECTION: &str = "section V-A.2";

fn claims() -> Vec<Claim> {
    let unchanged = |loss: &'static str| {
        move |rows: &[Losses]| {
            Estimate::largest([2, 3, 4].map(|senders| {
                let with = speedup(rows, loss, senders, Losses::coded);
                with.over(speedup(rows, NONE, senders, Losses::coded)).minus(1.0.into()).size()
            }))
        }
    };
    vec![
        Claim::shape(
            STEADY,
            "steady losses: largest change of the speed-up, of 2 to 4 senders",
            quote("as long as the stretch factor is high enough", SECTION),
            Target::AtMost(0.01),
            unchanged(STEADY),
        ),
        Claim::shape(
            BURSTS,
            "bursts: largest change of the speed-up, of 2 to 4 senders",
            quote("does not substantially alter the speedup results", SECTION),
            Target::AtMost(0.03),
            unchanged(BURSTS),
        ),
        Claim::own(
            "blocks",
            "ten blocks without a code, bursts: time that four senders take, over a quarter of that of one",
            Target::AtLeast(1.15),
            0.0,
            |rows: &[Losses]| Estimate::from(4.0).over(speedup(rows, BURSTS, 4, Losses::blocks)),
        ),
    ]
}

fn grid(rows: &[Losses]) -> Exhibit {
    let line = |loss: &str| {
        let cells = |number| {
            [2, 3, 4].map(|senders| format!("{:.2}", speedup(rows, loss, senders, number).value))
        };
        let cells = [cells(Losses::coded), cells(Losses::blocks)].concat();
        std::iter::once(loss.to_owned()).chain(cells).collect()
    };
    let columns = [
        "losses",
        "2 senders",
        "3",
        "4",
        "2 senders, ten blocks",
        "3, ten blocks",
        "4, ten blocks",
    ];
    Exhibit::Grid(Grid {
        title: "Speed-up over one sender with the same losses".into(),
        columns: columns.map(String::from).into(),
        rows: LOSSES.map(line).into(),
    })
}
