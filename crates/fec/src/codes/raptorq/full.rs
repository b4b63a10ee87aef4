//! State that follows from the length of a block alone, made once for all blocks of that length.

use super::full_program;
use super::params::Params;
use super::program::Program;
use crate::bytes::kernel::InstructionSet;
use crate::sync::{Lock, OnceLock};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A block of `K'` source symbols that are all available.
pub(crate) struct FullBlock {
    params: Params,
    program: OnceLock<Arc<Program>>,
    /// By internal symbol id, at most [`KEPT_OCTETS`] octets.
    rows: Lock<BTreeMap<u32, Arc<[u8]>>>,
}

/// Size of the cache of rows, in octets. Most blocks of one length lack a few symbols and use the
/// first repair symbols for them, so they need the same rows. This is 18 rows of the longest block,
/// and a thousand rows of a block of a thousand symbols.
const KEPT_OCTETS: usize = 1 << 20;

impl FullBlock {
    pub(crate) fn new(params: Params) -> Self {
        Self { params, program: OnceLock::new(), rows: Lock::default() }
    }

    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    /// The program of the block, made at the first call.
    pub(crate) fn program(&self) -> &Arc<Program> {
        self.program.get_or_init(|| Arc::new(full_program(&self.params)))
    }

    /// Rows of the code's generator matrix: how the encoding symbols with internal symbol ids
    /// `isis` are combined from source and padding symbols, with one octet for each of these.
    /// `isis` are at most as many as a row of a stripe has bytes.
    pub(super) fn rows(&self, instructions: InstructionSet, isis: &[u32]) -> Vec<Arc<[u8]>> {
        // Not held while rows are computed: a thread that needs the same ones computes them too.
        let kept = || self.rows.lock();
        let mut rows: Vec<Option<Arc<[u8]>>> = {
            let kept = kept();
            isis.iter().map(|isi| kept.get(isi).cloned()).collect()
        };
        let is_missing = |(_, row): &(&u32, &Option<_>)| row.is_none();
        let missing: Vec<u32> =
            isis.iter().zip(&rows).filter(is_missing).map(|(&isi, _)| isi).collect();
        if !missing.is_empty() {
            let made = self.program().coefficients(instructions, &missing);
            let mut made = (0..missing.len()).map(|at| made.column(at));
            rows.iter_mut().filter(|row| row.is_none()).for_each(|row| *row = made.next());
            let most = KEPT_OCTETS / self.params.k_prime as usize;
            let mut kept = kept();
            // Rows for ids that a hostile sender chose evict only stored rows.
            if kept.len() + missing.len() > most {
                kept.clear();
            }
            let new = isis.iter().zip(rows.iter().flatten()).take(most);
            kept.extend(new.map(|(&isi, row)| (isi, Arc::clone(row))));
        }
        rows.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also for a block so long that not all of them are stored.
    #[test]
    fn stored_and_computed_rows_are_the_same() {
        for (k, wanted) in [(10, 100), (20_000, 30)] {
            let params = Params::covering(k);
            let full = FullBlock::new(params);
            let most = KEPT_OCTETS / params.k_prime as usize;
            let rows = |range: std::ops::Range<u32>| {
                let isis: Vec<u32> = range.map(|isi| params.k_prime + isi).collect();
                (full.rows(InstructionSet::best(), &isis), isis)
            };
            for range in [0..wanted, wanted / 2..wanted + 30, 0..wanted] {
                let (rows, isis) = rows(range);
                let made = full.program().coefficients(InstructionSet::best(), &isis);
                assert_eq!(rows.len(), isis.len());
                for (at, row) in rows.iter().enumerate() {
                    assert!(**row == *made.column(at), "K = {k}, {}", isis[at]);
                }
                assert!(full.rows.lock().len() <= most);
            }
            let (once, again) = (rows(0..wanted).0, rows(0..wanted).0);
            assert!(once.iter().zip(&again).all(|(once, again)| Arc::ptr_eq(once, again)), "kept");
        }
    }
}
