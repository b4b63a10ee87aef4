//! From an internal symbol id to the intermediate symbols whose sum it is (RFC 6330, sections
//! 5.3.5.1 to 5.3.5.4).

use super::params::Params;
use super::tables::DEGREE_BOUNDS;
use crate::codes::shared::random_tables::{V0, V1, V2, V3};

/// `Rand[y, i, m]`: a number below `m` (RFC 6330, section 5.3.5.1).
pub(super) fn rand(y: u32, i: u32, m: u32) -> u32 {
    let at = |shift: u32| ((y >> shift).wrapping_add(i) & 255) as usize;
    (V0[at(0)] ^ V1[at(8)] ^ V2[at(16)] ^ V3[at(24)]) % m
}

/// `Deg[v]` for `v < 2^20` (RFC 6330, section 5.3.5.2).
fn degree(v: u32, w: u32) -> u32 {
    // Counted without a search, whose branches would be unpredictable.
    let d: u32 = DEGREE_BOUNDS.iter().map(|&bound| u32::from(bound <= v)).sum();
    d.min(w - 2)
}

/// `Tuple[K', X]` (RFC 6330, section 5.3.5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tuple {
    pub(super) d: u32,
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) d1: u32,
    pub(super) a1: u32,
    pub(super) b1: u32,
}

impl Tuple {
    /// The tuple of internal symbol id `x`.
    pub(super) fn new(params: &Params, x: u32) -> Self {
        let a = (53_591 + params.j * 997) | 1;
        let b = 10_267 * (params.j + 1);
        let y = b.wrapping_add(x.wrapping_mul(a));
        let d = degree(rand(y, 0, 1 << 20), params.w);
        Self {
            d,
            a: 1 + rand(y, 1, params.w - 1),
            b: rand(y, 2, params.w),
            // A product instead of a branch, which would be unpredictable.
            d1: 2 + u32::from(d < 4) * rand(x, 3, 2),
            a1: 1 + rand(x, 4, params.p1 - 1),
            b1: rand(x, 5, params.p1),
        }
    }
}

impl Tuple {
    /// The LT symbols, below `W`, of the sum that the tuple describes (RFC 6330, section 5.3.5.3).
    /// No index occurs twice, here or in [`pi`](Self::pi): the strides are smaller than the primes
    /// they are taken modulo.
    pub(super) fn lt(self, params: &Params) -> impl Iterator<Item = u32> {
        let Self { d, a, mut b, .. } = self;
        let w = params.w;
        (0..d).map(move |_| {
            let next = step(b, a, w);
            core::mem::replace(&mut b, next)
        })
    }

    /// The permanently inactive symbols, from `W` on, of that sum.
    pub(super) fn pi(self, params: &Params) -> impl Iterator<Item = u32> {
        let Self { d1, a1, mut b1, .. } = self;
        let Params { w, p, p1, .. } = *params;
        (0..d1).map(move |_| {
            while b1 >= p {
                b1 = step(b1, a1, p1);
            }
            let next = step(b1, a1, p1);
            w + core::mem::replace(&mut b1, next)
        })
    }
}

/// `at + by` modulo `modulus`; both are below it.
fn step(at: u32, by: u32, modulus: u32) -> u32 {
    let sum = at + by;
    if sum >= modulus { sum - modulus } else { sum }
}

/// Indices of the intermediate symbols whose sum encoding symbol `x` (an internal symbol id) is.
pub(super) fn neighbors(params: &Params, x: u32) -> impl Iterator<Item = u32> {
    let tuple = Tuple::new(params, x);
    tuple.lt(params).chain(tuple.pi(params))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of the published vectors that start with `key`, as numbers.
    fn vectors(key: &str) -> Vec<Vec<u32>> {
        let numbers = |line: &str| line.split(' ').skip(1).map(|n| n.parse().unwrap()).collect();
        let text = include_str!("../../../tests/data/vectors_raptorq.txt");
        text.lines().filter(|line| line.starts_with(key)).map(numbers).collect()
    }

    #[test]
    fn random_numbers_are_the_published_ones() {
        let vectors = vectors("RAND ");
        assert_eq!(vectors.len(), 8);
        for numbers in vectors {
            let [y, i, m, value] = numbers[..] else { panic!("{numbers:?}") };
            assert_eq!(rand(y, i, m), value, "{numbers:?}");
        }
    }

    #[test]
    fn tuples_are_the_published_ones() {
        let vectors = vectors("TUPLE ");
        assert_eq!(vectors.len(), 32);
        for numbers in vectors {
            let [k_prime, x, d, a, b, d1, a1, b1] = numbers[..] else { panic!("{numbers:?}") };
            let params = Params::covering(k_prime);
            assert_eq!(params.k_prime, k_prime);
            assert_eq!(Tuple::new(&params, x), Tuple { d, a, b, d1, a1, b1 }, "{numbers:?}");
        }
    }

    #[test]
    fn degrees_change_exactly_at_their_bounds() {
        for (d, bounds) in (1..).zip(DEGREE_BOUNDS.windows(2)) {
            assert_eq!(degree(bounds[0], 1000), d, "first of degree {d}");
            assert_eq!(degree(bounds[1] - 1, 1000), d, "last of degree {d}");
        }
        assert_eq!(degree((1 << 20) - 1, 17), 15, "at most W - 2");
    }

    #[test]
    fn no_neighbor_comes_twice() {
        for k_prime in [10, 101, 1002] {
            let params = Params::covering(k_prime);
            for x in 0..5000 {
                let mut neighbors: Vec<u32> = neighbors(&params, x).collect();
                let count = neighbors.len();
                neighbors.sort_unstable();
                neighbors.dedup();
                assert_eq!(neighbors.len(), count, "K' = {k_prime}, X = {x}");
                assert!(neighbors.iter().all(|&column| column < params.l));
            }
        }
    }
}
