//! Loading of symbols into stripes.
//!
//! A symbol is contiguous, and is copied into as many places as there are stripes. The cost is
//! memory latency on both sides, and the processor has a limited number of loads and stores in
//! flight. So several symbols, or references to them, are collected and then copied together. The
//! next reads are known and prefetched, and large blocks are written past the caches.

use super::Stripes;
use crate::bytes::kernel::{InstructionSet, Lane, LaneKernel};
use crate::bytes::line::{LINE, Line};
use crate::ids::Esi;
use alloc::vec::Vec;
use core::convert::Infallible;

/// Symbols of `width` bytes that are collected. 16 of 1 280 bytes leave a third of a first-level
/// cache (32 KB at least) to the bytes they are copied from. If a symbol is one stripe wide, four
/// times as many are collected: measured, with 16 of those, fetched two ahead, decoding a large
/// block by stripe takes a tenth longer.
fn at_once(width: usize) -> usize {
    (16 * 1280 / width.max(1)).clamp(16, 64)
}

/// Symbols between a fetch and its copy: about 2 500 bytes.
fn ahead(width: usize) -> usize {
    at_once(width) / 8
}

/// Bytes that loading allocates, for `count` symbols of `width` bytes.
pub(crate) fn memory(count: usize, width: usize) -> usize {
    count.min(at_once(width)) * width
}

/// A source of the bytes of symbols: a closure that reads one, or [`Lent`] symbols.
pub trait SymbolSource<'s> {
    /// The reason why a symbol cannot be read.
    type Error;

    /// Writes symbol `esi`, or the requested slice of it, to `out`, which is filled with zeros.
    ///
    /// # Errors
    /// The symbol cannot be read.
    fn read(&mut self, esi: Esi, out: &mut [u8]) -> Result<(), Self::Error>;

    /// Symbol `esi` in memory, which avoids a copy; zeros are added if it is too short. `None` if
    /// it has to be [`read`](Self::read).
    fn lend(&self, _esi: Esi) -> Option<&'s [u8]> {
        None
    }
}

impl<E, F: FnMut(Esi, &mut [u8]) -> Result<(), E>> SymbolSource<'_> for F {
    type Error = E;

    fn read(&mut self, esi: Esi, out: &mut [u8]) -> Result<(), E> {
        self(esi, out)
    }
}

/// Symbols in memory, which the closure returns by ESI.
pub struct Lent<F>(pub F);

impl<'s, F: Fn(Esi) -> &'s [u8]> SymbolSource<'s> for Lent<F> {
    type Error = Infallible;

    fn read(&mut self, esi: Esi, out: &mut [u8]) -> Result<(), Infallible> {
        out.iter_mut().zip((self.0)(esi)).for_each(|(out, &byte)| *out = byte);
        Ok(())
    }

    fn lend(&self, esi: Esi) -> Option<&'s [u8]> {
        Some((self.0)(esi))
    }
}

/// A [`SymbolSource`] of any type.
pub(crate) trait Load {
    /// Loads the symbols with these ESIs into these rows, and zeros where there is no ESI.
    fn load(
        &mut self,
        instructions: InstructionSet,
        symbols: &mut Stripes,
        rows: &mut dyn Iterator<Item = (Option<Esi>, usize)>,
    ) -> Result<(), LoadError>;

    /// Writes symbol `esi` over zeros.
    fn read(&mut self, esi: Esi, out: &mut [u8]) -> Result<(), LoadError>;
}

/// The source has failed; the [`Loader`] stores its error.
#[derive(Debug)]
pub(crate) struct LoadError(());

/// A source and its error.
pub(crate) struct Loader<'s, S: SymbolSource<'s>> {
    source: S,
    error: Option<S::Error>,
}

impl<'s, S: SymbolSource<'s>> Loader<'s, S> {
    pub(crate) fn new(source: S) -> Self {
        Self { source, error: None }
    }

    /// Returns the error of the source.
    pub(crate) fn error(self, _: LoadError) -> S::Error {
        match self.error {
            Some(error) => error,
            None => unreachable!("a `LoadError` is made beside the error"),
        }
    }

    fn note(&mut self, result: Result<(), S::Error>) -> Result<(), LoadError> {
        result.map_err(|error| {
            self.error = Some(error);
            LoadError(())
        })
    }
}

impl<'s, S: SymbolSource<'s>> Load for Loader<'s, S> {
    fn load(
        &mut self,
        instructions: InstructionSet,
        symbols: &mut Stripes,
        rows: &mut dyn Iterator<Item = (Option<Esi>, usize)>,
    ) -> Result<(), LoadError> {
        let loaded = load(instructions, symbols, rows, &mut self.source);
        self.note(loaded)
    }

    fn read(&mut self, esi: Esi, out: &mut [u8]) -> Result<(), LoadError> {
        let read = self.source.read(esi, out);
        self.note(read)
    }
}

