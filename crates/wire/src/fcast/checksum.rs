//! The Internet checksum (RFC 1071).

/// Ones' complement sum of 16-bit words, over bytes that are added in pieces of any length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InternetChecksum {
    /// Sum of the words so far, whose carries may not be folded: less than 2^17.
    sum: u64,
    /// True if the number of bytes so far is odd.
    is_odd: bool,
}

impl InternetChecksum {
    /// Adds the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if self.is_odd
            && let Some((&low, rest)) = bytes.split_first()
        {
            self.add_sum(low.into());
            self.is_odd = false;
            bytes = rest;
        }
        // Four bytes at a time. 2^16 is 1 in ones' complement, so words of any multiple of 16 bits
        // give the same sum.
        let (quads, rest) = bytes.as_chunks::<4>();
        // 2^30 of them cannot overflow the sum before it is folded.
        for quads in quads.chunks(1 << 30) {
            self.add_sum(quads.iter().map(|&quad| u64::from(u32::from_be_bytes(quad))).sum());
        }
        let (pairs, last) = rest.as_chunks::<2>();
        self.add_sum(pairs.iter().map(|&pair| u64::from(u16::from_be_bytes(pair))).sum());
        if let [high] = last {
            self.add_sum(u64::from(*high) << 8);
            self.is_odd = true;
        }
    }

    /// Adds a sum of words. Both are folded first, so that no number of additions overflows.
    fn add_sum(&mut self, sum: u64) {
        self.sum = fold(self.sum).saturating_add(fold(sum));
    }

    /// Sum of these bytes followed by those of `next`.
    #[must_use]
    pub fn followed_by(mut self, next: Self) -> Self {
        let other = fold(next.sum);
        // After an odd number of bytes, the high and low bytes of the words swap places.
        self.add_sum(if self.is_odd { (other & 0xFF) << 8 | other >> 8 } else { other });
        self.is_odd = self.is_odd != next.is_odd;
        self
    }

    /// Value of the checksum field, if the field was zero when it was added.
    pub fn checksum(self) -> u16 {
        !(fold(self.sum) as u16)
    }

    /// True if bytes that include their checksum are unchanged.
    pub fn is_right(self) -> bool {
        self.checksum() == 0
    }
}

/// The sum folded to 16 bits.
fn fold(mut sum: u64) -> u64 {
    while sum > 0xFFFF {
        // Less than 2^16 plus less than 2^48.
        sum = (sum & 0xFFFF).saturating_add(sum >> 16);
    }
    sum
}
