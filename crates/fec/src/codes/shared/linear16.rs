//! The Cauchy code over GF(2^16) on bytes.
//!
//! The matrix of factors is never stored: it would be `k l` elements, 2 GB for the longest blocks.
//! A factor follows from the points and the weights of one available and one requested symbol
//! (`reed_solomon`), with two look-ups of a logarithm and one of a power.

use crate::bytes::kernel::{InstructionSet, MultiplyWide, WIDE_ROW};
use crate::bytes::octets::OctetRows;
use crate::bytes::stripes::loading::LoadError;
use crate::bytes::stripes::{Scratch, Stripes};
use crate::decode::Work;
use crate::field::gf65536::{Field, LOG_PRODUCTS_WORK, ORDER, field};
use crate::ids::Esi;
use crate::plan::{Plan, PlanIds, Program, Rows, Run, Weighted};
use alloc::vec;
use alloc::vec::Vec;

/// Symbols that are encoded at a time, so that they stay in the second-level cache while their
/// planes are joined.
const ENCODED_AT_ONCE: usize = 64;

/// Recovers the source symbols of a block, and computes encoding symbols from them.
pub(crate) struct Linear16 {
    source_symbols: u32,
    encoding_symbols: u32,
    /// Source symbols that are replaced by repair symbols, ascending.
    lost: Vec<u32>,
    /// The points of the symbols in all rows, and the logarithms of the inverses of their weights.
    available: Vec<(u16, u16)>,
    /// The points of the lost symbols, and the logarithms of their weights.
    targets: Vec<(u16, u16)>,
}

impl Linear16 {
    /// The plan that reads `inputs`: all source symbols but `lost`, ascending, and as many repair
    /// symbols, of a code of `encoding_symbols`.
    pub(crate) fn plan(
        source_symbols: u32,
        encoding_symbols: u32,
        inputs: Vec<Esi>,
        lost: Vec<u32>,
        repair: &[u32],
    ) -> Plan {
        let lost_esis = lost.iter().copied().map(Esi).collect();
        let ids = PlanIds { source_symbols, inputs, lost: lost_esis };
        Plan::new(ids, Self::new(source_symbols, encoding_symbols, lost, repair))
    }

    fn new(source_symbols: u32, encoding_symbols: u32, lost: Vec<u32>, repair: &[u32]) -> Self {
        let mut esis: Vec<u32> = (0..source_symbols).collect();
        for (&lost, &repair) in lost.iter().zip(repair) {
            esis[lost as usize] = repair;
        }
        let log_weight = log_weights(source_symbols, &lost, repair);
        let targets = lost.iter().map(|&esi| (esi as u16, log_weight(esi) as u16)).collect();
        let inverse = |esi| ((ORDER - log_weight(esi)) % ORDER) as u16;
        let available = esis.into_iter().map(|esi| (esi as u16, inverse(esi))).collect();
        drop(log_weight);
        Self { source_symbols, encoding_symbols, lost, available, targets }
    }

    /// Steps of [`plan`](Self::plan).
    pub(crate) fn work(source_symbols: u32, lost: usize) -> Work {
        let directly = weights_work(source_symbols, lost);
        Work(u64::from(source_symbols) + directly.min(LOG_PRODUCTS_WORK))
    }

    /// The rows of the inputs, in the order of their ESIs: source symbols first.
    fn input_rows(&self) -> impl Iterator<Item = usize> {
        let own = |row: &u32| self.lost.binary_search(row).is_err();
        let rows = (0..self.source_symbols).filter(own).chain(self.lost.iter().copied());
        rows.map(|row| row as usize)
    }

    /// Computes the source symbol of each row that holds another symbol.
    fn run(&self, instructions: InstructionSet, symbols: &mut Stripes) {
        if self.lost.is_empty() {
            return;
        }
        let field = field();
        let mut recovered = planes(Scratch::default(), self.lost.len(), 2 * symbols.width());
        let factor = |output: usize, input: usize| {
            let (point, inverse) = self.available[input];
            let (target, weight) = self.targets[output];
            let quotient = (u32::from(weight) + u32::from(inverse)) % ORDER;
            field.alpha_power(quotient + ORDER - field.log(point ^ target))
        };
        let outputs = &mut recovered;
        instructions.run(MultiplyWide { field, factor, inputs: symbols, outputs });
        for (from, &to) in self.lost.iter().enumerate() {
            for plane in 0..2 {
                symbols.copy_row(2 * to as usize + plane, &recovered, 2 * from + plane);
            }
        }
    }
}

impl Program for Linear16 {
    /// All symbols, the lost ones once more, and one that is being read.
    fn memory(&self, _ids: &PlanIds, width: usize) -> usize {
        (self.source_symbols as usize + self.lost.len()) * 2 * plane(width) + width
    }

