//! Recovery on bytes: rows of symbols in an arena whose size is that of the wave, not of the
//! object.
//!
//! Each value of the [`Wave`] has a slot while it is needed. Steps are recorded as a program of
//! sums. After each batch of rows the program runs, in narrow stripes, and released columns are
//! copied out. Only then are slots freed, because recorded steps may read them.

use super::code::WindowCode;
use super::matrix::Matrix;
use super::wave::{Name, Steps, Wave};
use fontana_fec::Scratch;
use fontana_fec::study::{Stripes, XorProgram};

/// Batches in a window: long enough that running a program costs more than starting it, short
/// against the windows that must be kept anyway.
const BATCHES: u32 = 4;

/// Slots that an arena has to begin with, in windows: it doubles if need be.
const WINDOWS: usize = 8;

/// No slot.
const NONE: u32 = u32::MAX;

/// The result of a recovery.
pub(super) struct Recovered {
    /// The columns' symbols, one after the other.
    pub(super) columns: Vec<u8>,
    /// The most rows that the arena held.
    pub(super) slots: usize,
    /// Rows that were read, for each column.
    pub(super) reads: f64,
}

/// Recovers an object from the symbols `esis`, of `size` bytes each, that are in `received`, into
/// `columns`, which is cleared. `None` if they do not suffice.
pub(super) fn recover(
    line: &WindowCode,
    esis: &[u32],
    received: &[u8],
    size: usize,
    delay: u32,
    mut columns: Vec<u8>,
) -> Option<Recovered> {
    columns.resize(line.columns() as usize * size, 0);
    let matrix = Matrix::new(line, esis);
    let arena = Arena {
        matrix: &matrix,
        received,
        size,
        columns,
        stripes: Stripes::new(Scratch::default(), WINDOWS * line.window() as usize, size),
        program: XorProgram::default(),
        of_columns: vec![NONE; line.columns() as usize],
        of_pivots: vec![NONE; line.columns() as usize],
        of_equations: Vec::new(),
        used: 0,
        free: Vec::new(),
        given_back: Vec::new(),
        released: Vec::new(),
        reads: 0,
        is_inactive: vec![false; line.columns() as usize],
    };
    let mut wave = Wave::new(line, &matrix, delay, arena);
    let rows = matrix.rows() as u32;
    let batch = line.window().div_ceil(BATCHES);
    let (mut freed, mut forgotten) = (0, 0);
    for start in (0..rows).step_by(batch as usize) {
        wave.admit(start..rows.min(start + batch));
        wave.steps().run();
        // Rows reach a window back from the first column that is not known.
        let end = wave.known_before().saturating_sub(line.window());
        let ages = wave.forgotten().to_vec();
        let arena = wave.steps();
        for column in freed..end {
            // To inactive columns rows from farther away may refer.
            if !arena.is_inactive[column as usize] {
                arena.give_back(Name::Value(column));
            }
        }
        freed = freed.max(end);
        let place = |column: u32| {
            if column < line.lt_columns() { column } else { line.place(column) }
        };
        // Whole words are kept in mind, so fewer may be forgotten than were before.
        let old = ages
            .get(forgotten..)
            .unwrap_or_default()
            .iter()
            .take_while(|&&column| place(column) < freed);
        forgotten += old.inspect(|&&column| arena.give_back(Name::Value(column))).count();
    }
    let lack = wave.finish();
    let arena = wave.steps();
    arena.run();
    let reads = arena.reads as f64 / f64::from(line.columns());
    let columns = std::mem::take(&mut arena.columns);
    (lack == 0).then_some(Recovered { columns, slots: arena.used, reads })
}

/// The values there are, as rows of bytes.
struct Arena<'a> {
    matrix: &'a Matrix,
    received: &'a [u8],
    /// Bytes of a symbol.
    size: usize,
    columns: Vec<u8>,
    stripes: Stripes,
    /// What is to be done next.
    program: XorProgram,
    /// The slot of each value that has one.
    of_columns: Vec<u32>,
    of_pivots: Vec<u32>,
    of_equations: Vec<u32>,
    is_inactive: Vec<bool>,
    /// Slots that were ever used, which are the first ones.
    used: usize,
    free: Vec<u32>,
    /// Free once the program has run.
    given_back: Vec<u32>,
    /// Columns whose symbols are there once the program has run.
    released: Vec<u32>,
    reads: u64,
}

