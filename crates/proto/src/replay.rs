//! A window against packets that are sent again, as that of IPsec (RFC 4303, section 3.4.3).

/// Numbers that a window remembers.
const BITS: u64 = 1024;
const WORDS: usize = (BITS / 64) as usize;

/// Which of the latest packet numbers have been received.
///
/// Packets may arrive in any order within 1 024 numbers. An older one counts as received, unless
/// [nothing else comes](Self::begins_again).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayWindow {
    /// One more than the highest number that was received; 0: none was.
    end: u64,
    /// Bit `n % 1024`: number `n` was received. Valid for the last 1 024 numbers before `end`.
    received: [u64; WORDS],
    /// Valid packets in a row that were older than the window.
    older: u32,
}

/// Valid packets in a row that are older than the window, and with which it begins again.
const OLDER: u32 = 16;

impl ReplayWindow {
    /// True if the number was not received, and is not older than the window.
    #[inline]
    pub fn is_new(&self, number: u64) -> bool {
        if number >= self.end {
            return true;
        }
        let word = self.received.get(Self::word(number)).copied().unwrap_or(u64::MAX);
        self.end - number <= BITS && word & Self::bit(number) == 0
    }

    /// True if the number is older than the window: whether it was received is not known.
    #[inline]
    pub fn is_older(&self, number: u64) -> bool {
        number < self.end && self.end - number > BITS
    }

    /// Records a valid packet whose number [is older](Self::is_older). True if the window begins
    /// again with it: 16 of them have come in a row, and no newer one. Any host with the key can
    /// send a number that its owner will not reach. A host without it, which repeats old packets,
    /// does so in vain as soon as the owner sends one.
    #[cold]
    pub fn begins_again(&mut self, number: u64) -> bool {
        self.older = self.older.saturating_add(1);
        if self.older < OLDER {
            return false;
        }
        *self = Self::default();
        self.insert(number);
        true
    }

    /// Records a number that [is new](Self::is_new).
    #[inline]
    pub fn insert(&mut self, number: u64) {
        self.older = 0;
        let end = number.saturating_add(1);
        if end > self.end {
            self.forget(end);
            self.end = end;
        }
        if let Some(word) = self.received.get_mut(Self::word(number)) {
            *word |= Self::bit(number);
        }
    }

    /// Clears the bits of the numbers from the end of the window to `end`.
    #[inline]
    fn forget(&mut self, end: u64) {
        // In order, there is one, which shares its word with numbers of the window.
        if end - self.end >= BITS {
            self.received = [0; WORDS];
            return;
        }
        for number in self.end..end {
            if let Some(word) = self.received.get_mut(Self::word(number)) {
                *word &= !Self::bit(number);
            }
        }
    }

    const fn word(number: u64) -> usize {
        (number / 64) as usize % WORDS
    }

    const fn bit(number: u64) -> u64 {
        1 << (number % 64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Inserts if new.
    fn take(window: &mut ReplayWindow, number: u64) -> bool {
        let is_new = window.is_new(number);
        if is_new {
            window.insert(number);
        }
        is_new
    }

    #[test]
    fn each_number_is_new_once_within_the_window() {
        let mut window = ReplayWindow::default();
        assert!(take(&mut window, 5_000));
        assert!(!take(&mut window, 5_000));
        // The window has 1 024 numbers: 3 977 to 5 000.
        assert!(take(&mut window, 3_977));
        assert!(!take(&mut window, 3_977));
        assert!(!take(&mut window, 3_976));
        assert!(take(&mut window, 5_001));
        assert!(!take(&mut window, 3_977), "older than the window now");
        assert!(take(&mut window, 4_999));
        assert!(take(&mut window, u64::MAX - 1));
        assert!(!take(&mut window, 5_002));
        assert!(take(&mut window, u64::MAX - 3));
    }

    #[test]
    fn a_number_that_its_owner_does_not_reach_is_forgotten() {
        let mut window = ReplayWindow::default();
        assert!(take(&mut window, 7) && take(&mut window, u64::MAX - 2));
        for number in 8..8 + u64::from(OLDER) - 1 {
            assert!(window.is_older(number) && !window.begins_again(number));
        }
        assert!(window.begins_again(30));
        assert!(!take(&mut window, 30) && take(&mut window, 31));
    }

    #[test]
    fn older_packets_that_are_repeated_beside_newer_ones_stay_old() {
        let mut window = ReplayWindow::default();
        for number in 5_000..5_100 {
            assert!(take(&mut window, number));
            assert!((0..u64::from(OLDER) - 1).all(|old| !window.begins_again(old)));
        }
    }

    proptest! {
        /// Steps ahead and back, against a set of all numbers.
        #[test]
        fn the_window_agrees_with_a_set(
            steps in prop::collection::vec((0_u64..1_100, 0_u64..3_000), 1..400),
        ) {
            let (mut window, mut seen) = (ReplayWindow::default(), BTreeSet::<u64>::new());
            let mut highest = 0;
            for (ahead, back) in steps {
                let number = (highest + ahead).saturating_sub(back);
                let is_old = seen.last().is_some_and(|last| last - last.min(&number) >= BITS);
                let expected = !is_old && !seen.contains(&number);
                prop_assert_eq!(take(&mut window, number), expected, "{}", number);
                if expected {
                    seen.insert(number);
                    highest = highest.max(number);
                }
            }
        }
    }
}
