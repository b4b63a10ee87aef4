//! The sender's side, plainly: the columns of a file, and encoding symbols made of them.

use super::code::WindowCode;

/// The columns' symbols of a file whose symbols are `source`, `size` bytes each.
pub(super) fn columns(line: &WindowCode, source: &[u8], size: usize) -> Vec<u8> {
    let mut columns = vec![0; line.columns() as usize * size];
    let mut symbols = source.chunks_exact(size);
    let mut next = 0;
    for (column, to) in (0..).zip(columns.chunks_exact_mut(size)) {
        if next < line.constraints() && line.defined(next) == column {
            next += 1;
        } else if let Some(symbol) = symbols.next() {
            to.copy_from_slice(symbol);
        }
    }
    for row in line.constraint_rows() {
        if let Some((&defined, others)) = row.split_first() {
            let sum = sum(&columns, others, size);
            columns[defined as usize * size..][..size].copy_from_slice(&sum);
        }
    }
    columns
}

/// Encoding symbols, one after the other.
pub(super) fn symbols(line: &WindowCode, columns: &[u8], esis: &[u32], size: usize) -> Vec<u8> {
    let mut row = Vec::new();
    let mut symbols = Vec::with_capacity(esis.len() * size);
    for &esi in esis {
        line.row(esi, &mut row);
        symbols.extend(sum(columns, &row, size));
    }
    symbols
}

fn sum(columns: &[u8], row: &[u32], size: usize) -> Vec<u8> {
    let mut sum = vec![0; size];
    for &column in row {
        let symbol = &columns[column as usize * size..][..size];
        sum.iter_mut().zip(symbol).for_each(|(to, from)| *to ^= from);
    }
    sum
}