/// Loads the symbols of `source` with these ESIs into these rows, and zeros where there is no ESI.
///
/// # Errors
/// The first error of `source`.
fn load<'s, S: SymbolSource<'s>>(
    instructions: InstructionSet,
    symbols: &mut Stripes,
    rows: impl Iterator<Item = (Option<Esi>, usize)>,
    source: &mut S,
) -> Result<(), S::Error> {
    let most = at_once(symbols.width());
    let at_once = rows.size_hint().1.map_or(most, |count| count.clamp(1, most));
    let (collected, lent, waiting) = (Vec::new(), Vec::new(), Vec::with_capacity(at_once));
    let stripes =
        (0..symbols.count()).map(|index| (symbols.range(index).start, symbols.lines(index)));
    let stripes = stripes.collect();
    let mut loading =
        Loading { instructions, symbols, stripes, at_once, collected, lent, rows: waiting };
    for (esi, row) in rows {
        match esi.map(|esi| (esi, source.lend(esi))) {
            Some((_, Some(symbol))) => loading.lend(row, symbol),
            Some((esi, None)) => loading.write(row, |out| source.read(esi, out))?,
            None => loading.lend(row, &[]),
        }
    }
    loading.flush();
    Ok(())
}

/// The state of [`load`].
struct Loading<'a, 's> {
    instructions: InstructionSet,
    symbols: &'a mut Stripes,
    /// For each stripe its start, and the lines of a row in it. Looked up once, because this would
    /// dominate the time to load a small block.
    stripes: Vec<(usize, usize)>,
    /// Symbols that are collected before they are copied.
    at_once: usize,
    /// Symbols that are not yet in their rows: their bytes, or references to them.
    collected: Vec<u8>,
    lent: Vec<&'s [u8]>,
    /// The rows of the symbols in `collected` or `lent`.
    rows: Vec<u32>,
}

impl<'s> Loading<'_, 's> {
    /// Collects for row `row` the bytes that `write` writes, over zeros.
    fn write<E>(
        &mut self,
        row: usize,
        write: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.rows.len() == self.at_once || !self.lent.is_empty() {
            self.flush();
        }
        let (start, width) = (self.collected.len(), self.symbols.width());
        if start == 0 {
            self.collected.reserve_exact(self.at_once * width);
        }
        self.collected.resize(start + width, 0);
        write(&mut self.collected[start..])?;
        self.rows.push(row as u32);
        Ok(())
    }

    /// Collects `symbol` for row `row`; zeros are added if it is shorter.
    fn lend(&mut self, row: usize, symbol: &'s [u8]) {
        if self.rows.len() == self.at_once || !self.collected.is_empty() {
            self.flush();
        }
        self.lent.push(symbol.get(..self.symbols.width()).unwrap_or(symbol));
        self.rows.push(row as u32);
    }

    /// Copies the collected symbols into their rows.
    fn flush(&mut self) {
        let width = self.symbols.width().max(1);
        let ahead = ahead(width);
        let past_caches = Stripes::is_large(self.symbols.rows(), width);
        let (rows, stripes, to) = (&self.rows, &self.stripes, &mut self.symbols.scratch.lines);
        if self.lent.is_empty() {
            let from = self.collected.chunks_exact(width);
            self.instructions.run(CopyIn { from, rows, stripes, to, ahead, past_caches });
        } else {
            let from = self.lent.iter().copied();
            self.instructions.run(CopyIn { from, rows, stripes, to, ahead, past_caches });
        }
        self.collected.clear();
        self.lent.clear();
        self.rows.clear();
    }
}

/// Copies symbols into rows.
struct CopyIn<'a, F> {
    from: F,
    /// The row of each symbol.
    rows: &'a [u32],
    /// For each stripe its start, and the lines of a row in it.
    stripes: &'a [(usize, usize)],
    to: &'a mut [Line],
    /// Symbols between a fetch and its copy.
    ahead: usize,
    past_caches: bool,
}

