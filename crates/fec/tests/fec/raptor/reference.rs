//! A slow reference of RFC 5053: the matrix bit by bit as in section 5.4.2.4, and its rank by
//! Gaussian elimination. Shares no code and no table with the crate.

use std::sync::LazyLock;

static V: LazyLock<[Vec<u32>; 2]> = LazyLock::new(|| {
    [include_str!("../../data/rfc6330_V0.txt"), include_str!("../../data/rfc6330_V1.txt")]
        .map(|table| table.lines().map(|number| number.parse().unwrap()).collect())
});

/// `J(K)` from `K = 4` on.
static J: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let table = include_str!("../../data/rfc5053_J.csv");
    table.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse().unwrap()).collect()
});

fn rand(x: u32, i: u32, m: u32) -> u32 {
    (V[0][((x + i) % 256) as usize] ^ V[1][((x / 256 + i) % 256) as usize]) % m
}

fn is_prime(n: u32) -> bool {
    n > 1 && (2..n).all(|d| !n.is_multiple_of(d))
}

fn prime_from(n: u32) -> u32 {
    (n..).find(|&n| is_prime(n)).unwrap()
}

fn combinations(n: u32, m: u32) -> u32 {
    if m == 0 || m == n { 1 } else { combinations(n - 1, m - 1) + combinations(n - 1, m) }
}

/// `K`, `S`, `H` and `L`.
struct Sizes {
    k: u32,
    s: u32,
    h: u32,
    l: u32,
}

fn sizes(k: u32) -> Sizes {
    let x = (1..).find(|x| x * (x - 1) >= 2 * k).unwrap();
    let s = prime_from(k.div_ceil(100) + x);
    let h = (1..).find(|&h: &u32| combinations(h, h.div_ceil(2)) >= k + s).unwrap();
    Sizes { k, s, h, l: k + s + h }
}

/// Columns of the row of encoding symbol `x` (RFC 5053, sections 5.4.4.3 and 5.4.4.4).
fn columns(sizes: &Sizes, x: u32) -> Vec<u32> {
    const Q: u64 = 65_521;
    let (l, l_prime, j) = (sizes.l, prime_from(sizes.l), u64::from(J[sizes.k as usize - 4]));
    let (a, b) = ((53_591 + j * 997) % Q, 10_267 * (j + 1) % Q);
    let y = ((b + u64::from(x) * a) % Q) as u32;
    let v = rand(y, 0, 1 << 20);
    let bounds = [10_241, 491_582, 712_794, 831_695, 948_446, 1_032_189, 1_048_576];
    let d = [1, 2, 3, 4, 10, 11, 40][bounds.iter().position(|&bound| v < bound).unwrap()];
    let (a, mut b) = (1 + rand(y, 1, l_prime - 1), rand(y, 2, l_prime));
    while b >= l {
        b = (b + a) % l_prime;
    }
    let mut columns = vec![b];
    for _ in 0..(d - 1).min(l - 1) {
        b = (b + a) % l_prime;
        while b >= l {
            b = (b + a) % l_prime;
        }
        columns.push(b);
    }
    columns
}

/// True if the symbols `esis` of a block of `k` determine the block.
pub(crate) fn determines(k: u32, esis: &[u32]) -> bool {
    if k < 4 {
        return (0..k).all(|esi| esis.contains(&esi));
    }
    let sizes = sizes(k);
    let Sizes { s, h, l, .. } = sizes;
    let mut matrix = vec![vec![false; l as usize]; (s + h) as usize];
    let mut flip = |row: u32, column: u32| matrix[row as usize][column as usize] ^= true;
    for i in 0..k {
        let a = 1 + (i / s) % (s - 1);
        let mut b = i % s;
        for _ in 0..3 {
            flip(b, i);
            b = (b + a) % s;
        }
    }
    for i in 0..s {
        flip(i, k + i);
    }
    let gray = (0..).map(|i: u32| i ^ (i / 2)).filter(|g| g.count_ones() == h.div_ceil(2));
    for (j, g) in (0..k + s).zip(gray) {
        for i in (0..h).filter(|i| (g >> i) & 1 == 1) {
            flip(s + i, j);
        }
    }
    for i in 0..h {
        flip(s + i, k + s + i);
    }
    for &x in esis {
        let mut row = vec![false; l as usize];
        for column in columns(&sizes, x) {
            row[column as usize] ^= true;
        }
        matrix.push(row);
    }
    rank(matrix) == l as usize
}

fn rank(mut matrix: Vec<Vec<bool>>) -> usize {
    let mut rank = 0;
    for column in 0..matrix[0].len() {
        let Some(pivot) = (rank..matrix.len()).find(|&row| matrix[row][column]) else { continue };
        matrix.swap(rank, pivot);
        let (above, below) = matrix.split_at_mut(rank + 1);
        for row in below.iter_mut().filter(|row| row[column]) {
            row.iter_mut().zip(&above[rank]).for_each(|(value, &p)| *value ^= p);
        }
        rank += 1;
    }
    rank
}
