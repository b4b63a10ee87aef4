//! `df.fig4` and `df.fig5`: many receivers, and large files.

use super::carousel::CarouselCode;
use super::loss::LossProcess;
use crate::chart::{Axis, Chart, Exhibit, Panel, Point, Series};
use crate::claim::{Claim, Target, quote};
use crate::estimate::Estimate;
use crate::experiment::{Case, Experiment, Kind, Scale, SweepOf};
use crate::statistics::{Histogram, exponent, smallest};
use serde::{Deserialize, Serialize};

/// Codes and loss probabilities of both figures. Losses do not change how many packets Tornado Z
/// needs (`df.loss`), so it has one. The last curve is not in the paper.
const CURVES: [(CarouselCode, f64); 6] = [
    (CarouselCode::Tornado, 0.1),
    (CarouselCode::Interleaved(20), 0.5),
    (CarouselCode::Interleaved(20), 0.1),
    (CarouselCode::Interleaved(50), 0.5),
    (CarouselCode::Interleaved(50), 0.1),
    PRODUCT,
];

/// The product sends no packets of several nodes: a short file has a short graph.
const PRODUCT: (CarouselCode, f64) = (CarouselCode::TornadoOfProduct, 0.1);

/// The file of figure 4: 1 MB.
const SOURCE_SYMBOLS: u32 = 1000;

/// Receivers of a case of figure 4: the largest crowd.
const CROWD: u32 = 10_000;

/// The section that describes figure 4.
const SECTION: &str = "section VI-B";

/// Numbers of receivers of figure 4.
const RECEIVERS: [u32; 9] = [1, 3, 10, 30, 100, 300, 1000, 3000, CROWD];

pub(crate) const FIGURE_4: Experiment = Experiment {
    id: "df.fig4",
    paper: "digital fountain, figure 4",
    what: "Decoding inefficiency of the worst of 1 to 10 000 receivers of a 1 MB file that is \
           stretched to 2 MB, as codes of about the same decoding time need it. The worst is the \
           expectation by a pool of 1 000 000 receivers (quick: 100 000), of Tornado Z 50 000 \
           (5000). Tornado Z has 16 000 source nodes, and a packet holds 16. The product has a node in each \
           packet, so that 1 MB has 1000, and peels in both directions.",
    sweep: &SweepOf {
        name: "df.fig4",
        kind: Kind::Counted,
        cases: |scale| CURVES.len() as u32 * batches(scale),
        run: figure_4,
    },
    claims: figure_4_claims,
    exhibits: |table| {
        let rows: Vec<Pooled> = table.read().unwrap_or_default();
        let curve = |&(code, loss): &(CarouselCode, f64)| {
            let pool = pool(&rows, code, loss);
            let worst = |receivers| pool.expected_worst(receivers) / f64::from(SOURCE_SYMBOLS);
            // A pool does not determine the worst of a larger crowd.
            let crowds = RECEIVERS.iter().filter(|&&crowd| u64::from(crowd) <= pool.count());
            let points = crowds.map(|&receivers| (f64::from(receivers), worst(receivers)));
            Series::new(label(code, loss), points)
        };
        vec![Exhibit::Chart(Chart {
            name: "",
            title: "The worst receiver of a 1 MB file".into(),
            x: Axis::logarithmic("receivers"),
            y: Axis::linear("decoding inefficiency"),
            panels: Panel::only(CURVES.iter().map(curve).collect()),
        })]
    },
};

const fn batches(scale: Scale) -> u32 {
    scale.pick(10, 100)
}

/// Receivers that needed as many distinct packets.
#[derive(Serialize, Deserialize)]
struct Pooled {
    code: String,
    loss: f64,
    distinct: u32,
    receivers: u64,
}

fn figure_4(case: &Case) -> Vec<Pooled> {
    let Some(&(code, loss)) = CURVES.get((case.index / batches(case.scale)) as usize) else {
        return Vec::new();
    };
    let receivers = match code {
        // A hundred times slower to simulate.
        CarouselCode::Tornado | CarouselCode::TornadoOfProduct => CROWD / 20,
        CarouselCode::Interleaved(_) => CROWD,
    };
    let pool = receive(code, loss, SOURCE_SYMBOLS, receivers, case);
    let row = |(distinct, receivers)| Pooled { code: code.name(), loss, distinct, receivers };
    pool.entries().map(row).collect()
}

