//! Tables of multiplication in GF(256), for each form of its elements.

use crate::field::cantor_basis::{ELEMENTS, POSITIONS};
use crate::field::gf256::mul;

/// The products with each constant. Multiplication by a constant is linear in the bits of an octet,
/// whatever basis these refer to.
pub(crate) struct ProductTable {
    /// The matrix of each multiplication, for GFNI. The instruction for products (`gf2p8mulb`) uses
    /// another polynomial than RFC 6330, so the instruction for bit matrices (`gf2p8affineqb`)
    /// serves instead. Byte `7 - i` selects the input bits whose sum is output bit `i`.
    pub(super) matrices: [u64; 256],
    /// The products with 0, 1, ... 15, then with 0, 16, ... 240: for table look-up by half bytes.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(super) products: [[u8; 32]; 256],
}

/// Of octets in the usual form: bit `i` is the factor of `alpha^i`.
pub(crate) static POLYNOMIAL: ProductTable = ProductTable::new(false);

/// Of octets that are positions in the [Cantor basis](crate::field::cantor_basis): bit `i` is the
/// factor of `b_i`. The constants are in the usual form.
pub(crate) static CANTOR: ProductTable = ProductTable::new(true);

impl ProductTable {
    const fn new(are_positions: bool) -> Self {
        const fn product(are_positions: bool, constant: u8, octet: u8) -> u8 {
            if are_positions {
                POSITIONS[mul(constant, ELEMENTS[octet as usize]) as usize]
            } else {
                mul(constant, octet)
            }
        }
        let mut table = Self {
            matrices: [0; 256],
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            products: [[0; 32]; 256],
        };
        let mut c = 0;
        while c < 256 {
            let mut input = 0;
            while input < 8 {
                let product = product(are_positions, c as u8, 1 << input);
                let mut output = 0;
                while output < 8 {
                    let bit = (product >> output & 1) as u64;
                    table.matrices[c] |= bit << (8 * (7 - output) + input);
                    output += 1;
                }
                input += 1;
            }
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            {
                let mut i = 0;
                while i < 16 {
                    table.products[c][i] = product(are_positions, c as u8, i as u8);
                    table.products[c][16 + i] = product(are_positions, c as u8, (i as u8) << 4);
                    i += 1;
                }
            }
            c += 1;
        }
        table
    }
}

/// The columns of a bit matrix, input bit 0 first, from its form in [`ProductTable`].
pub(super) fn columns_of(rows: u64) -> [u8; 8] {
    // Output bit i in byte i, then transposed by exchanging squares of increasing size.
    let mut bits = rows.swap_bytes();
    for (distance, mask) in
        [(7, 0x00AA_00AA_00AA_00AA), (14, 0x0000_CCCC_0000_CCCC), (28, 0x0000_0000_F0F0_F0F0)]
    {
        let exchanged = (bits ^ (bits >> distance)) & mask;
        bits ^= exchanged ^ (exchanged << distance);
    }
    bits.to_le_bytes()
}

/// The products of a bit matrix with 0, 1, ... 15, then with 0, 16, ... 240. A word holds eight
/// octets, the first one lowest.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn products_of(rows: u64) -> [u64; 4] {
    /// Which of eight numbers have bit 0, 1, 2.
    const SET: [u64; 3] = [0xFF00_FF00_FF00_FF00, 0xFFFF_0000_FFFF_0000, 0xFFFF_FFFF_0000_0000];
    let each = columns_of(rows).map(|column| u64::from(column) * 0x0101_0101_0101_0101);
    let eight = |of: &[u64]| of.iter().zip(SET).fold(0, |sum, (each, set)| sum ^ (each & set));
    let (low, high) = (eight(&each[..3]), eight(&each[4..7]));
    [low, low ^ each[3], high, high ^ each[7]]
}
