//! Reed-Solomon codes by exclusive or alone (Blömer, Kalfane, Karpinski, Karp, Luby, Zuckerman,
//! "An XOR-based erasure-resilient coding scheme", ICSI TR-95-048, 1995): what the Digital Fountain
//! paper compares Tornado codes with, in one block and interleaved over many.
//!
//! An element `e` of GF(2^w) stands for a w by w matrix of bits, whose column `c` is `e alpha^c`. A
//! symbol is cut into `w` equal parts, and part `r` of a repair symbol is the sum of those parts
//! `c` of the source symbols for which row `r` of the element's matrix has a one in column `c`. The
//! elements are a Cauchy matrix's: `1 / (x + y)`, with `x = i` for repair symbol `i` and
//! `y = m + j` for source symbol `j`, of `m` repair symbols in all. The symbols are not those of
//! the octet-wise Cauchy code: there the bits of an element are the bits of an octet, here they are
//! in different parts.
//!
//! Work is counted in exclusive ors of *parts*; `w` of them are one of whole symbols. Per element
//! it is `w^2 / 2` on average, so `k` source and `m` repair symbols cost about `k m w / 2` symbols.
//!
//! Fontana sends with [`ReedSolomon`](fontana_fec::codes::reed_solomon::ReedSolomon), which is
//! dozens of times faster.

use fontana_fec::study::BinaryField;

/// A code of `k` source and `m` repair symbols, ESIs `0..k` and `k..k + m`.
pub(super) struct XorCauchy {
    field: BinaryField,
    source_symbols: u32,
    repair_symbols: u32,
    /// For each element the ones in its matrix.
    ones: Vec<u16>,
}

/// What an [`XorCauchy`] cannot do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum XorCauchyError {
    /// The field is too small, or is none.
    #[error("{symbols} symbols in GF(2^{bits}): it has to have as many elements, and 2 to 16 bits")]
    Field {
        /// Source and repair symbols together.
        symbols: u64,
        /// `w`.
        bits: u32,
    },
    /// The lost symbols and those that replace them do not fit together.
    #[error("{lost} lost source symbols of {source_symbols} and {repair} repair symbols")]
    Symbols {
        /// Lost source symbols.
        lost: usize,
        /// Repair symbols for them.
        repair: usize,
        /// `k`.
        source_symbols: u32,
    },
    /// The bytes are not whole symbols, or these not `w` equal parts.
    #[error("{actual} bytes are not {symbols} symbols of {width}, or these not of {bits} parts")]
    Size {
        /// Bytes there are.
        actual: usize,
        /// Symbols there should be.
        symbols: usize,
        /// Bytes of a symbol.
        width: usize,
        /// `w`.
        bits: u32,
    },
}

impl XorCauchy {
    /// The code over GF(2^`bits`).
    ///
    /// # Errors
    /// [`XorCauchyError::Field`] unless `source_symbols + repair_symbols <= 2^bits`.
    pub(super) fn new(
        source_symbols: u32,
        repair_symbols: u32,
        bits: u32,
    ) -> Result<Self, XorCauchyError> {
        let symbols = u64::from(source_symbols) + u64::from(repair_symbols);
        let field = BinaryField::new(bits).filter(|_| symbols <= 1 << bits);
        let field = field.ok_or(XorCauchyError::Field { symbols, bits })?;
        let ones = (0..=field.order())
            .map(|element| columns(&field, element as u16).map(|c| c.count_ones() as u16).sum())
            .collect();
        Ok(Self { field, source_symbols, repair_symbols, ones })
    }

    /// Exclusive ors of parts that make all repair symbols.
    pub(super) fn encoding_xors(&self) -> u64 {
        self.encoding().xors()
    }

    /// Writes all repair symbols, one after the other, from all source symbols.
    ///
    /// # Errors
    /// [`XorCauchyError::Size`].
    pub(super) fn encode(
        &self,
        source: &[u8],
        width: usize,
        repair: &mut [u8],
    ) -> Result<(), XorCauchyError> {
        self.encoding().run(source, width, repair)
    }

