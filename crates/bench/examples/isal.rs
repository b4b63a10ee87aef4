//! Comparison of Fontana's Cauchy code with ISA-L's `ec_encode_data` on the same shapes, in
//! alternating runs, on one thread.
//!
//! ```sh
//! apt-get install libisal-dev
//! cargo run --release -p fontana-bench --features isal --example isal
//! ```
//!
//! For *encode* both prepare in advance what they can: a plan, and tables. For *decode* neither
//! does: ISA-L inverts a `k x k` matrix, makes tables of the rows of the lost symbols, and encodes
//! with them.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it calls a library in C, and a wrong result ends it"
)]

#[path = "../src/contest.rs"]
mod contest;

use contest::{Contestant, contest};
use fontana_fec::codes::reed_solomon::{ReedSolomon, ReedSolomonCode};
use fontana_fec::{Esi, FecScheme, Lent, Progress, Scratch};
use std::sync::Arc;

const SYMBOL_SIZE: usize = 1280;
/// Source symbols of a run. A run takes about 50 microseconds; reading the clock costs a hundredth
/// of that.
const SOURCE_SYMBOLS_OF_A_RUN: usize = 400;

fn main() {
    println!("MB/s of source data, {SYMBOL_SIZE} bytes a symbol, processor time, medians");
    for (k, repair, lost) in [(10, 4, 4), (32, 32, 16), (64, 64, 32), (128, 127, 13)] {
        let shape = Shape::new(k, repair, lost);
        let mut encoders = [shape.ours_encoding(), shape.isal_encoding()];
        report(&format!("k = {k}, encode {repair}"), k, &mut encoders);
        let mut decoders = [shape.ours_decoding(), shape.isal_decoding()];
        report(&format!("k = {k}, decode {lost} lost"), k, &mut decoders);
    }
}

fn report(what: &str, k: usize, contestants: &mut [Box<dyn Contestant + '_>; 2]) {
    let seconds: Vec<_> =
        contest(contestants).into_iter().map(|it| (it.name, it.seconds)).collect();
    let rate = |seconds: f64| (k * SYMBOL_SIZE) as f64 / seconds / 1e6;
    let said = seconds.iter().map(|(name, seconds)| format!("{name} {:.0}", rate(*seconds)));
    let said: Vec<_> = said.collect();
    println!("{what:24} {}, ratio {:.2}", said.join(", "), seconds[1].1 / seconds[0].1);
}

/// A piece of work, repeated until a clock can measure it.
struct Repeated<'a> {
    name: &'static str,
    times: usize,
    work: Box<dyn FnMut() + 'a>,
}

impl Contestant for Repeated<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&mut self) {
        for _ in 0..self.times {
            (self.work)();
        }
    }

    fn pieces(&self) -> usize {
        self.times
    }
}

/// The block that both work on.
struct Shape {
    k: usize,
    repair: usize,
    source: Vec<u8>,
    lost: Vec<usize>,
    /// The received symbols: the source symbols that were not lost, and as many repair symbols as
    /// were lost.
    received: Vec<usize>,
    scheme: FecScheme,
}

impl Shape {
    fn new(k: usize, repair: usize, lost: usize) -> Self {
        let lost: Vec<_> = (0..lost).map(|index| index * k / lost).collect();
        let heard = (0..k).filter(|esi| !lost.contains(esi));
        Self {
            k,
            repair,
            source: (0..k * SYMBOL_SIZE).map(|at| (at * at / 7 + at) as u8).collect(),
            received: heard.chain(k..k + lost.len()).collect(),
            lost,
            scheme: FecScheme::ReedSolomon(ReedSolomon {
                code: ReedSolomonCode::Cauchy,
                max_source_block_length: k as u16,
                max_encoding_symbols: 255,
            }),
        }
    }

