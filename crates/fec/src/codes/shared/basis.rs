//! Independent vectors over GF(256), and the inverse of the matrix that they form.

use crate::field::gf256::{inverse, mul};
use alloc::vec;
use alloc::vec::Vec;

/// Independent vectors. Adding one takes `m^2` multiplications for vectors of `m` elements.
pub(crate) struct Basis {
    columns: usize,
    /// Reduced: each has a one in its leading column, and the others a zero there.
    rows: Vec<Reduced>,
}

struct Reduced {
    leading: usize,
    vector: Vec<u8>,
    /// The factors with which the added vectors, in their order, sum up to it.
    origin: Vec<u8>,
}

/// `to + factor * from`.
fn add_product(to: &mut [u8], factor: u8, from: &[u8]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to ^= mul(factor, from));
}

impl Basis {
    /// No vectors, of `columns` elements each.
    pub(crate) fn new(columns: usize) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// The number of vectors.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Adds a vector of `columns` elements. False, and it is not added, if it depends on others.
    pub(crate) fn push(&mut self, mut vector: Vec<u8>) -> bool {
        let mut origin = vec![0; self.columns];
        let Some(own) = origin.get_mut(self.rows.len()) else { return false };
        *own = 1;
        for row in &self.rows {
            let factor = vector[row.leading];
            add_product(&mut vector, factor, &row.vector);
            add_product(&mut origin, factor, &row.origin);
        }
        let Some(leading) = vector.iter().position(|&factor| factor != 0) else {
            return false;
        };
        let scale = inverse(vector[leading]);
        vector.iter_mut().chain(&mut origin).for_each(|factor| *factor = mul(*factor, scale));
        for row in &mut self.rows {
            let factor = row.vector[leading];
            add_product(&mut row.vector, factor, &vector);
            add_product(&mut row.origin, factor, &origin);
        }
        self.rows.push(Reduced { leading, vector, origin });
        true
    }

    /// The factors with which the added vectors, in their order, sum up to each unit vector. `None`
    /// if the vectors are fewer than their elements.
    pub(crate) fn inverse(&self) -> Option<Vec<&[u8]>> {
        if self.rows.len() < self.columns {
            return None;
        }
        // The reduced vectors are unit vectors now.
        let mut rows: Vec<&Reduced> = self.rows.iter().collect();
        rows.sort_by_key(|row| row.leading);
        Some(rows.into_iter().map(|row| row.origin.as_slice()).collect())
    }
}
