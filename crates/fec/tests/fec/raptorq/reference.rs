//! A slow reference of RFC 6330: the matrix octet by octet as in section 5.3.3, and its rank by
//! Gaussian elimination. Shares no code and no table with the crate.

use std::sync::LazyLock;

/// A row of RFC 6330, table 2, and the numbers that follow from it.
#[derive(Clone, Copy)]
struct Sizes {
    k_prime: u32,
    j: u32,
    s: u32,
    h: u32,
    w: u32,
    l: u32,
    p: u32,
    p1: u32,
    b: u32,
}

static SIZES: LazyLock<Vec<Sizes>> = LazyLock::new(|| {
    let table = include_str!("../../data/rfc6330_systematic.csv");
    let row = |line: &str| {
        let numbers: Vec<u32> = line.split(',').map(|number| number.parse().unwrap()).collect();
        let [k_prime, j, s, h, w, l, p, p1, _, b] = *numbers.as_slice() else { panic!("{line}") };
        Sizes { k_prime, j, s, h, w, l, p, p1, b }
    };
    table.lines().skip(1).map(row).collect()
});

static V: LazyLock<[Vec<u32>; 4]> = LazyLock::new(|| {
    [
        include_str!("../../data/rfc6330_V0.txt"),
        include_str!("../../data/rfc6330_V1.txt"),
        include_str!("../../data/rfc6330_V2.txt"),
        include_str!("../../data/rfc6330_V3.txt"),
    ]
    .map(|table| table.lines().map(|number| number.parse().unwrap()).collect())
});

static DEGREES: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let table = include_str!("../../data/rfc6330_degree.csv");
    table.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse().unwrap()).collect()
});

fn rand(y: u32, i: u32, m: u32) -> u32 {
    let byte = |n: u32| (((y >> (8 * n)) & 255) + i) as usize % 256;
    (V[0][byte(0)] ^ V[1][byte(1)] ^ V[2][byte(2)] ^ V[3][byte(3)]) % m
}

/// Columns of the row of internal symbol id `x` (RFC 6330, sections 5.3.5.3 and 5.3.5.4).
fn columns(sizes: &Sizes, x: u32) -> Vec<u32> {
    let &Sizes { j, w, p, p1, .. } = sizes;
    let mut a = 53_591 + j * 997;
    if a % 2 == 0 {
        a += 1;
    }
    let y = ((10_267 * (u64::from(j) + 1) + u64::from(x) * u64::from(a)) % (1 << 32)) as u32;
    let v = rand(y, 0, 1 << 20);
    let d = (1..=30).find(|&d| DEGREES[d - 1] <= v && v < DEGREES[d]).unwrap() as u32;
    let d = d.min(w - 2);
    let (a, mut b) = (1 + rand(y, 1, w - 1), rand(y, 2, w));
    let d1 = if d < 4 { 2 + rand(x, 3, 2) } else { 2 };
    let (a1, mut b1) = (1 + rand(x, 4, p1 - 1), rand(x, 5, p1));
    let mut columns = vec![b];
    for _ in 1..d {
        b = (b + a) % w;
        columns.push(b);
    }
    while b1 >= p {
        b1 = (b1 + a1) % p1;
    }
    columns.push(w + b1);
    for _ in 1..d1 {
        b1 = (b1 + a1) % p1;
        while b1 >= p {
            b1 = (b1 + a1) % p1;
        }
        columns.push(w + b1);
    }
    columns
}

fn times_alpha(a: u8) -> u8 {
    let product = u16::from(a) << 1;
    (if product > 255 { product ^ 0x11D } else { product }) as u8
}

fn mul(a: u8, b: u8) -> u8 {
    let (mut product, mut a) = (0, a);
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            product ^= a;
        }
        a = times_alpha(a);
    }
    product
}

/// True if the symbols `esis` of a block of `k`, and the padding symbols, determine the block.
pub(crate) fn determines(k: u32, esis: &[u32]) -> bool {
    let sizes = *SIZES.iter().find(|sizes| sizes.k_prime >= k).unwrap();
    let Sizes { k_prime, s, h, w, l, p, b, .. } = sizes;
    let mut matrix = vec![vec![0_u8; l as usize]; (s + h) as usize];
    let mut flip = |row: u32, column: u32| matrix[row as usize][column as usize] ^= 1;
    for i in 0..b {
        let a = 1 + i / s;
        for step in 0..3 {
            flip((i + step * a) % s, i);
        }
    }
    for i in 0..s {
        flip(i, b + i);
        flip(i, w + i % p);
        flip(i, w + (i + 1) % p);
    }
    // MT * GAMMA, by its definition: GAMMA[i][j] = alpha^(i - j) for i >= j.
    let n = k_prime + s;
    for i in 0..n {
        let mut column = vec![0_u8; h as usize];
        if i + 1 < n {
            let first = rand(i + 1, 6, h);
            column[first as usize] = 1;
            column[((first + rand(i + 1, 7, h - 1) + 1) % h) as usize] = 1;
        } else {
            let mut power = 1;
            for value in &mut column {
                *value = power;
                power = times_alpha(power);
            }
        }
        let mut gamma = 1;
        for j in (0..=i).rev() {
            for (row, &value) in column.iter().enumerate() {
                matrix[s as usize + row][j as usize] ^= mul(value, gamma);
            }
            gamma = times_alpha(gamma);
        }
    }
    for i in 0..h {
        matrix[(s + i) as usize][(n + i) as usize] ^= 1;
    }
    let isi = |esi: u32| if esi < k { esi } else { esi + k_prime - k };
    for x in (k..k_prime).chain(esis.iter().map(|&esi| isi(esi))) {
        let mut row = vec![0; l as usize];
        for column in columns(&sizes, x) {
            row[column as usize] ^= 1;
        }
        matrix.push(row);
    }
    rank(matrix) == l as usize
}

fn rank(mut matrix: Vec<Vec<u8>>) -> usize {
    let columns = matrix[0].len();
    let mut rank = 0;
    for column in 0..columns {
        let Some(pivot) = (rank..matrix.len()).find(|&row| matrix[row][column] != 0) else {
            continue;
        };
        matrix.swap(rank, pivot);
        let (above, below) = matrix.split_at_mut(rank + 1);
        let pivot = &above[rank];
        let inverse = (1..=255).find(|&i| mul(i, pivot[column]) == 1).unwrap();
        for row in below.iter_mut().filter(|row| row[column] != 0) {
            let factor = mul(row[column], inverse);
            for (value, &p) in row.iter_mut().zip(pivot).skip(column) {
                *value ^= if factor == 1 { p } else { mul(factor, p) };
            }
        }
        rank += 1;
    }
    rank
}