    fn encoding(&self) -> XorProduct<'_> {
        let repair: Vec<u32> =
            (self.source_symbols..self.source_symbols + self.repair_symbols).collect();
        self.product(&[], &[], &repair)
    }

    /// How to compute source symbols `lost` from the others and as many repair symbols, given by
    /// their ESIs: a product with one input for each source symbol, in place of `lost[i]` being
    /// `repair[i]`, and one output for each of `lost`.
    ///
    /// # Errors
    /// [`XorCauchyError::Symbols`] unless both are ascending lists of as many symbols of the code.
    pub(super) fn recovery(
        &self,
        lost: &[u32],
        repair: &[u32],
    ) -> Result<XorProduct<'_>, XorCauchyError> {
        let k = self.source_symbols;
        let ascending = |list: &[u32]| list.is_sorted_by(|a, b| a < b);
        let fits = lost.len() == repair.len()
            && ascending(lost)
            && ascending(repair)
            && lost.last().is_none_or(|&last| last < k)
            && repair.first().is_none_or(|&first| first >= k)
            && repair.last().is_none_or(|&last| last - k < self.repair_symbols);
        if !fits {
            let (lost, repair) = (lost.len(), repair.len());
            return Err(XorCauchyError::Symbols { lost, repair, source_symbols: k });
        }
        Ok(self.product(lost, repair, lost))
    }

    /// Lagrange's interpolation: see [`reed_solomon`](fontana_fec::codes::reed_solomon).
    fn product(&self, lost: &[u32], repair: &[u32], targets: &[u32]) -> XorProduct<'_> {
        let (k, field) = (self.source_symbols, &self.field);
        let point = |esi: u32| -> u16 {
            (if esi < k { self.repair_symbols + esi } else { esi - k }) as u16
        };
        let points = |esis: &[u32]| -> Vec<u16> { esis.iter().map(|&esi| point(esi)).collect() };
        let (lost_points, repair_points) = (points(lost), points(repair));
        let order = u64::from(field.order());
        let weighted = |esi: u32| {
            let z = point(esi);
            // A symbol is no factor of its own product: the logarithm of 0 counts as 0.
            let product =
                |of: &[u16]| of.iter().map(|&other| u64::from(field.log(z ^ other))).sum::<u64>();
            let quotient = order * lost.len() as u64 - product(&lost_points);
            (z, ((product(&repair_points) + quotient) % order) as u32)
        };
        let mut at_hand: Vec<u32> = (0..k).collect();
        for (&lost, &repair) in lost.iter().zip(repair) {
            at_hand[lost as usize] = repair;
        }
        let inputs = at_hand.into_iter().map(weighted).collect();
        let outputs = targets.iter().copied().map(weighted).collect();
        XorProduct { code: self, inputs, outputs }
    }
}

/// The columns of the element's matrix, row `r` in bit `r`.
fn columns(field: &BinaryField, element: u16) -> impl Iterator<Item = u16> {
    std::iter::successors(Some(element), |&column| Some(field.double(column)))
        .take(field.bits() as usize)
}

/// A matrix that turns symbols into symbols.
pub(super) struct XorProduct<'a> {
    code: &'a XorCauchy,
    /// Point and logarithm of the weight of each input.
    inputs: Vec<(u16, u32)>,
    /// And of each output.
    outputs: Vec<(u16, u32)>,
}

impl XorProduct<'_> {
    fn element(&self, output: (u16, u32), input: (u16, u32)) -> u16 {
        let (field, order) = (&self.code.field, self.code.field.order());
        let weights = (output.1 + order - input.1) % order;
        field.alpha_power(weights + order - field.log(output.0 ^ input.0))
    }

    /// Exclusive ors of parts that a [`run`](Self::run) takes.
    pub(super) fn xors(&self) -> u64 {
        let elements = self
            .outputs
            .iter()
            .flat_map(|&output| self.inputs.iter().map(move |&input| self.element(output, input)));
        elements.map(|element| u64::from(self.code.ones[usize::from(element)])).sum()
    }

    /// Writes the outputs from the inputs, symbols of `width` bytes one after the other.
    ///
    /// # Errors
    /// [`XorCauchyError::Size`].
    pub(super) fn run(
        &self,
        inputs: &[u8],
        width: usize,
        outputs: &mut [u8],
    ) -> Result<(), XorCauchyError> {
        let bits = self.code.field.bits();
        let part = width / bits as usize;
        for (actual, symbols) in
            [(inputs.len(), self.inputs.len()), (outputs.len(), self.outputs.len())]
        {
            if part == 0
                || !width.is_multiple_of(bits as usize)
                || Some(actual) != symbols.checked_mul(width)
            {
                return Err(XorCauchyError::Size { actual, symbols, width, bits });
            }
        }
        for (&output, to) in self.outputs.iter().zip(outputs.chunks_exact_mut(width)) {
            to.fill(0);
            for (&input, from) in self.inputs.iter().zip(inputs.chunks_exact(width)) {
                let columns = columns(&self.code.field, self.element(output, input));
                for (mut column, from) in columns.zip(from.chunks_exact(part)) {
                    // From one to the next: asking each bit is a branch that is wrong half the
                    // time, which costs more than the exclusive or.
                    while column != 0 {
                        let r = column.trailing_zeros() as usize;
                        column &= column - 1;
                        let to = &mut to[r * part..][..part];
                        to.iter_mut().zip(from).for_each(|(to, from)| *to ^= from);
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
