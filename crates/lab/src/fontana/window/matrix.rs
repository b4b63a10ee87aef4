//! The rows that were received, and the constraints, in the order of their reach.

use super::code::WindowCode;

/// Rows and columns of a sparse binary matrix.
pub(super) struct Matrix {
    rows: Lists,
    /// For each LT column its rows.
    columns: Lists,
    reaches: Vec<u32>,
    /// For each row which of the received symbols it is of; `None` of a constraint.
    symbols: Vec<Option<u32>>,
}

impl Matrix {
    /// The rows of encoding symbols `esis`, in whatever order they came, and the constraints.
    pub(super) fn new(line: &WindowCode, esis: &[u32]) -> Self {
        let mut order: Vec<(u32, bool, u32)> =
            (0..).zip(esis).map(|(index, &esi)| (line.columns_of(esi).end, true, index)).collect();
        let constraints = line.constraint_rows();
        order.extend(
            (0..)
                .zip(&constraints)
                .map(|(index, row)| (row.iter().max().map_or(0, |last| last + 1), false, index)),
        );
        order.sort_unstable();
        let mut rows = Lists::default();
        let mut row = Vec::new();
        for &(_, received, number) in &order {
            if received {
                line.row(esis[number as usize], &mut row);
                rows.push(&row);
            } else {
                rows.push(&constraints[number as usize]);
            }
        }
        let columns = rows.transposed(line.lt_columns());
        let reaches = order.iter().map(|&(reach, _, _)| reach).collect();
        let symbols = order.iter().map(|&(_, received, index)| received.then_some(index)).collect();
        Self { rows, columns, reaches, symbols }
    }

    /// How many rows there are.
    pub(super) fn rows(&self) -> usize {
        self.reaches.len()
    }

    /// The columns of a row.
    pub(super) fn row(&self, row: u32) -> &[u32] {
        self.rows.list(row)
    }

    /// The rows of an LT column; a permanent column has none here.
    pub(super) fn rows_of(&self, column: u32) -> &[u32] {
        self.columns.list(column)
    }

    /// The far end of a row's window.
    pub(super) fn reach(&self, row: u32) -> u32 {
        self.reaches[row as usize]
    }

    /// Which of the received symbols a row is of; `None` if its columns sum to zero.
    pub(super) fn symbol(&self, row: u32) -> Option<u32> {
        self.symbols[row as usize]
    }
}

/// Lists of numbers, one after the other.
struct Lists {
    ends: Vec<u32>,
    items: Vec<u32>,
}

impl Default for Lists {
    fn default() -> Self {
        Self { ends: vec![0], items: Vec::new() }
    }
}

impl Lists {
    fn push(&mut self, items: &[u32]) {
        self.items.extend_from_slice(items);
        self.ends.push(self.items.len() as u32);
    }

    fn list(&self, index: u32) -> &[u32] {
        let index = index as usize;
        &self.items[self.ends[index] as usize..self.ends[index + 1] as usize]
    }

    /// For each number below `count` the lists that it is in, ascending.
    fn transposed(&self, count: u32) -> Self {
        let mut ends = vec![0; count as usize + 1];
        for &item in self.items.iter().filter(|&&item| item < count) {
            ends[item as usize + 1] += 1;
        }
        for index in 1..ends.len() {
            ends[index] += ends[index - 1];
        }
        let mut next = ends.clone();
        let mut items = vec![0; ends.last().map_or(0, |&end| end as usize)];
        for (list, pair) in (0..).zip(self.ends.windows(2)) {
            for &item in &self.items[pair[0] as usize..pair[1] as usize] {
                if let Some(place) = next.get_mut(item as usize).filter(|_| item < count) {
                    items[*place as usize] = list;
                    *place += 1;
                }
            }
        }
        Self { ends, items }
    }
}
