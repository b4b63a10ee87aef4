//! From an internal symbol id to the intermediate symbols it is the sum of (RFC 6330, sections
//! 5.3.5.1 to 5.3.5.4).

use super::params::Params;
use super::tables::{DEGREE_BOUNDS, V0, V1, V2, V3};

/// `Rand[y, i, m]`: a number below `m` (RFC 6330, section 5.3.5.1).
pub(super) fn rand(y: u32, i: u32, m: u32) -> u32 {
    let at = |shift: u32| ((y >> shift).wrapping_add(i) & 255) as usize;
    (V0[at(0)] ^ V1[at(8)] ^ V2[at(16)] ^ V3[at(24)]) % m
}

/// `Deg[v]` for `v < 2^20` (RFC 6330, section 5.3.5.2).
fn degree(v: u32, w: u32) -> u32 {
    let d = DEGREE_BOUNDS.partition_point(|&bound| bound <= v) as u32;
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
            d1: if d < 4 { 2 + rand(x, 3, 2) } else { 2 },
            a1: 1 + rand(x, 4, params.p1 - 1),
            b1: rand(x, 5, params.p1),
        }
    }
}

/// Calls `visit` with the index of every intermediate symbol that encoding symbol `x` (an internal
/// symbol id) is the sum of (RFC 6330, section 5.3.5.3). No index comes twice: the strides are
/// smaller than the primes they are taken modulo.
pub(super) fn for_each_neighbor(params: &Params, x: u32, mut visit: impl FnMut(u32)) {
    let Tuple { d, a, mut b, d1, a1, mut b1 } = Tuple::new(params, x);
    // `a < w` and `b < w`: a conditional subtraction reduces the sum.
    let step = |at: u32, by: u32, modulus: u32| {
        let sum = at + by;
        if sum >= modulus { sum - modulus } else { sum }
    };
    visit(b);
    for _ in 1..d {
        b = step(b, a, params.w);
        visit(b);
    }
    for i in 0..d1 {
        if i > 0 {
            b1 = step(b1, a1, params.p1);
        }
        while b1 >= params.p {
            b1 = step(b1, a1, params.p1);
        }
        visit(params.w + b1);
    }
}