impl Arena<'_> {
    fn slot_of(&mut self, name: Name) -> &mut u32 {
        match name {
            Name::Value(column) => &mut self.of_columns[column as usize],
            Name::Pivot(column) => &mut self.of_pivots[column as usize],
            Name::Equation(age) => {
                if age as usize >= self.of_equations.len() {
                    self.of_equations.resize(age as usize + 1, NONE);
                }
                &mut self.of_equations[age as usize]
            }
        }
    }

    /// A slot for a value that has none.
    fn take(&mut self, name: Name) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            if self.used == self.stripes.rows() {
                self.grow();
            }
            self.used += 1;
            self.used as u32 - 1
        });
        *self.slot_of(name) = slot;
        slot
    }

    fn give_back(&mut self, name: Name) {
        let slot = std::mem::replace(self.slot_of(name), NONE);
        if slot != NONE {
            self.given_back.push(slot);
        }
    }

    fn grow(&mut self) {
        let mut larger = Stripes::new(Scratch::default(), 2 * self.stripes.rows(), self.size);
        let mut symbol = vec![0; self.size];
        for row in 0..self.used {
            self.stripes.read_row(row, &mut symbol);
            larger.write_row(row, &symbol);
        }
        self.stripes = larger;
    }

    /// A slot for the value `name` that holds the symbol of `row`; `None` of a constraint.
    fn load(&mut self, name: Name, row: u32) -> Option<u32> {
        let index = self.matrix.symbol(row)? as usize;
        let slot = self.take(name);
        let symbol = &self.received[index * self.size..][..self.size];
        self.stripes.write_row(slot as usize, symbol);
        Some(slot)
    }

    /// Writes down that slot `sum` becomes the sum of slot `own`, if any, and of `terms`.
    fn add_step(&mut self, sum: u32, own: Option<u32>, terms: &[Name]) {
        self.reads += terms.len() as u64 + u64::from(own.is_some());
        let (columns, pivots, equations) = (&self.of_columns, &self.of_pivots, &self.of_equations);
        let slots = terms.iter().map(|&term| match term {
            Name::Value(column) => columns[column as usize],
            Name::Pivot(column) => pivots[column as usize],
            Name::Equation(age) => equations[age as usize],
        });
        self.program.set_slot(sum, own.into_iter().chain(slots));
    }

    /// Runs the program and reads out what has been released.
    fn run(&mut self) {
        self.program.execute(&mut self.stripes);
        self.program.clear();
        for column in self.released.drain(..) {
            let symbol = &mut self.columns[column as usize * self.size..][..self.size];
            self.stripes.read_row(self.of_columns[column as usize] as usize, symbol);
        }
        self.free.append(&mut self.given_back);
    }
}

impl Steps for Arena<'_> {
    fn sum(&mut self, sum: Name, row: u32, terms: &[Name]) {
        match sum {
            // The symbol stays where the column's value will be.
            Name::Pivot(column) => {
                let own = self.load(Name::Value(column), row);
                let slot = self.take(sum);
                self.add_step(slot, own, terms);
            }
            Name::Value(column) => {
                let here = Some(self.of_columns[column as usize]).filter(|&slot| slot != NONE);
                let own = here.or_else(|| self.load(sum, row));
                let slot = own.unwrap_or_else(|| self.take(sum));
                self.add_step(slot, own, terms);
                self.released.push(column);
            }
            Name::Equation(_) => {
                let own = self.load(sum, row);
                let slot = own.unwrap_or_else(|| self.take(sum));
                self.add_step(slot, own, terms);
            }
        }
    }

    fn sum_of_values(&mut self, column: u32, terms: &[Name]) {
        let slot = self.take(Name::Value(column));
        self.is_inactive[column as usize] = true;
        self.add_step(slot, None, terms);
        self.released.push(column);
    }

    fn forget(&mut self, name: Name) {
        self.give_back(name);
    }
}
