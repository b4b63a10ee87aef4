//! The Internet checksum (RFC 1071).

/// The ones' complement sum of 16-bit words, over bytes that come in pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InternetChecksum {
    /// Sum of the words so far, carries not folded in.
    sum: u64,
    /// Whether the bytes so far end in the middle of a word.
    is_odd: bool,
}

impl InternetChecksum {
    /// Adds what comes next.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if self.is_odd
            && let Some((&low, rest)) = bytes.split_first()
        {
            self.sum += u64::from(low);
            self.is_odd = false;
            bytes = rest;
        }
        // Four bytes at a time: 2^16 is 1 in ones' complement, so that any multiple of a word does.
        let (quads, rest) = bytes.as_chunks::<4>();
        // 2^31 of them fit before the sum has to be folded.
        for quads in quads.chunks(1 << 30) {
            let sum: u64 = quads.iter().map(|&quad| u64::from(u32::from_be_bytes(quad))).sum();
            self.sum = fold(self.sum) + fold(sum);
        }
        let (pairs, last) = rest.as_chunks::<2>();
        self.sum += pairs.iter().map(|&pair| u64::from(u16::from_be_bytes(pair))).sum::<u64>();
        if let [high] = last {
            self.sum += u64::from(*high) << 8;
            self.is_odd = true;
        }
    }

    /// The sum of these bytes and then those of `next`.
    #[must_use]
    pub fn followed_by(self, next: Self) -> Self {
        let other = fold(next.sum);
        // After an odd number of bytes, high and low bytes of the words change places.
        let other = if self.is_odd { (other & 0xFF) << 8 | other >> 8 } else { other };
        Self { sum: fold(self.sum) + other, is_odd: self.is_odd != next.is_odd }
    }

    /// What to write in the field for it, which was zero when it was summed up.
    pub fn checksum(self) -> u16 {
        !(fold(self.sum) as u16)
    }

    /// Whether bytes that were summed up with their checksum are what they were.
    pub fn is_right(self) -> bool {
        self.checksum() == 0
    }
}

/// The sum in 16 bits.
fn fold(mut sum: u64) -> u64 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum
}
