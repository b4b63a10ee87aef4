//! Sizes of the code of one source block (RFC 6330, sections 5.3.3.3 and 5.6).

use super::tables::SYSTEMATIC_INDICES;
use crate::codes::shared::primes::prime_from;
use crate::decode::Work;

/// The sizes of RFC 6330, by their names there. All of them follow from `K'`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_snake_case, reason = "the letters of RFC 6330")]
pub(crate) struct Params {
    /// `K'`: source symbols of the extended block, padding included.
    pub(crate) k_prime: u32,
    /// `J(K')`: the systematic index.
    pub(crate) j: u32,
    /// `S`: LDPC symbols.
    pub(crate) s: u32,
    /// `H`: HDPC symbols.
    pub(crate) h: u32,
    /// `W`: LT symbols, a prime. Columns `0..W` of the matrix.
    pub(crate) w: u32,
    /// `L = K' + S + H`: intermediate symbols, the columns of the matrix.
    pub(crate) l: u32,
    /// `P = L - W`: permanently inactive symbols. Columns `W..L`.
    pub(crate) p: u32,
    /// `P1`: the smallest prime that is at least `P`.
    pub(crate) p1: u32,
    /// `B = W - S`: LT symbols that are not LDPC symbols. Columns `0..B`.
    pub(crate) b: u32,
}

impl Params {
    /// The parameters of the smallest `K'` that holds `source_symbols`. Callers have checked the
    /// number; more than the largest `K'` count as the largest.
    pub(crate) fn covering(source_symbols: u32) -> Self {
        let row = SYSTEMATIC_INDICES.partition_point(|row| row.0 < source_symbols);
        let row = row.min(SYSTEMATIC_INDICES.len() - 1);
        let (k_prime, j, s, h, w) = SYSTEMATIC_INDICES[row];
        let (j, s, h, w) = (u32::from(j), u32::from(s), u32::from(h), u32::from(w));
        let l = k_prime + s + h;
        let p = l - w;
        let p1 = prime_from(p);
        Self { k_prime, j, s, h, w, l, p, p1, b: w - s }
    }

    /// A budget for planning: see [`FecScheme::work`](crate::FecScheme::work).
    pub(crate) fn work(&self) -> Work {
        let l = u64::from(self.l);
        // Inactive columns of honest sets: 75, 222 and 562 at K = 1000, 10 000 and 50 000. The
        // terms are the costs of peeling, of the HDPC rows and pivots, and of the dense rows; their
        // sum is about twice the measured work.
        let inactive = u64::from(self.p) + 2 * l.isqrt();
        let words = inactive.div_ceil(64);
        Work(3 * (30 * l + 30 * l * words + 2 * inactive * inactive * words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_rfc() {
        let table = include_str!("../../../tests/data/rfc6330_systematic.csv");
        let mut last = 0;
        for line in table.lines().skip(1) {
            let numbers: Vec<u32> = line.split(',').map(|n| n.parse().unwrap()).collect();
            let [k_prime, j, s, h, w, l, p, p1, _, b] = numbers[..] else { panic!("{line}") };
            let expected = Params { k_prime, j, s, h, w, l, p, p1, b };
            // From just above the next smaller size to this size.
            assert_eq!(Params::covering(k_prime), expected, "{line}");
            assert_eq!(Params::covering(last + 1), expected, "{line}");
            last = k_prime;
        }
        assert_eq!(last, crate::codes::raptorq::MAX_SOURCE_SYMBOLS);
    }
}