    fn contestant<'a>(
        &self,
        name: &'static str,
        work: impl FnMut() + 'a,
    ) -> Box<dyn Contestant + 'a> {
        let times = SOURCE_SYMBOLS_OF_A_RUN.div_ceil(self.k);
        Box::new(Repeated { name, times, work: Box::new(work) })
    }

    fn source(&self, index: usize) -> &[u8] {
        &self.source[index * SYMBOL_SIZE..][..SYMBOL_SIZE]
    }

    /// Asserts that these are the lost symbols.
    #[track_caller]
    fn check(&self, recovered: &[u8]) {
        for (recovered, &lost) in recovered.chunks(SYMBOL_SIZE).zip(&self.lost) {
            assert!(recovered == self.source(lost), "symbol {lost} of {}", self.k);
        }
    }

    fn ours_encoding(&self) -> Box<dyn Contestant + '_> {
        let plan = self.scheme.source_plan(self.k as u32).unwrap();
        let esis: Vec<_> = (self.k..self.k + self.repair).map(|esi| Esi(esi as u32)).collect();
        let (mut out, mut scratch) = (vec![0; self.repair * SYMBOL_SIZE], Scratch::default());
        self.contestant("Fontana", move || {
            let source = |esi: Esi| self.source(esi.0 as usize);
            let Ok(block) = plan.execute(SYMBOL_SIZE, Lent(source), std::mem::take(&mut scratch));
            block.write_symbols(&esis, &mut out);
            scratch = block.into_scratch();
        })
    }

    fn isal_encoding(&self) -> Box<dyn Contestant + '_> {
        let matrix = isal::cauchy(self.k, self.k + self.repair);
        let tables = isal::Tables::new(&matrix[self.k * self.k..], self.k);
        let mut out = vec![0; self.repair * SYMBOL_SIZE];
        self.contestant("ISA-L", move || {
            let source: Vec<_> = (0..self.k).map(|index| self.source(index)).collect();
            tables.encode(&source, &mut out);
        })
    }

    fn ours_decoding(&self) -> Box<dyn Contestant + '_> {
        let plan = self.scheme.source_plan(self.k as u32).unwrap();
        let esis: Vec<_> = (self.k..self.k + self.repair).map(|esi| Esi(esi as u32)).collect();
        let mut repair = vec![0; self.repair * SYMBOL_SIZE];
        let source = |esi: Esi| self.source(esi.0 as usize);
        let Ok(block) = plan.execute(SYMBOL_SIZE, Lent(source), Scratch::default());
        block.write_symbols(&esis, &mut repair);
        let lost: Vec<_> = self.lost.iter().map(|&lost| Esi(lost as u32)).collect();
        let (mut out, mut scratch) = (vec![0; lost.len() * SYMBOL_SIZE], Scratch::default());
        let mut is_checked = false;
        self.contestant("Fontana", move || {
            let mut decoder = self.scheme.decoder(self.k as u32).unwrap();
            for &esi in &self.received {
                decoder.push(Esi(esi as u32)).unwrap();
            }
            let Progress::Solved(plan) =
                decoder.solve(self.scheme.block_profile(self.k as u32).work)
            else {
                panic!("any k symbols are enough");
            };
            let symbol = |esi: Esi| match (esi.0 as usize).checked_sub(self.k) {
                None => self.source(esi.0 as usize),
                Some(index) => &repair[index * SYMBOL_SIZE..][..SYMBOL_SIZE],
            };
            let Ok(rows) = plan.recover(SYMBOL_SIZE, Lent(symbol), std::mem::take(&mut scratch));
            rows.write_symbols(0..lost.len(), &mut out);
            scratch = rows.into_scratch();
            if !std::mem::replace(&mut is_checked, true) {
                self.check(&out);
            }
        })
    }

    fn isal_decoding(&self) -> Box<dyn Contestant + '_> {
        let k = self.k;
        let matrix = isal::cauchy(k, k + self.repair);
        let mut repair = vec![0; self.repair * SYMBOL_SIZE];
        let source: Vec<_> = (0..k).map(|index| self.source(index)).collect();
        isal::Tables::new(&matrix[k * k..], k).encode(&source, &mut repair);
        let mut out = vec![0; self.lost.len() * SYMBOL_SIZE];
        let mut is_checked = false;
        self.contestant("ISA-L", move || {
            let row = |matrix: &[u8], index: usize| matrix[index * k..][..k].to_vec();
            let rows = self.received.iter().flat_map(|&esi| row(&matrix, esi)).collect();
            let inverse = isal::invert(rows, k);
            let rows: Vec<_> = self.lost.iter().flat_map(|&lost| row(&inverse, lost)).collect();
            let symbol = |&esi: &usize| match esi.checked_sub(k) {
                None => self.source(esi),
                Some(index) => &repair[index * SYMBOL_SIZE..][..SYMBOL_SIZE],
            };
            let received: Vec<_> = self.received.iter().map(symbol).collect();
            isal::Tables::new(&rows, k).encode(&received, &mut out);
            if !std::mem::replace(&mut is_checked, true) {
                self.check(&out);
            }
        })
    }
}