    fn execute(&self, ids: &PlanIds, run: Run<'_>) -> Result<Stripes, LoadError> {
        let Run { instructions, width, scratch, source } = run;
        let mut symbols = planes(scratch, self.source_symbols as usize, width);
        let mut symbol = vec![0; width];
        for (&esi, row) in ids.inputs.iter().zip(self.input_rows()) {
            symbol.fill(0);
            source.read(esi, &mut symbol)?;
            write_symbol(&mut symbols, row, &symbol);
        }
        self.run(instructions, &mut symbols);
        Ok(symbols)
    }

    fn write_symbols(&self, _ids: &PlanIds, symbols: Rows<'_>, esis: &[Esi], out: &mut [u8]) {
        let Rows { instructions, width, symbols } = symbols;
        let repair = self.source_symbols..self.encoding_symbols;
        for (esis, out) in
            esis.chunks(ENCODED_AT_ONCE).zip(out.chunks_mut((ENCODED_AT_ONCE * width).max(1)))
        {
            let points: Vec<u16> =
                esis.iter().filter(|esi| repair.contains(&esi.0)).map(|esi| esi.0 as u16).collect();
            let mut encoded = planes(Scratch::default(), points.len(), width);
            let (field, outputs) = (field(), &mut encoded);
            let factor = |output: usize, input: usize| {
                field.alpha_power(ORDER - field.log(points[output] ^ input as u16))
            };
            instructions.run(MultiplyWide { field, factor, inputs: symbols, outputs });
            let mut next = 0;
            for (esi, out) in esis.iter().zip(out.chunks_exact_mut(width.max(1))) {
                if esi.0 < self.source_symbols {
                    read_symbol(symbols, esi.0 as usize, out);
                } else if repair.contains(&esi.0) {
                    read_symbol(&encoded, next, out);
                    next += 1;
                } else {
                    out.fill(0);
                }
            }
        }
    }

    fn contributions(&self, _ids: &PlanIds, _sums: Weighted<'_>) -> Option<OctetRows> {
        None
    }
}

/// Splits a symbol into its planes.
fn write_symbol(symbols: &mut Stripes, row: usize, bytes: &[u8]) {
    let (mut upper, mut lower) = (vec![0; symbols.width()], vec![0; symbols.width()]);
    let (pairs, rest) = bytes.as_chunks::<2>();
    for ((upper, lower), pair) in upper.iter_mut().zip(&mut lower).zip(pairs) {
        [*upper, *lower] = *pair;
    }
    // An odd number of columns ends with half an element: see [`Plan`].
    if let ([byte], Some(upper)) = (rest, upper.get_mut(pairs.len())) {
        *upper = *byte;
    }
    symbols.write_row(2 * row, &upper);
    symbols.write_row(2 * row + 1, &lower);
}

/// The inverse of [`write_symbol`].
fn read_symbol(symbols: &Stripes, row: usize, out: &mut [u8]) {
    let (mut upper, mut lower) = (vec![0; symbols.width()], vec![0; symbols.width()]);
    symbols.read_row(2 * row, &mut upper);
    symbols.read_row(2 * row + 1, &mut lower);
    let (pairs, rest) = out.as_chunks_mut::<2>();
    for (pair, (&upper, &lower)) in pairs.iter_mut().zip(upper.iter().zip(&lower)) {
        *pair = [upper, lower];
    }
    if let ([byte], Some(&upper)) = (rest, upper.get(pairs.len())) {
        *byte = upper;
    }
}

/// Bytes of a plane of symbols of `width` bytes.
fn plane(width: usize) -> usize {
    width.div_ceil(2).next_multiple_of(WIDE_ROW)
}

/// Two rows for each of `count` symbols of `width` bytes.
fn planes(scratch: Scratch, count: usize, width: usize) -> Stripes {
    Stripes::narrow(scratch, 2 * count, plane(width), WIDE_ROW / crate::bytes::line::LINE)
}

/// Logarithms that are looked up if the weights are summed symbol by symbol.
fn weights_work(source_symbols: u32, lost: usize) -> u64 {
    (u64::from(source_symbols) + lost as u64) * 2 * lost as u64
}

/// The logarithms of the weights. Of a Cauchy code, a weight is the product of the distances to the
/// available repair symbols, divided by the product of those to the lost symbols.
fn log_weights(source_symbols: u32, lost: &[u32], repair: &[u32]) -> impl Fn(u32) -> u32 {
    let field = field();
    let all = (weights_work(source_symbols, lost.len()) > LOG_PRODUCTS_WORK)
        .then(|| field.log_products(repair, lost));
    move |esi| match &all {
        Some(all) => all.get(esi as usize).copied().unwrap_or(0),
        None => sum_of_logs(field, esi, repair, lost),
    }
}

/// At most 65 535 logarithms below 65 535 each way.
fn sum_of_logs(field: &Field, esi: u32, factors: &[u32], divisors: &[u32]) -> u32 {
    let sum = |points: &[u32]| -> u64 {
        points.iter().map(|&point| u64::from(field.log((point ^ esi) as u16))).sum()
    };
    let order = u64::from(ORDER);
    ((sum(factors) + order - sum(divisors) % order) % order) as u32
}
