//! Sizes of the code of one source block (RFC 5053, sections 5.4.2.3 and 5.7).

use super::tables::{MIN_SOURCE_SYMBOLS, SYSTEMATIC_INDICES};
use crate::codes::shared::primes::prime_from;

/// The sizes of RFC 5053, by their names there. All of them follow from `K`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Params {
    /// `K`: source symbols of the block.
    pub(super) k: u32,
    /// `J(K)`: the systematic index.
    pub(super) j: u32,
    /// `S`: LDPC symbols.
    pub(super) s: u32,
    /// `H`: Half symbols.
    pub(super) h: u32,
    /// `L = K + S + H`: intermediate symbols, the columns of the matrix.
    pub(super) l: u32,
    /// `L'`: the smallest prime that is at least `L`.
    pub(super) l_prime: u32,
}

impl Params {
    /// The parameters of a block of `k` source symbols; `None` if the code has no such block.
    pub(super) fn new(k: u32) -> Option<Self> {
        let index = k.checked_sub(MIN_SOURCE_SYMBOLS)?;
        let j = SYSTEMATIC_INDICES.get(index as usize).copied()?.into();
        let x = (1..).find(|x| x * (x - 1) >= 2 * k).unwrap_or(k);
        let s = prime_from(k.div_ceil(100) + x);
        let h = (1..).find(|&h: &u32| binomial(h, h.div_ceil(2)) >= k + s).unwrap_or(k);
        let l = k + s + h;
        Some(Self { k, j, s, h, l, l_prime: prime_from(l) })
    }
}

/// Combinations of `n`, at most 17, taken `m` at a time.
fn binomial(n: u32, m: u32) -> u32 {
    (0..m).fold(1, |product, i| product * (n - i) / (i + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_published_ones() {
        let text = include_str!("../../../tests/data/vectors_raptor10.txt");
        let mut checked = 0;
        for line in text.lines().filter_map(|line| line.strip_prefix("PARAM ")) {
            let number = |word: &str| word.split('=').nth(1).unwrap().parse().unwrap();
            let numbers: Vec<u32> = line.split(' ').map(number).collect();
            let [k, s, h, l, l_prime, j] = numbers[..] else { panic!("{line}") };
            assert_eq!(Params::new(k), Some(Params { k, j, s, h, l, l_prime }));
            checked += 1;
        }
        assert_eq!(checked, 5);
    }

    #[test]
    fn the_code_has_blocks_of_4_to_8192_symbols() {
        for (k, exists) in [(0, false), (3, false), (4, true), (8_192, true), (8_193, false)] {
            assert_eq!(Params::new(k).is_some(), exists, "{k}");
        }
    }

    #[test]
    fn systematic_indices_are_those_of_the_rfc() {
        let table = include_str!("../../../tests/data/rfc5053_J.csv");
        let mut last = 3;
        for line in table.lines().skip(1) {
            let numbers: Vec<u32> = line.split(',').map(|n| n.parse().unwrap()).collect();
            let [k, j] = numbers[..] else { panic!("{line}") };
            assert_eq!((k, Params::new(k).map(|params| params.j)), (last + 1, Some(j)));
            last = k;
        }
        assert_eq!(last, 8_192);
    }
}