/// The functions of ISA-L (`erasure_code.h`) that are needed, with slices.
mod isal {
    use super::SYMBOL_SIZE;
    use std::ffi::c_int;

    #[link(name = "isal")]
    unsafe extern "C" {
        fn gf_gen_cauchy1_matrix(matrix: *mut u8, rows: c_int, k: c_int);
        fn gf_invert_matrix(matrix: *mut u8, inverse: *mut u8, n: c_int) -> c_int;
        fn ec_init_tables(k: c_int, rows: c_int, matrix: *const u8, tables: *mut u8);
        fn ec_encode_data(
            length: c_int,
            k: c_int,
            rows: c_int,
            tables: *const u8,
            data: *const *const u8,
            coding: *const *mut u8,
        );
    }

    /// The identity, and below it rows of a Cauchy matrix: `rows x k` in all.
    pub(super) fn cauchy(k: usize, rows: usize) -> Vec<u8> {
        let mut matrix = vec![0; rows * k];
        // SAFETY: the matrix has room for `rows x k` bytes.
        unsafe { gf_gen_cauchy1_matrix(matrix.as_mut_ptr(), rows as c_int, k as c_int) };
        matrix
    }

    pub(super) fn invert(mut matrix: Vec<u8>, k: usize) -> Vec<u8> {
        assert_eq!(matrix.len(), k * k);
        let mut inverse = vec![0; k * k];
        // SAFETY: both matrices are of `k x k` bytes.
        let result =
            unsafe { gf_invert_matrix(matrix.as_mut_ptr(), inverse.as_mut_ptr(), k as c_int) };
        assert_eq!(result, 0, "a Cauchy matrix has an inverse");
        inverse
    }

    /// Look-up tables for products with the rows of a matrix.
    pub(super) struct Tables {
        k: usize,
        rows: usize,
        tables: Vec<u8>,
    }

    impl Tables {
        pub(super) fn new(matrix: &[u8], k: usize) -> Self {
            let rows = matrix.len() / k;
            let mut tables = vec![0; 32 * k * rows];
            // SAFETY: the matrix has `rows x k` bytes, and the tables take 32 for each of them.
            unsafe {
                ec_init_tables(k as c_int, rows as c_int, matrix.as_ptr(), tables.as_mut_ptr());
            }
            Self { k, rows, tables }
        }

        /// Writes one symbol for each row into `out`.
        pub(super) fn encode(&self, data: &[&[u8]], out: &mut [u8]) {
            assert!(data.len() == self.k && data.iter().all(|symbol| symbol.len() == SYMBOL_SIZE));
            assert_eq!(out.len(), self.rows * SYMBOL_SIZE);
            let data: Vec<_> = data.iter().map(|symbol| symbol.as_ptr()).collect();
            let coding: Vec<_> =
                out.chunks_mut(SYMBOL_SIZE).map(|symbol| symbol.as_mut_ptr()).collect();
            // SAFETY: `k` symbols are read and `rows` written, each of `SYMBOL_SIZE` bytes, with
            // tables that were made for these numbers.
            unsafe {
                ec_encode_data(
                    SYMBOL_SIZE as c_int,
                    self.k as c_int,
                    self.rows as c_int,
                    self.tables.as_ptr(),
                    data.as_ptr(),
                    coding.as_ptr(),
                );
            }
        }
    }
}
