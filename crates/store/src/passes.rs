//! Operations on the symbols of a block in passes over ranges of their columns.
//!
//! An erasure code treats every column (the bytes at one position of all symbols) independently, so
//! a block that exceeds the memory budget is processed in slices.

use std::ops::Range;

/// Unit of the width of a pass, and its minimum: a cache line. Below it, reading and the code's
/// vector kernels waste more than the saved memory. At the largest block of RFC 6330 (about 57 000
/// intermediate symbols) such a pass takes 3.7 MB.
pub(crate) const COLUMN_UNIT: usize = 64;

/// Splits the columns of `symbol_size`-byte symbols into passes of about equal width. `memory`
/// returns the bytes of a pass of a given width, and grows with it. A pass takes at most `budget`,
/// but is never narrower than [`COLUMN_UNIT`].
pub(crate) fn column_passes(
    symbol_size: usize,
    budget: usize,
    memory: impl Fn(usize) -> usize,
) -> impl Iterator<Item = Range<usize>> {
    let widest = if memory(symbol_size) <= budget {
        symbol_size
    } else {
        // The number of units that fit, by bisection: `few` fits (or is the minimum), `many` does
        // not.
        let (mut few, mut many) = (1, symbol_size.div_ceil(COLUMN_UNIT).max(2));
        while many - few > 1 {
            let middle = few + (many - few) / 2;
            if memory(middle * COLUMN_UNIT) <= budget { few = middle } else { many = middle }
        }
        few * COLUMN_UNIT
    };
    let passes = symbol_size.div_ceil(widest.max(1)).max(1);
    let width = if passes == 1 {
        symbol_size
    } else {
        symbol_size.div_ceil(passes).next_multiple_of(COLUMN_UNIT)
    };
    (0..symbol_size).step_by(width.max(1)).map(move |from| from..(from + width).min(symbol_size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(symbol_size: usize, budget: usize) -> Vec<Range<usize>> {
        column_passes(symbol_size, budget, |width| 10 * width).collect()
    }

    #[test]
    fn one_pass_when_the_whole_symbol_fits() {
        assert_eq!(passes(1280, 12_800), vec![0..1280]);
        assert_eq!(passes(1280, 12_799), vec![0..640, 640..1280]);
        assert_eq!(passes(7, usize::MAX), vec![0..7]);
    }

    #[test]
    fn no_pass_is_narrower_than_a_cache_line() {
        assert_eq!(passes(130, 0), vec![0..64, 64..128, 128..130]);
        assert_eq!(passes(64, 0), vec![0..64]);
        assert_eq!(passes(7, 0), vec![0..7]);
    }

    #[test]
    fn passes_tile_the_symbol_and_keep_the_budget() {
        for symbol_size in 1..700 {
            for budget in (0..8_000).step_by(97) {
                let passes = passes(symbol_size, budget);
                let mut end = 0;
                for pass in passes {
                    assert_eq!(pass.start, end);
                    end = pass.end;
                    assert!(pass.len() * 10 <= budget.max(COLUMN_UNIT * 10));
                }
                assert_eq!(end, symbol_size);
            }
        }
    }
}
