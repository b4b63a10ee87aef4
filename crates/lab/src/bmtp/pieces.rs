//! How many pieces of a group a receiver has (section 7): those whose vectors are independent.

use fontana_fec::study::gf256::{inverse, mul};

/// Pieces that recover a group: the paper's m.
pub(super) const GROUP: usize = 5;

/// The factors with which a piece sums up the packets of its group.
pub(super) type PieceVector = [u8; GROUP];

/// The independent ones of the vectors of a group's pieces.
///
/// It decides as [`fontana_fec::codes::dispersal::DispersalDecoder`], but does not find what
/// recovers the group: a simulation of 1000 receivers takes 20 million pieces.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pieces {
    /// Reduced vectors by their leading column, where they have a 1; all zeros if there is none.
    rows: [PieceVector; GROUP],
    count: usize,
}

impl Pieces {
    /// Adds a piece. Returns whether it is of use.
    pub(super) fn add(&mut self, mut vector: PieceVector) -> bool {
        for (column, row) in self.rows.iter_mut().enumerate() {
            let factor = vector[column];
            if factor == 0 {
                continue;
            }
            if row[column] == 0 {
                let scale = inverse(factor);
                *row = vector.map(|each| mul(each, scale));
                self.count += 1;
                return true;
            }
            for (each, &of_row) in vector.iter_mut().zip(&*row) {
                *each ^= mul(factor, of_row);
            }
        }
        false
    }

    /// Pieces that are lacking.
    pub(super) fn lacking(&self) -> u64 {
        (GROUP - self.count) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fontana_fec::codes::dispersal::Dispersal;
    use fontana_fec::{Esi, IdDecoder, Novelty};
    use fontana_proto::SplitMix64;

    /// Vectors with a few values only are often dependent; so are sums of those before.
    #[test]
    fn pieces_count_as_with_the_decoder() {
        let mut random = SplitMix64::new(2, 0);
        for seed in 0..300 {
            let code = Dispersal::new(GROUP as u32, seed).unwrap();
            let (mut decoder, mut pieces) = (code.decoder(), Pieces::default());
            for _ in 0..12 {
                // Packets of the group, and random vectors, some of them twice.
                let esi = Esi(random.below(9));
                let vector = code.vector(esi).try_into().unwrap();
                let is_fresh = decoder.push(esi) == Ok(Novelty::Fresh);
                assert_eq!(pieces.add(vector), is_fresh);
                assert_eq!(pieces.lacking(), u64::from(decoder.symbols_wanted()));
            }
        }
    }

    #[test]
    fn a_vector_that_is_a_sum_of_others_is_of_no_use() {
        let mut pieces = Pieces::default();
        assert!(pieces.add([1, 2, 3, 4, 5]) && pieces.add([0, 0, 7, 0, 1]));
        let sum = [1, 2, 3 ^ 7, 4, 5 ^ 1];
        assert!(!pieces.add(sum) && !pieces.add(sum.map(|each| mul(each, 9))));
        assert!(!pieces.add([0; GROUP]));
        assert_eq!(pieces.lacking(), 3);
    }
}
