//! A source block, and helpers to encode and decode it.

use fontana_fec::codes::raptorq::RaptorQ;
use fontana_fec::{Esi, FecScheme, Intermediate, Plan, Progress, Scratch, Work};
use std::convert::Infallible;
use std::sync::Arc;

pub(crate) const RAPTORQ: FecScheme =
    FecScheme::RaptorQ(RaptorQ { source_blocks: 1, sub_blocks: 1, alignment: 1 });

/// SplitMix64: random numbers of the tests, the same on every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        (((self.next() >> 32) * u64::from(limit)) >> 32) as u32
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// The symbols of a block, one after the other.
pub(crate) struct Block {
    pub(crate) k: u32,
    pub(crate) width: usize,
    pub(crate) bytes: Vec<u8>,
}

impl Block {
    pub(crate) fn new(bytes: Vec<u8>, width: usize) -> Self {
        Self { k: (bytes.len() / width) as u32, width, bytes }
    }

    pub(crate) fn random(k: u32, width: usize, seed: u64) -> Self {
        Self::new(Random(seed).bytes(k as usize * width), width)
    }

    pub(crate) fn symbol(&self, esi: Esi) -> &[u8] {
        &self.bytes[esi.0 as usize * self.width..][..self.width]
    }

    pub(crate) fn encoder(&self) -> Intermediate {
        self.encoder_of(RAPTORQ)
    }

    pub(crate) fn encoder_of(&self, scheme: FecScheme) -> Intermediate {
        let plan = scheme.source_plan(self.k).unwrap();
        execute(&plan, self.width, |esi, out| out.copy_from_slice(self.symbol(esi)))
    }

    /// Asserts that `intermediate`, from a plan for this block, gives back every source symbol.
    #[track_caller]
    pub(crate) fn assert_recovered(&self, intermediate: &Intermediate) {
        let esis: Vec<Esi> = (0..self.k).map(Esi).collect();
        let mut out = vec![0; self.bytes.len()];
        intermediate.write_symbols(&esis, &mut out);
        assert!(out == self.bytes, "K = {}, T = {}", self.k, self.width);
    }
}

pub(crate) fn execute(
    plan: &Arc<Plan>,
    width: usize,
    mut load: impl FnMut(Esi, &mut [u8]),
) -> Intermediate {
    let read = |esi: Esi, out: &mut [u8]| {
        load(esi, out);
        Ok::<(), Infallible>(())
    };
    let Ok(symbols) = plan.execute(width, read, Scratch::default());
    symbols
}

pub(crate) fn symbol(encoder: &Intermediate, esi: Esi) -> Vec<u8> {
    let mut out = vec![0xAA; encoder.width()];
    encoder.write_symbol(esi, &mut out);
    out
}

/// The result of decoding a block of `k` from symbols `esis`, with the default budget.
pub(crate) fn solve(k: u32, esis: impl IntoIterator<Item = Esi>) -> Progress {
    let mut decoder = RAPTORQ.decoder(k).unwrap();
    for esi in esis {
        decoder.push(esi).unwrap();
    }
    decoder.solve(RAPTORQ.block_profile(k).work)
}

/// As [`solve`], adding repair symbols until it succeeds.
pub(crate) fn solve_at_last(k: u32, esis: impl IntoIterator<Item = Esi>) -> Arc<Plan> {
    let mut decoder = RAPTORQ.decoder(k).unwrap();
    for esi in esis {
        decoder.push(esi).unwrap();
    }
    for extra in 0..50 {
        if let Progress::Solved(plan) = decoder.solve(Work::UNBOUNDED) {
            return plan;
        }
        decoder.push(Esi((1 << 24) - 1 - extra)).unwrap();
    }
    panic!("50 symbols more than enough do not suffice")
}
