//! Lists of numbers, stored one after another (compressed sparse rows).

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// A sequence of lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lists {
    items: Vec<u32>,
    /// The start of each list, and the end of the last one.
    starts: Vec<u32>,
}

impl Default for Lists {
    fn default() -> Self {
        Self::with_capacity(0, 0)
    }
}

impl Lists {
    pub(crate) fn with_capacity(lists: usize, items: usize) -> Self {
        let mut starts = Vec::with_capacity(lists + 1);
        starts.push(0);
        Self { items: Vec::with_capacity(items), starts }
    }

    /// For each of `values`, the lists that contain it, ascending. Values outside the range are
    /// skipped.
    pub(crate) fn transposed(&self, values: Range<u32>) -> Self {
        let place = |value: u32| value.checked_sub(values.start).filter(|_| value < values.end);
        let mut starts = vec![0_u32; values.len() + 1];
        for value in self.items.iter().filter_map(|&value| place(value)) {
            starts[value as usize + 1] += 1;
        }
        for i in 0..values.len() {
            starts[i + 1] += starts[i];
        }
        let mut ends = starts.clone();
        let mut items = vec![0; starts[values.len()] as usize];
        for (index, list) in (0..).zip(self.iter()) {
            for value in list.iter().filter_map(|&value| place(value)) {
                let end = &mut ends[value as usize];
                items[*end as usize] = index;
                *end += 1;
            }
        }
        Self { items, starts }
    }

    pub(crate) fn push(&mut self, list: impl IntoIterator<Item = u32>) {
        self.items.extend(list);
        self.starts.push(self.items.len() as u32);
    }

    /// Adds a list of the items that `append` appends.
    pub(crate) fn push_with(&mut self, append: impl FnOnce(&mut Vec<u32>)) {
        append(&mut self.items);
        self.starts.push(self.items.len() as u32);
    }

    /// The same lists with each number replaced.
    pub(crate) fn map(mut self, replace: impl Fn(u32) -> u32) -> Self {
        self.items.iter_mut().for_each(|item| *item = replace(*item));
        self
    }

    /// The number of lists.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Numbers in all lists.
    pub(crate) fn total(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.starts.windows(2).map(|ends| &self.items[ends[0] as usize..ends[1] as usize])
    }

    #[inline]
    pub(crate) fn list(&self, index: usize) -> &[u32] {
        &self.items[self.starts[index] as usize..self.starts[index + 1] as usize]
    }
}
