//! The number of symbols that receivers need. The bounds are those of at least ten thousand trials,
//! with a margin for the few that a test runs; `docs/codes.md` has the long tables and their
//! commands.

use crate::block::Random;
use fontana_fec::codes::lt::{Lt, LtCode};
use fontana_fec::codes::tornado::TornadoCode;
use fontana_fec::study::lt::Peeler as LtPeeler;
use fontana_fec::study::tornado::{Peeler, Peeling};
use fontana_fec::{Esi, FecScheme, Progress, Work};

/// Symbols needed over `k`, ascending.
struct Inefficiencies(Vec<f64>);

impl Inefficiencies {
    fn new(k: u32, mut needed: Vec<u32>) -> Self {
        needed.sort_unstable();
        Self(needed.into_iter().map(|needed| f64::from(needed) / f64::from(k)).collect())
    }

    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|x| (x - mean).powi(2)).sum();
        (squares / self.0.len() as f64).sqrt()
    }

    /// The value that this share of the trials stays below.
    fn quantile(&self, share: f64) -> f64 {
        self.0[((self.0.len() as f64 * share) as usize).min(self.0.len() - 1)]
    }

    fn print(&self, what: &str) {
        let quantiles = [0.5, 0.9, 0.99, 1.0].map(|share| self.quantile(share));
        let (count, mean, deviation) = (self.0.len(), self.mean(), self.deviation());
        println!(
            "{what}: {count} trials, mean {mean:.4}, deviation {deviation:.4}, median, 90 %, 99 % and \
             most {quantiles:.4?}"
        );
    }
}

/// Receives the symbols of a block in random order.
fn tornado(code: TornadoCode, k: u32, peeling: Peeling, trials: usize) -> Inefficiencies {
    let mut peeler = Peeler::new(code.graph(k).unwrap(), peeling);
    let mut order: Vec<u32> = (0..k * u32::from(code.stretch_factor())).collect();
    let mut random = Random(1);
    let mut trial = || {
        peeler.reset();
        for i in 0..order.len() {
            let other = i + random.below((order.len() - i) as u32) as usize;
            order.swap(i, other);
            peeler.push(Esi(order[i])).unwrap();
            if peeler.is_complete() {
                return i as u32 + 1;
            }
        }
        panic!("all symbols do not suffice")
    };
    Inefficiencies::new(k, (0..trials).map(|_| trial()).collect())
}

fn lt_peeling(k: u32, trials: usize) -> Inefficiencies {
    let mut peeler = LtPeeler::new(LtCode::fast(k, 1), k).unwrap();
    let mut esis = (k..).map(Esi);
    let mut trial = || {
        peeler.reset();
        (1..).find(|_| esis.next().is_some_and(|esi| peeler.push(esi) == k as usize)).unwrap()
    };
    Inefficiencies::new(k, (0..trials).map(|_| trial()).collect())
}

fn lt_strict(k: u32, trials: usize) -> Inefficiencies {
    let scheme = FecScheme::Lt(Lt { max_source_block_length: k, code: LtCode::strict(k, 1) });
    let mut esis = (k..).map(Esi);
    let mut trial = || {
        let mut decoder = scheme.decoder(k).unwrap();
        let mut count = 0;
        while !matches!(decoder.solve(Work::UNBOUNDED), Progress::Solved(_)) {
            for esi in esis.by_ref().take(decoder.symbols_wanted() as usize) {
                decoder.push(esi).unwrap();
                count += 1;
            }
        }
        count
    };
    Inefficiencies::new(k, (0..trials).map(|_| trial()).collect())
}

/// "A Digital Fountain Approach to Asynchronous Reliable Multicast", section V-C: mean 1.054, nine
/// in ten below 1.064. The paper's decoder uses checks from right to left only.
#[test]
fn tornado_z_takes_as_many_symbols_as_the_paper_says() {
    let found = tornado(TornadoCode::Z, 16_000, Peeling::OneDirectional, 400);
    found.print("Tornado Z");
    assert!((1.0510..1.0545).contains(&found.mean()));
    assert!((0.0062..0.0090).contains(&found.deviation()));
    assert!((1.0595..1.0665).contains(&found.quantile(0.9)));
    assert!(found.quantile(1.0) < 1.11);
    let joint = tornado(TornadoCode::Z, 16_000, Peeling::Joint, 200);
    joint.print("Tornado Z, joint");
    assert!((1.0475..1.0520).contains(&joint.mean()));
}

#[test]
fn scaled_tornado_codes_keep_their_inefficiency() {
    for (stretch_factor, k, trials, mean) in [
        (2, 250, 1_000, 1.23),
        (2, 1_000, 300, 1.13),
        (3, 16_000, 20, 1.072),
        (10, 4_000, 20, 1.26),
    ] {
        let code = TornadoCode::new(stretch_factor, 0).unwrap();
        let found = tornado(code, k, Peeling::OneDirectional, trials);
        found.print(&format!("stretched {stretch_factor} times, k = {k}"));
        assert!((found.mean() - mean).abs() < 0.03);
    }
}

#[test]
fn lt_codes_take_as_many_symbols_as_documented() {
    let found = lt_peeling(1_000, 2_000);
    found.print("LT fast, k = 1 000");
    assert!((1.12..1.14).contains(&found.mean()));
    let found = lt_peeling(10_000, 100);
    found.print("LT fast, k = 10 000");
    assert!((1.042..1.060).contains(&found.mean()));
    let found = lt_strict(1_000, 200);
    found.print("LT strict, k = 1 000");
    assert!(found.mean() < 1.004 && found.quantile(1.0) < 1.02);
}

/// The tables of `docs/codes.md`:
/// `cargo test --release -p fontana-fec --test fec -- --ignored --nocapture tables`.
#[test]
#[ignore = "a minute or two"]
fn tables() {
    for k in [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 64_000] {
        let trials = (32_000_000 / k as usize).min(4_000);
        tornado(TornadoCode::Z, k, Peeling::OneDirectional, trials)
            .print(&format!("Tornado Z, k = {k}"));
        tornado(TornadoCode::Z, k, Peeling::Joint, trials).print(&format!("joint, k = {k}"));
    }
    for stretch_factor in [3, 4, 6, 8, 10] {
        let code = TornadoCode::new(stretch_factor, 0).unwrap();
        let found = tornado(code, 16_000, Peeling::Joint, 100);
        found.print(&format!("stretched {stretch_factor} times, joint, k = 16 000"));
    }
    for (k, trials) in [(100, 20_000), (1_000, 20_000), (10_000, 1_000), (100_000, 50)] {
        lt_peeling(k, trials).print(&format!("LT fast, k = {k}"));
        lt_strict(k, (trials / 20).max(10)).print(&format!("LT strict, k = {k}"));
    }
}
