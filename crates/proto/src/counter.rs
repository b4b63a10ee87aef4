//! Counters and sums that no input makes overflow.

/// A number that stays at the least or the largest value of its type.
pub(crate) trait Counter {
    /// Counts so many more.
    fn count(&mut self, more: Self);
    /// Takes so many away.
    fn discount(&mut self, fewer: Self);
    /// Changes a sum, of which one part was `before` and is `after`.
    fn change_part(&mut self, before: Self, after: Self);
}

macro_rules! counter {
    ($($integer:ty),*) => {
        $(impl Counter for $integer {
            #[inline]
            fn count(&mut self, more: Self) {
                *self = self.saturating_add(more);
            }

            #[inline]
            fn discount(&mut self, fewer: Self) {
                *self = self.saturating_sub(fewer);
            }

            #[inline]
            fn change_part(&mut self, before: Self, after: Self) {
                *self = self.saturating_add(after).saturating_sub(before);
            }
        })*
    };
}

counter!(u32, u64, u128, usize);