fn figure_4_claims() -> Vec<Claim> {
    const INTERLEAVED_20: CarouselCode = CarouselCode::Interleaved(20);
    const INTERLEAVED_50: CarouselCode = CarouselCode::Interleaved(50);
    let average = |rows: &[Pooled], code, loss| {
        Estimate::mean_of(&pool(rows, code, loss)).times(1.0 / f64::from(SOURCE_SYMBOLS))
    };
    vec![
        Claim::shape(
            "comparable",
            "at a loss of 0.1 and k = 50: difference of the averages, either way",
            quote("inefficiency of interleaved codes is comparable to that of Tornado", SECTION),
            Target::AtMost(0.05),
            move |rows: &[Pooled]| {
                let interleaved = average(rows, INTERLEAVED_50, 0.1);
                interleaved.minus(average(rows, CarouselCode::Tornado, 0.1)).size()
            },
        ),
        Claim::shape(
            "scales",
            "what 3000 receivers add for the worst of interleaved k = 20 at a loss of 0.5, over what \
             they add with Tornado Z",
            quote("Tornado codes exhibit more robust scalability", SECTION),
            Target::AtLeast(2.0),
            |rows: &[Pooled]| {
                let added =
                    |code, loss| worst_of(rows, code, loss, 3000) - worst_of(rows, code, loss, 1);
                added(INTERLEAVED_20, 0.5) / added(CarouselCode::Tornado, 0.1)
            },
        ),
        Claim::shape(
            "grows",
            "inefficiency of the worst of 10 000 over one, k = 20 at a loss of 0.5",
            quote("does not scale with interleaved codes", SECTION),
            Target::AtLeast(0.2),
            |rows: &[Pooled]| {
                let of = |receivers| worst_of(rows, INTERLEAVED_20, 0.5, receivers);
                of(CROWD) - of(1)
            },
        ),
        Claim::shape(
            "loss",
            "average at k = 50 and a loss of 0.5 over 0.1",
            quote("the inefficiency of interleaved codes rises dramatically", SECTION),
            Target::AtLeast(0.05),
            move |rows: &[Pooled]| {
                let [half, tenth] = [0.5, 0.1].map(|loss| average(rows, INTERLEAVED_50, loss));
                half.minus(tenth)
            },
        ),
        Claim::shape(
            "blocks",
            "and with smaller blocks: average at a loss of 0.5, k = 20 over 50",
            quote("if a smaller block size is used", SECTION),
            Target::AtLeast(0.05),
            move |rows: &[Pooled]| {
                let [short, long] =
                    [INTERLEAVED_20, INTERLEAVED_50].map(|code| average(rows, code, 0.5));
                short.minus(long)
            },
        ),
        Claim::own(
            "product",
            "average of the product's Tornado Z of 1000 nodes",
            Target::AtMost(1.15),
            0.0,
            move |rows: &[Pooled]| average(rows, PRODUCT.0, PRODUCT.1),
        ),
    ]
}

fn pool(rows: &[Pooled], code: CarouselCode, loss: f64) -> Histogram {
    let mut pool = Histogram::default();
    let name = code.name();
    for row in rows.iter().filter(|row| row.code == name && row.loss == loss) {
        pool.add_many(row.distinct, row.receivers);
    }
    pool
}

fn worst_of(rows: &[Pooled], code: CarouselCode, loss: f64, receivers: u32) -> f64 {
    pool(rows, code, loss).expected_worst(receivers) / f64::from(SOURCE_SYMBOLS)
}

/// File sizes of figure 5, in packets, the longest first: they take longest.
const SIZES: [u32; 7] = [16_000, 8000, 4000, 2000, 1000, 500, 250];

/// The text does not say of how many receivers the worst was taken.
const WORST_OF: u32 = 500;

pub(crate) const FIGURE_5: Experiment = Experiment {
    id: "df.fig5",
    paper: "digital fountain, figure 5",
    what: "Decoding inefficiency as the file grows: average, and worst of 500 receivers (the text \
           does not give their number), of pools of 20 000 (quick: 1000), of Tornado Z 5000 (500). Tornado Z \
           has 16 000 source nodes for any file; that of the product has a node in each packet.",
    sweep: &SweepOf {
        name: "df.fig5",
        kind: Kind::Counted,
        cases: |_| (SIZES.len() * CURVES.len()) as u32,
        run: figure_5,
    },
    claims: figure_5_claims,
    exhibits: |table| {
        let rows: Vec<OfSize> = table.read().unwrap_or_default();
        let chart = |name: &'static str, number: fn(&OfSize) -> Estimate, title: &str| {
            let curve = |&(code, loss): &(CarouselCode, f64)| {
                let sizes = sizes(&rows, number, code, loss).into_iter();
                let points = sizes.map(|(k, eta)| Point::estimate(k, eta));
                Series::new(label(code, loss), points)
            };
            Exhibit::Chart(Chart {
                name,
                title: title.into(),
                x: Axis::logarithmic("packets of 1 KB in the file"),
                y: Axis::linear("decoding inefficiency"),
                panels: Panel::only(CURVES.iter().map(curve).collect()),
            })
        };
        vec![
            chart("average", OfSize::average, "The average receiver"),
            chart("worst", OfSize::worst, "The worst of 500 receivers"),
        ]
    },
};

/// Inefficiencies of the receivers of a file.
#[derive(Serialize, Deserialize)]
struct OfSize {
    packets: u32,
    code: String,
    loss: f64,
    average: f64,
    worst: f64,
    /// The standard errors of both.
    average_error: f64,
    worst_error: f64,
}

