//! From an ESI to the intermediate symbols whose sum it is (RFC 5053, sections 5.4.4.1 to 5.4.4.4).

use super::params::Params;
use super::tables::DEGREES;
use crate::codes::shared::random_tables::{V0, V1};

/// `Q` of the triple generator: the largest prime below 2^16 (RFC 5053, section 5.4.4.4).
const Q: u32 = 65_521;

/// `Rand[X, i, m]`: a number below `m` (RFC 5053, section 5.4.4.1). `x` is below 2^16.
fn rand(x: u32, i: u32, m: u32) -> u32 {
    let at = |shift: u32| (((x >> shift) + i) & 255) as usize;
    (V0[at(0)] ^ V1[at(8)]) % m
}

/// `Deg[v]` for `v < 2^20` (RFC 5053, section 5.4.4.2).
fn degree(v: u32) -> u32 {
    DEGREES.iter().find(|&&(bound, _)| v < bound).map_or(0, |&(_, degree)| degree)
}

/// `Trip[K, X]` (RFC 5053, section 5.4.4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Triple {
    d: u32,
    a: u32,
    b: u32,
}

impl Triple {
    /// The triple of encoding symbol `x`, which is below 2^16: products fit into 32 bits.
    fn new(params: &Params, x: u32) -> Self {
        let a = (53_591 + params.j * 997) % Q;
        let b = 10_267 * (params.j + 1) % Q;
        let y = (b + x * a) % Q;
        Self {
            d: degree(rand(y, 0, 1 << 20)),
            a: 1 + rand(y, 1, params.l_prime - 1),
            b: rand(y, 2, params.l_prime),
        }
    }
}

/// Indices of the intermediate symbols whose sum encoding symbol `x`, below 2^16, is (`LTEnc` of
/// RFC 5053, section 5.4.4.3). No index occurs twice: the stride is smaller than the prime that it
/// is taken modulo.
pub(super) fn neighbors(params: &Params, x: u32) -> impl Iterator<Item = u32> {
    let Params { l, l_prime, .. } = *params;
    let Triple { d, a, mut b } = Triple::new(params, x);
    (0..d.min(l)).map(move |_| {
        while b >= l {
            b = (b + a) % l_prime;
        }
        let next = (b + a) % l_prime;
        core::mem::replace(&mut b, next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_are_the_published_ones() {
        let text = include_str!("../../../tests/data/vectors_raptor10.txt");
        let mut checked = 0;
        for line in text.lines().filter_map(|line| line.strip_prefix("TRIPLE ")) {
            let numbers: Vec<u32> = line.split(' ').map(|n| n.parse().unwrap()).collect();
            let [k, x, d, a, b] = numbers[..] else { panic!("{line}") };
            let params = Params::new(k).unwrap();
            assert_eq!(Triple::new(&params, x), Triple { d, a, b }, "{line}");
            checked += 1;
        }
        assert_eq!(checked, 24);
    }

    #[test]
    fn degrees_are_those_of_the_rfc() {
        let table = include_str!("../../../tests/data/rfc5053_degree.csv");
        let mut first = 0;
        for line in table.lines().skip(2) {
            let numbers: Vec<u32> = line.split(',').map(|n| n.parse().unwrap()).collect();
            let [_, bound, of] = numbers[..] else { panic!("{line}") };
            assert_eq!((degree(first), degree(bound - 1)), (of, of), "{line}");
            first = bound;
        }
        assert_eq!(first, 1 << 20);
    }

    #[test]
    fn no_neighbor_comes_twice() {
        for k in [4, 5, 17, 100, 8_192] {
            let params = Params::new(k).unwrap();
            for x in (0..1 << 16).step_by(7) {
                let mut neighbors: Vec<u32> = neighbors(&params, x).collect();
                let count = neighbors.len();
                neighbors.sort_unstable();
                neighbors.dedup();
                assert_eq!(neighbors.len(), count, "K = {k}, X = {x}");
                assert!(neighbors.iter().all(|&column| column < params.l));
            }
        }
    }
}
