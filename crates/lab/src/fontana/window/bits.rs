//! Sets of inactive columns, 64 to a word, where only those of a certain age occur.

/// Inactive columns by age: words of a common memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    /// Where they are.
    start: u32,
    /// How many words.
    words: u32,
    /// What the first word holds: ages from 64 times this on.
    pub(super) base: u32,
    /// The youngest column that was ever among the terms.
    pub(super) youngest: u32,
}

/// Bits that are being added up.
#[derive(Default)]
pub(super) struct Sum {
    base: u32,
    words: Vec<u64>,
    pub(super) youngest: Option<u32>,
}

impl Sum {
    pub(super) fn clear(&mut self, base: u32) {
        self.base = base;
        self.words.clear();
        self.youngest = None;
    }

    pub(super) fn flip(&mut self, age: u32) {
        self.cover(age / 64, 1);
        self.words[(age / 64 - self.base) as usize] ^= 1 << (age % 64);
        self.youngest = self.youngest.max(Some(age));
    }

    pub(super) fn add(&mut self, bits: Bits, all: &[u64]) {
        self.cover(bits.base, bits.words);
        let from = &all[bits.start as usize..][..bits.words as usize];
        let to = &mut self.words[(bits.base - self.base) as usize..];
        to.iter_mut().zip(from).for_each(|(to, from)| *to ^= from);
        self.youngest = self.youngest.max(Some(bits.youngest));
    }

    /// Makes room for these words.
    pub(super) fn cover(&mut self, base: u32, words: u32) {
        if base < self.base {
            let missing = (self.base - base) as usize;
            self.words.splice(..0, std::iter::repeat_n(0, missing));
            self.base = base;
        }
        let end = (base + words - self.base) as usize;
        if end > self.words.len() {
            self.words.resize(end, 0);
        }
    }

    /// The youngest column whose bit is set, if it is `from` or younger.
    pub(super) fn leader(&mut self, from: u32) -> Option<u32> {
        while self.words.pop_if(|word| *word == 0).is_some() {}
        let last = self.words.last()?;
        let age = (self.base + self.words.len() as u32) * 64 - 1 - last.leading_zeros();
        (age >= from).then_some(age)
    }

    /// Clears the bits of columns older than `until` and calls `visit` with each.
    pub(super) fn take(&mut self, until: u32, mut visit: impl FnMut(u32)) {
        for (base, word) in (self.base..).zip(&mut self.words) {
            let here = until.saturating_sub(base * 64).min(64);
            if here == 0 {
                break;
            }
            let mask = u64::MAX >> (64 - here);
            let mut old = *word & mask;
            *word &= !mask;
            while old != 0 {
                visit(base * 64 + old.trailing_zeros());
                old &= old - 1;
            }
        }
    }

    /// Writes the bits down.
    pub(super) fn keep(&self, all: &mut Vec<u64>) -> Bits {
        let zeros = self.words.iter().take_while(|word| **word == 0).count();
        let start = all.len() as u32;
        all.extend_from_slice(&self.words[zeros..]);
        Bits {
            start,
            words: (self.words.len() - zeros) as u32,
            base: self.base + zeros as u32,
            youngest: self.youngest.unwrap_or(0),
        }
    }
}