impl OfSize {
    fn average(&self) -> Estimate {
        Estimate { value: self.average, error: self.average_error }
    }

    fn worst(&self) -> Estimate {
        Estimate { value: self.worst, error: self.worst_error }
    }
}

fn figure_5(case: &Case) -> Vec<OfSize> {
    let index = case.index as usize;
    // The sizes of the paper's curves, and then those of the product's.
    let of_paper = CURVES.len() - 1;
    let (size, curve) = match index.checked_sub(SIZES.len() * of_paper) {
        None => (index / of_paper, index % of_paper),
        Some(size) => (size, of_paper),
    };
    let (Some(&packets), Some(&(code, loss))) = (SIZES.get(size), CURVES.get(curve)) else {
        return Vec::new();
    };
    let [quick, full] = match code {
        CarouselCode::Tornado | CarouselCode::TornadoOfProduct => [500, 5000],
        CarouselCode::Interleaved(_) => [1000, 20_000],
    };
    let pool = receive(code, loss, packets, case.scale.pick(quick, full), case);
    let k = f64::from(packets);
    let average = Estimate::mean_of(&pool).times(1.0 / k);
    let worst = Estimate::worst_of(&pool, WORST_OF).times(1.0 / k);
    vec![OfSize {
        packets,
        code: code.name(),
        loss,
        average: average.value,
        worst: worst.value,
        average_error: average.error,
        worst_error: worst.error,
    }]
}

fn figure_5_claims() -> Vec<Claim> {
    vec![
        Claim::shape(
            "average",
            "average of Tornado Z at 16 000 packets over 1000",
            quote(
                "decoding inefficiency does not increase as the file size increases",
                "section VI-C",
            ),
            Target::AtMost(1.002),
            |rows: &[OfSize]| growth(rows, CarouselCode::Tornado, OfSize::average),
        ),
        Claim::shape(
            "worst",
            "and its worst of 500",
            quote("This effect is completely avoided by using Tornado codes", "section VI-C"),
            Target::AtMost(1.01),
            |rows: &[OfSize]| growth(rows, CarouselCode::Tornado, OfSize::worst),
        ),
        Claim::shape(
            "coupons",
            "packets needed as a power of the packets of the file, least of averages and worsts",
            quote("grows super-linearly in the size of the source data", "section VI-C"),
            Target::AtLeast(1.001),
            |rows: &[OfSize]| {
                let numbers = [OfSize::average, OfSize::worst];
                let interleaved =
                    CURVES.iter().filter(|curve| matches!(curve.0, CarouselCode::Interleaved(_)));
                let exponents = interleaved.flat_map(|&(code, loss)| {
                    numbers.map(|number| {
                        let points = sizes(rows, number, code, loss);
                        exponent(
                            &points.iter().map(|(k, eta)| (*k, k * eta.value)).collect::<Vec<_>>(),
                        )
                    })
                });
                smallest(exponents)
            },
        ),
        Claim::own(
            "product",
            "the product's Tornado Z is better for longer files: average at 16 000 packets over 1000",
            Target::AtMost(0.98),
            0.0,
            |rows: &[OfSize]| growth(rows, PRODUCT.0, OfSize::average),
        ),
    ]
}

/// Ratio of the inefficiencies of a code for files of 16 000 and of 1000 packets.
fn growth(rows: &[OfSize], code: CarouselCode, number: fn(&OfSize) -> Estimate) -> Estimate {
    let name = code.name();
    let at = |packets| {
        let of = rows.iter().find(|row| row.code == name && row.packets == packets);
        of.map_or(f64::NAN.into(), number)
    };
    at(16_000).over(at(1000))
}

/// A number against the size of the file, from small to large.
fn sizes(
    rows: &[OfSize],
    number: fn(&OfSize) -> Estimate,
    code: CarouselCode,
    loss: f64,
) -> Vec<(f64, Estimate)> {
    let name = code.name();
    let of = rows.iter().rev().filter(|row| row.code == name && row.loss == loss);
    of.map(|row| (row.packets.into(), number(row))).collect()
}

/// Packets that each of `receivers` needs.
fn receive(code: CarouselCode, loss: f64, packets: u32, receivers: u32, case: &Case) -> Histogram {
    let loss = LossProcess::random(loss);
    let mut random = case.stream(0);
    let mut carousel = code.carousel(packets, &mut random);
    let mut pool = Histogram::default();
    for _ in 0..receivers {
        pool.add(carousel.receive(&loss, &mut random).distinct);
    }
    pool
}

fn label(code: CarouselCode, loss: f64) -> String {
    match code {
        CarouselCode::Tornado | CarouselCode::TornadoOfProduct => {
            format!("{}, any loss", code.name())
        }
        CarouselCode::Interleaved(_) => format!("{}, loss {loss}", code.name()),
    }
}