impl<'s, F: Iterator<Item = &'s [u8]> + Clone> LaneKernel for CopyIn<'_, F> {
    #[inline(always)]
    fn run<V: Lane>(self) {
        let Self { stripes, to, past_caches, .. } = self;
        let mut ahead = self.from.clone().skip(self.ahead);
        for (symbol, &row) in self.from.zip(self.rows) {
            ahead.next().unwrap_or_default().as_chunks().0.iter().for_each(V::prefetch);
            let (mut lines, mut rest) = symbol.as_chunks::<LINE>();
            for &(start, count) in stripes {
                let to = &mut to[start + row as usize * count..][..count];
                let (here, after) = lines.split_at(lines.len().min(to.len()));
                lines = after;
                for (line, to) in here.iter().zip(&mut *to) {
                    let line = V::load(line);
                    if past_caches { line.stream(to) } else { line.store(&mut to.0) }
                }
                for to in &mut to[here.len()..] {
                    *to = Line::ZERO;
                    to.0[..rest.len()].copy_from_slice(rest);
                    rest = &[];
                }
            }
        }
        if past_caches {
            V::fence();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::stripes::Scratch;

    /// Bytes without a period that is a power of two.
    fn symbol(esi: u32, width: usize) -> Vec<u8> {
        (0..width).map(|at| (esi as usize * 31 + at * 7 + at / 50) as u8).collect()
    }

    /// The contents of row `row`, read into a buffer that is not zero.
    fn row(symbols: &Stripes, row: usize) -> Vec<u8> {
        let mut out = vec![0xAA; symbols.width()];
        symbols.read_row(row, &mut out);
        out
    }

    /// Rows that are not zero.
    fn used(rows: usize, width: usize) -> Stripes {
        let mut symbols = Stripes::new(Scratch::default(), rows, width);
        (0..rows).for_each(|row| symbols.write_row(row, &vec![0x55; width]));
        symbols
    }

    #[test]
    fn symbols_arrive_in_their_rows_whether_written_or_lent() {
        assert_eq!([320, 1280].map(at_once), [64, 16], "both ends of each are tried");
        for count in [0, 1, 15, 16, 17, 63, 64, 65, 192] {
            for width in [0, 1, 63, 64, 65, 320, 321, 1280, 1401] {
                // From the last row to the first; every fifth one without a symbol.
                let esi = |row: usize| (row % 5 != 3).then_some(Esi(row as u32));
                let rows = || (0..count).rev().map(|row| (esi(row), row));
                let sent: Vec<Vec<u8>> = (0..count as u32).map(|esi| symbol(esi, width)).collect();
                for instructions in InstructionSet::available() {
                    let (mut written, mut lent) = (used(count, width), used(count, width));
                    let mut write = |esi: Esi, out: &mut [u8]| {
                        assert!(out.iter().all(|&byte| byte == 0), "zeros to write over");
                        out.copy_from_slice(&sent[esi.0 as usize]);
                        Ok::<_, Infallible>(())
                    };
                    let Ok(()) = load(instructions, &mut written, rows(), &mut write);
                    let mut lent_symbols = Lent(|esi: Esi| sent[esi.0 as usize].as_slice());
                    let Ok(()) = load(instructions, &mut lent, rows(), &mut lent_symbols);
                    for (at, sent) in sent.iter().enumerate() {
                        let zeros = vec![0; width];
                        let expected = if at % 5 == 3 { &zeros } else { sent };
                        assert!(row(&written, at) == *expected, "{instructions:?}, {width}");
                        assert!(row(&lent, at) == *expected, "{instructions:?}, {width}");
                    }
                }
            }
        }
    }

    #[test]
    fn lent_symbols_may_be_shorter_than_rows_or_longer() {
        let sent = symbol(1, 2000);
        for instructions in InstructionSet::available() {
            for length in [0, 1, 64, 700, 1279, 1280, 1281, 2000] {
                let mut symbols = used(1, 1280);
                let mut lent_symbols = Lent(|_| &sent[..length]);
                let rows = std::iter::once((Some(Esi(1)), 0));
                let Ok(()) = load(instructions, &mut symbols, rows, &mut lent_symbols);
                let mut expected = sent[..length.min(1280)].to_vec();
                expected.resize(1280, 0);
                assert!(row(&symbols, 0) == expected, "{instructions:?}: {length} bytes");
            }
        }
    }

    #[test]
    fn rows_written_past_the_caches_hold_the_same() {
        let width = 16 * LINE + 1;
        for instructions in InstructionSet::available() {
            let mut symbols = Stripes::new(Scratch::default(), 9_000, width);
            assert!(Stripes::is_large(9_000, width));
            let sent: Vec<Vec<u8>> = (0..40).map(|esi| symbol(esi, width)).collect();
            let mut lent_symbols = Lent(|esi: Esi| sent[esi.0 as usize].as_slice());
            let rows = (0..40).map(|esi| (Some(Esi(esi)), esi as usize * 200));
            let Ok(()) = load(instructions, &mut symbols, rows, &mut lent_symbols);
            for (at, sent) in sent.iter().enumerate() {
                assert!(row(&symbols, at * 200) == *sent, "{instructions:?}");
            }
        }
    }
}
