//! The rate at which this host adds rows: an upper bound for every code that uses exclusive or. A
//! code that reads `r` rows for each source symbol cannot be faster than `r` pieces of this work.

use crate::contest::Contestant;
use crate::workload::SYMBOL_SIZE;

/// Bytes of a row of a stripe.
const STRIPE: usize = 320;
/// Rows that are added for each row that is written: about the mean weight of an encoding symbol.
const WEIGHT: usize = 7;

type Row = [u64; STRIPE / 8];

pub(crate) const NAME: &str = "limit";

/// Adds rows, in stripes, from random places of a table as large as that of a block. One piece adds
/// as many rows as the block has symbols.
pub(crate) struct ReadingRows {
    rows: Vec<Row>,
    indices: Vec<[u32; WEIGHT]>,
    out: Vec<Row>,
}

impl ReadingRows {
    pub(crate) fn new(k: u32) -> Self {
        let mut state = 7_u64;
        let mut below_k = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (((state >> 32) * u64::from(k)) >> 32) as u32
        };
        Self {
            rows: (0..k).map(|row| [u64::from(row); STRIPE / 8]).collect(),
            indices: (0..k).map(|_| std::array::from_fn(|_| below_k())).collect(),
            out: vec![[0; STRIPE / 8]; 1],
        }
    }
}

impl Contestant for ReadingRows {
    fn name(&self) -> &str {
        NAME
    }

    fn pieces(&self) -> usize {
        WEIGHT
    }

    fn run(&mut self) {
        for _ in 0..SYMBOL_SIZE / STRIPE {
            for indices in &self.indices {
                let mut sum = [0; STRIPE / 8];
                for &index in indices {
                    sum.iter_mut().zip(&self.rows[index as usize]).for_each(|(s, word)| *s ^= word);
                }
                self.out[0] = sum;
            }
            std::hint::black_box(&self.out);
        }
    }
}
